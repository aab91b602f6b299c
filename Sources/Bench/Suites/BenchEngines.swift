import BenchmarkKit
import FoundationEssentials
import Storage
import StorageLMDB
import StorageSQLite
import Touchstone

/// The engines that the bench measures by default (`Engines` has all).
package enum BenchEngines {
  /// The engines that are compared if none is named.
  package static let standard: [EngineType] =
    [SQLiteEngines.sqlite, LMDBEngines.lmdb, SQLiteEngines.sqlcipher]

  /// All engines of this build, the common ones first.
  package static var all: [EngineType] {
    every + [EngineName.sqlcipherPlain].compactMap { try? Engines.type($0) }
  }

  /// All engines of this build, each library once, plain and encrypted.
  static var every: [EngineType] {
    let first: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted]
    let others = Engines.namesOfFileEngines.filter { !first.contains($0) && $0 != .sqlcipherPlain }
    return (first + others).compactMap { try? Engines.type($0) }
  }

  /// Returns the engines with these names, and then all others that encrypt.
  static func encrypting(after names: [EngineName]) -> [EngineType] {
    let others = Engines.namesOfFileEngines.filter { name in
      !names.contains(name) && (try? Engines.type(name).encrypts) == true
    }
    return (names + others).compactMap { try? Engines.type($0) }
  }
}

/// An engine in a run. It was opened once, to read its library version and its settings.
package struct ProbedEngine: Sendable {
  /// The engine's type.
  package let type: EngineType
  /// The name and version of its library.
  package let library: String
  /// Its settings on that library, with the library's names.
  package let settings: [(name: String, value: String)]
  /// The options with which every run opens it.
  package let options: EngineOptions
  /// The server with its databases. Nil for engines with files.
  let server: BenchServer?

  /// The value of a setting, or nil if there is none.
  package func setting(_ name: String) -> String? { settings.first { $0.name == name }?.value }

  /// The key of encrypting engines in a run. It isn't secret.
  static let key = [UInt8](0..<32)

  /// Opens `type` once below `workDirectory`, or on `server` if it is an engine without files, and reads its properties.
  ///
  /// Throws `invalidArgument` for an engine without files if there is no server.
  init(
    _ type: EngineType, durability: Durability, cacheBytes: Int? = nil, workDirectory: String,
    server: BenchServer? = nil
  ) throws {
    guard type.server == nil || server != nil else {
      throw StorageError(
        .invalidArgument,
        "the engine \(type.name) needs --location, a server for its databases: postgres://host/db")
    }
    self.type = type
    let ownServer = type.server == nil ? nil : server
    self.server = ownServer
    var options = EngineOptions(durability: durability, key: type.encrypts ? ProbedEngine.key : nil)
    if let cacheBytes { options.cacheBytes = cacheBytes }
    self.options = options
    let file = "\(workDirectory)/probe-\(UUID().uuidString).\(type.fileExtension)"
    let path = ownServer.map { $0.location(of: file) } ?? file
    defer {
      try? ownServer?.remove(file)
      for suffix in ["", "-wal", "-shm", "-lock"] {
        try? FileManager.default.removeItem(atPath: file + suffix)
      }
    }
    let engine = try type.open(path, options)
    library = engine.library
    settings = engine.settings
    try engine.close()
  }

  /// The same engine with another key, for bare loops on a database that has its own data key.
  func keyed(_ key: [UInt8]?) -> ProbedEngine {
    var options = options
    options.key = key
    return ProbedEngine(type: type, library: library, settings: settings, options: options, server: server)
  }

  private init(
    type: EngineType, library: String, settings: [(name: String, value: String)], options: EngineOptions,
    server: BenchServer?
  ) {
    self.server = server
    self.type = type
    self.library = library
    self.settings = settings
    self.options = options
  }

  /// The path of the database file in a directory. The location of what stands for it, if the engine has no files.
  func path(in directory: String) -> String {
    server.map { $0.location(of: directory) } ?? "\(directory)/bench.\(type.fileExtension)"
  }

  /// Copies a closed database from a directory to another one.
  func copy(_ source: String, to target: String) throws {
    guard let server else { return try Fixtures.copy(source, to: target) }
    try server.copy(source, to: target)
  }

  /// The size of the database in a directory, in bytes.
  func fileBytes(in directory: String) throws -> Int {
    try server?.bytes(of: directory) ?? TrialDirectory.fileBytes(in: directory)
  }

  /// Removes the closed database of a directory that goes, if it isn't in it.
  func discard(_ directory: String) throws { try server?.remove(directory) }

  /// Opens the database in a directory, and creates it if needed.
  func open(in directory: String) throws -> any StorageEngine {
    try type.open(path(in: directory), options)
  }
}
