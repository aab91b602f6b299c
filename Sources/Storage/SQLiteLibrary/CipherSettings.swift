import Bytes
import CSQLite

/// The settings of SQLCipher, and the pragmas that set them. They are set for each connection, because the defaults belong
/// to the process and other code may change them.
package struct CipherSettings: Sendable, Hashable {
  /// The size of a page, in bytes.
  package var pageBytes: Int
  /// The number of PBKDF2 rounds that derive the key from a passphrase.
  package var derivationRounds: Int
  /// Whether pages are authenticated.
  package var isAuthenticated: Bool
  /// The SQLCipher release whose defaults a later library uses for this file. Nil leaves the library's own.
  package var compatibility: Int?

  /// Makes cipher settings; see the properties.
  package init(
    pageBytes: Int = 1_024, derivationRounds: Int = 64_000, isAuthenticated: Bool = true,
    compatibility: Int? = 3
  ) {
    self.pageBytes = pageBytes
    self.derivationRounds = derivationRounds
    self.isAuthenticated = isAuthenticated
    self.compatibility = compatibility
  }

  /// The defaults of SQLCipher 3.
  package static let sqlcipher3 = CipherSettings()
  /// The defaults of SQLCipher 2.
  package static let sqlcipher2 = CipherSettings(derivationRounds: 4_000, compatibility: 2)
  /// The defaults of SQLCipher 1, which doesn't authenticate pages.
  package static let sqlcipher1 = CipherSettings(
    derivationRounds: 4_000, isAuthenticated: false, compatibility: 1)

  /// The key of a file.
  package enum Key: Sendable {
    /// A passphrase. The library derives the key from it.
    case passphrase(String)
    /// A raw key of 32 bytes, used without derivation.
    case raw([UInt8])
  }

  /// Opens an encrypted file of another program for reading, and reads its first page. Imports and upgrades
  /// use it.
  ///
  /// Nothing is written to the file. A write-ahead log beside it is also read. All cipher settings are set,
  /// so the process's defaults don't matter. `path` may be a URI (`file:/a%20b?immutable=1`).
  ///
  /// Throws a `SQLiteError` with `SQLITE_NOTADB` if the key or the cipher is wrong, or if the first page is
  /// damaged. SQLCipher can't tell these cases apart.
  package func open(_ path: String, key: Key, library: Library? = nil) throws -> Connection {
    let library = try library ?? Library.load(Library.sqlcipherPath)
    let connection = try Connection(
      path, library: library, flags: SQLITE_OPEN_READONLY | (path.hasPrefix("file:") ? SQLITE_OPEN_URI : 0))
    do {
      switch key {
      case .passphrase(let text):
        var text = text
        try text.withUTF8 { try connection.setKey(UnsafeRawBufferPointer($0)) }
      case .raw(let bytes):
        try Array("x'\(Hex.text(bytes))'".utf8).withUnsafeBytes { try connection.setKey($0) }
      }
      try set(on: connection)
      _ = try connection.integer("SELECT count(*) FROM sqlite_master")
      return connection
    } catch {
      connection.close()
      throw error
    }
  }

  /// Sets these settings. Call it after the key, and before anything reads the file.
  package func set(on connection: Connection) throws {
    if let compatibility {
      // Known since release 4. Older libraries ignore it.
      try connection.execute("PRAGMA cipher_compatibility = \(compatibility)")
    }
    try connection.execute(
      """
      PRAGMA cipher_use_hmac = \(isAuthenticated ? "ON" : "OFF");
      PRAGMA kdf_iter = \(derivationRounds);
      PRAGMA cipher_page_size = \(pageBytes);
      """)
  }

  /// Sets the page size of an attached file that is about to be made.
  package static func setPageBytes(_ bytes: Int, ofAttached schema: String, on connection: Connection) throws
  {
    try connection.execute("PRAGMA \(schema).cipher_page_size = \(bytes)")
  }

  /// Sets the page size of files that the library creates itself, in the whole process.
  package static func setDefaultPageBytes(_ bytes: Int, on connection: Connection) throws {
    try connection.execute("PRAGMA cipher_default_page_size = \(bytes)")
  }
}
