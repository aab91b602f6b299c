import CSQLite

/// How a SQLCipher file was encrypted that another program made.
public struct ForeignCipher: Sendable, Hashable {
  /// Bytes a page.
  public var pageBytes: Int
  /// Rounds of PBKDF2 between a passphrase and its key.
  public var derivationRounds: Int
  /// Whether pages are authenticated.
  public var isAuthenticated: Bool
  /// The defaults of that release, for libraries of later ones.
  public var compatibility: Int

  /// A cipher; see the properties.
  public init(
    pageBytes: Int = 1_024, derivationRounds: Int = 64_000, isAuthenticated: Bool = true,
    compatibility: Int = 3
  ) {
    self.pageBytes = pageBytes
    self.derivationRounds = derivationRounds
    self.isAuthenticated = isAuthenticated
    self.compatibility = compatibility
  }

  /// SQLCipher 3's own defaults.
  public static let sqlcipher3 = ForeignCipher()
  /// SQLCipher 2's.
  public static let sqlcipher2 = ForeignCipher(derivationRounds: 4_000, compatibility: 2)
  /// SQLCipher 1's: pages weren't authenticated.
  public static let sqlcipher1 = ForeignCipher(
    derivationRounds: 4_000, isAuthenticated: false, compatibility: 1)

  /// What opens a file.
  public enum Key: Sendable {
    /// Goes through the library's derivation.
    case passphrase(String)
    /// 32 bytes, used as they are.
    case raw([UInt8])
  }

  /// Opens an encrypted file that another program made, for reading, and reads its first page: for imports and upgrades.
  ///
  /// Nothing is written to the file; a write-ahead log beside it is read too. Every setting is made, whatever the
  /// process has made the library's default. Throws an `SQLiteError` of `SQLITE_NOTADB` when key or cipher aren't the file's:
  /// SQLCipher can't tell that from damage.
  ///
  /// `path` may be a URI (`file:/a%20b?immutable=1`).
  public func open(_ path: String, key: Key, library: Library? = nil) throws -> Connection {
    let library = try library ?? Library.load(Library.sqlcipherPath)
    let connection = try Connection(
      path, library: library, flags: SQLITE_OPEN_READONLY | (path.hasPrefix("file:") ? SQLITE_OPEN_URI : 0))
    do {
      switch key {
      case .passphrase(let text):
        var text = text
        try text.withUTF8 { try connection.setKey(UnsafeRawBufferPointer($0)) }
      case .raw(let bytes):
        let digits = Array("0123456789abcdef".utf8)
        let hexadecimal = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        try (Array("x'".utf8) + hexadecimal + Array("'".utf8)).withUnsafeBytes { try connection.setKey($0) }
      }
      // Since release 4; an older library takes no notice.
      try connection.execute("PRAGMA cipher_compatibility = \(compatibility)")
      try connection.execute(
        """
        PRAGMA cipher_page_size = \(pageBytes);
        PRAGMA kdf_iter = \(derivationRounds);
        PRAGMA cipher_use_hmac = \(isAuthenticated ? "ON" : "OFF");
        """)
      _ = try connection.integer("SELECT count(*) FROM sqlite_master")
      return connection
    } catch {
      connection.close()
      throw error
    }
  }
}
