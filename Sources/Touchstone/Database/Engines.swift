import Storage
import StorageLMDB
import StorageSQLite

/// The name of a storage engine, by which it is chosen and remembered.
public struct EngineName: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The name as it is written: `sqlite`.
  public let rawValue: String
  /// The engine of that name, known or not.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The engine of that name, known or not.
  public init(stringLiteral value: String) { rawValue = value }
  /// The name.
  public var description: String { rawValue }

  /// The system's SQLite.
  public static let sqlite: EngineName = "sqlite"
  /// LMDB: a memory map, the fastest to read.
  public static let lmdb: EngineName = "lmdb"
  /// LMDB with a key: what `lmdb` becomes when a database is encrypted.
  public static let lmdbEncrypted: EngineName = "lmdb-encrypted"
  /// SQLite with encryption, by the SQLCipher library: needs a key.
  public static let sqlcipher: EngineName = "sqlcipher"
  /// The SQLCipher library without a key: to tell the cost of the cipher from that of the library's age.
  public static let sqlcipherPlain: EngineName = "sqlcipher-plain"
}

/// The engines that can be chosen.
public enum Engines {
  private static let types = Lock<[EngineName: EngineType]>(
    Dictionary(
      uniqueKeysWithValues: [
        SQLiteEngines.sqlite, LMDBEngines.lmdb, SQLiteEngines.sqlcipher, SQLiteEngines.sqlcipherPlain,
        LMDBEngines.encrypted,
      ].map { (EngineName(rawValue: $0.name), $0) }))

  /// Makes another engine known, under its type's name; one of that name is replaced.
  public static func register(_ type: EngineType) {
    types.withLock { $0[EngineName(rawValue: type.name)] = type }
  }

  /// The engine of that name. Throws `unknownEngine`, with the names that are known.
  public static func type(_ name: EngineName) throws -> EngineType {
    guard let type = types.withLock({ $0[name] }) else {
      let known = names.map(\.rawValue).joined(separator: ", ")
      throw DatabaseError(.unknownEngine, "there is no engine \"\(name)\"; known are \(known)")
    }
    return type
  }

  /// The engine of that name for a database that is encrypted or isn't: an encrypted `lmdb` is `lmdb-encrypted`, the
  /// same library with the same behaviour. (SQLite and SQLCipher are two libraries: who wants one of them says which.)
  /// Throws `unknownEngine`.
  public static func type(_ name: EngineName, encrypted: Bool) throws -> EngineType {
    try type(encrypted && name == .lmdb ? .lmdbEncrypted : name)
  }

  /// The names of all engines, sorted.
  public static var names: [EngineName] {
    types.withLock { Array($0.keys) }.sorted { $0.rawValue < $1.rawValue }
  }

  /// Which engine a plain one becomes when its database is encrypted, of the same kind.
  private static let encryptingKinds: [(plain: EngineName, encrypting: EngineName)] = [
    (.sqlite, .sqlcipher), (.sqlcipherPlain, .sqlcipher), (.lmdb, .lmdbEncrypted),
  ]

  /// The encrypting engine of the same kind as a plain one; nil when there is none.
  static func encrypting(_ name: EngineName) -> EngineName? {
    encryptingKinds.first { $0.plain == name && names.contains($0.encrypting) }?.encrypting
  }

  /// The plain engine of the same kind as an encrypting one; SQLite when there is none.
  static func plain(_ name: EngineName) -> EngineName {
    encryptingKinds.first { $0.encrypting == name }?.plain ?? .sqlite
  }
}
