import Storage
import StorageLMDB
import StorageSQLite
import StorageEncrypted

/// The name of a storage engine. It is used to choose an engine, and stored in the database.
public struct EngineName: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The name as text: `sqlite`.
  public let rawValue: String
  /// Makes a name. The engine need not be registered.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Makes a name. The engine need not be registered.
  public init(stringLiteral value: String) { rawValue = value }
  /// The name as text.
  public var description: String { rawValue }

  /// The system's SQLite.
  public static let sqlite: EngineName = "sqlite"
  /// LMDB, a memory-mapped B+ tree: the fastest engine for reading.
  public static let lmdb: EngineName = "lmdb"
  /// LMDB with a key. `lmdb` becomes this engine when a database is encrypted.
  public static let lmdbEncrypted: EngineName = "lmdb-encrypted"
  /// The SQLCipher library, which is SQLite with encryption. It needs a key.
  public static let sqlcipher: EngineName = "sqlcipher"
  /// The SQLCipher library without a key, to measure the cost of the cipher apart from that of the older
  /// SQLite version.
  public static let sqlcipherPlain: EngineName = "sqlcipher-plain"
  /// RocksDB, a log-structured merge tree. The product `TouchstoneRocksDB` has it: an app registers
  /// `RocksDBEngines.rocksdb` first.
  public static let rocksdb: EngineName = "rocksdb"
  /// WiredTiger, the B+ tree of MongoDB. The product `TouchstoneWiredTiger` has it: an app registers `WiredTigerEngines.wiredtiger`
  /// first.
  public static let wiredtiger: EngineName = "wiredtiger"
  /// A database on a PostgreSQL server. The product `TouchstonePostgres` has it: an app registers `PostgresEngines.postgres` first.
  /// Its databases have locations, such as `postgres://host/db#travel`, and no paths.
  public static let postgres: EngineName = "postgres"
  /// The engine of `Database.inMemory(options:)`. No other database can have it.
  public static let memory: EngineName = "memory"
}

/// The registry of storage engines.
public enum Engines {
  private static let types = Lock<[EngineName: EngineType]>(
    Dictionary(
      uniqueKeysWithValues: [
        SQLiteEngines.sqlite, LMDBEngines.lmdb, SQLiteEngines.sqlcipher, SQLiteEngines.sqlcipherPlain,
        LMDBEngines.encrypted,
      ].map { (EngineName(rawValue: $0.name), $0) }))

  /// Registers an engine under its type's name. It replaces an engine of the same name.
  public static func register(_ type: EngineType) {
    types.withLock { $0[EngineName(rawValue: type.name)] = type }
  }

  /// Returns the engine of that name. Throws `unknownEngine`, with the known names in its message.
  public static func type(_ name: EngineName) throws -> EngineType {
    guard let type = types.withLock({ $0[name] }) else {
      let known = names.map(\.rawValue).joined(separator: ", ")
      let what =
        optional[name].map { "this build has no \(name): \($0)" } ?? "there is no engine \"\(name)\""
      throw DatabaseError(.unknownEngine, "\(what); known are \(known)")
    }
    return type
  }

  /// Returns the engine of that name for an encrypted or plain database. An encrypted `lmdb` is
  /// `lmdb-encrypted`: the same library with the same behaviour. SQLite and SQLCipher are two libraries, so
  /// the caller names one of them. Throws `unknownEngine`.
  public static func type(_ name: EngineName, encrypted: Bool) throws -> EngineType {
    try type(encrypted && name == .lmdb ? .lmdbEncrypted : name)
  }

  /// How to get the engines that not every build has.
  private static let optional: [EngineName: String] = [
    .rocksdb: "it needs the product TouchstoneRocksDB and the Debian package librocksdb-dev",
    .postgres: "it needs the product TouchstonePostgres and the Debian package libpq-dev",
    .wiredtiger: "it needs the product TouchstoneWiredTiger and the Debian package libwiredtiger-dev",
  ]

  /// Returns the engine of locations with this scheme. Throws `unknownEngine` if this build doesn't have it, and `invalidLocation` if no
  /// engine is known to have the scheme.
  static func type(ofScheme scheme: String, path: String) throws -> EngineType {
    let servers = types.withLock { $0.values.filter { $0.server != nil } }
    if let type = servers.first(where: { $0.server?.schemes.contains(scheme) ?? false }) { return type }
    if let name = schemes[scheme], let needed = optional[name] {
      throw DatabaseError(
        .unknownEngine, "this build has no engine \(name) for the location: \(needed)", path: path)
    }
    let known = Set(schemes.keys).union(servers.flatMap { $0.server?.schemes ?? [] }).sorted()
    throw DatabaseError(
      .invalidLocation,
      "no engine has locations that begin with \(scheme)://; known are \(known.map { "\($0)://" }.joined(separator: ", "))",
      path: path)
  }

  /// The schemes of engines that not every build has.
  private static let schemes: [String: EngineName] = ["postgres": .postgres, "postgresql": .postgres]

  /// The names of all engines whose databases are directories, sorted.
  package static var namesOfFileEngines: [EngineName] {
    types.withLock { $0.filter { $0.value.server == nil }.map(\.key) }.sorted { $0.rawValue < $1.rawValue }
  }

  /// The names of all engines, sorted.
  public static var names: [EngineName] {
    types.withLock { Array($0.keys) }.sorted { $0.rawValue < $1.rawValue }
  }

  /// The pairs of a plain engine and the encrypting engine of the same kind.
  private static let encryptingKinds: [(plain: EngineName, encrypting: EngineName)] = [
    (.sqlite, .sqlcipher), (.sqlcipherPlain, .sqlcipher), (.lmdb, .lmdbEncrypted),
  ]

  /// The encrypting engine of the same kind as a plain one; nil if there is none.
  static func encrypting(_ name: EngineName) -> EngineName? {
    encryptingKinds.first { $0.plain == name && names.contains($0.encrypting) }?.encrypting
  }

  /// The plain engine of the same kind as an encrypting one; SQLite if there is none.
  static func plain(_ name: EngineName) -> EngineName {
    encryptingKinds.first { $0.encrypting == name }?.plain ?? .sqlite
  }
}

extension EngineType {
  /// Throws `invalidLocation` if databases of the engine are on servers, and not in directories such as that at `path`.
  func checkHasFiles(_ path: String) throws {
    guard let server else { return }
    throw DatabaseError(
      .invalidLocation,
      "the engine \(name) keeps databases on a server; give a location, such as \(server.schemes.first ?? name)://host/db#name",
      path: path)
  }
}
