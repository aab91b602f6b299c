import SQLiteLibrary
import Storage

/// The engines of the SQLite family.
package enum SQLiteEngines {
  /// The system's SQLite.
  package static let sqlite = type("sqlite", fileExtension: "sqlite", encrypts: false)

  /// SQLCipher. It encrypts every page with AES-256 and the 32 bytes of `EngineOptions.key`.
  package static let sqlcipher = type("sqlcipher", fileExtension: "sqlcipher", encrypts: true)

  /// SQLCipher's library without a key. A comparison with `sqlite` separates the cost of the cipher from the
  /// age of the library.
  package static let sqlcipherPlain = type("sqlcipher-plain", fileExtension: "sqlite", encrypts: false)

  /// All engines of this family.
  package static let all = [sqlite, sqlcipher, sqlcipherPlain]

  private static func type(_ name: String, fileExtension: String, encrypts: Bool) -> EngineType {
    EngineType(
      name: name, fileExtension: fileExtension, encrypts: encrypts, longestPath: SQLiteLayout.longestPath
    ) { path, options in
      let library = name == "sqlite" ? Library.sqlitePath : Library.sqlcipherPath
      return try SQLiteEngine(
        name: name, encrypts: encrypts, libraryPath: options.libraryPath ?? library, path: path,
        options: options)
    }
  }
}
