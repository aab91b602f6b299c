import SQLiteLibrary
import Storage

/// The engines of the SQLite family that can be chosen.
public enum SQLiteEngines {
  /// The system's SQLite.
  public static let sqlite = type("sqlite", fileExtension: "sqlite", encrypts: false)

  /// SQLCipher: every page encrypted with AES-256 under the 32 bytes of `EngineOptions.key`.
  public static let sqlcipher = type("sqlcipher", fileExtension: "sqlcipher", encrypts: true)

  /// SQLCipher's library without a key, to tell the cost of the cipher from the age of that library.
  public static let sqlcipherPlain = type("sqlcipher-plain", fileExtension: "sqlite", encrypts: false)

  /// All of them.
  public static let all = [sqlite, sqlcipher, sqlcipherPlain]

  private static func type(_ name: String, fileExtension: String, encrypts: Bool) -> EngineType {
    EngineType(name: name, fileExtension: fileExtension, encrypts: encrypts) { path, options in
      let library = name == "sqlite" ? Library.sqlitePath : Library.sqlcipherPath
      return try SQLiteEngine(
        name: name, encrypts: encrypts, libraryPath: options.libraryPath ?? library, path: path,
        options: options)
    }
  }
}
