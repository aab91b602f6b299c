import Foundation
import Storage
import StorageLMDB
import StorageSQLite

/// The engines that are measured, of those that the library knows (`Engines`).
public enum BenchEngines {
  /// Those that are compared when none is named.
  public static let standard: [EngineType] =
    [SQLiteEngines.sqlite, LMDBEngines.lmdb, SQLiteEngines.sqlcipher]
}

/// An engine as it is in a run: opened once, to see its library and its settings.
public struct ProbedEngine: Sendable {
  /// The engine.
  public let type: EngineType
  /// The library and version below it.
  public let library: String
  /// What it sets on that library, by the library's names.
  public let settings: [(name: String, value: String)]
  /// How it is opened in every run.
  public let options: EngineOptions

  /// The value of a setting, or nil.
  public func setting(_ name: String) -> String? { settings.first { $0.name == name }?.value }

  /// The key that encrypting engines get in a run. There is no secret in it.
  static let key = [UInt8](0..<32)

  /// Opens `type` once below `workDirectory` and looks at it.
  init(_ type: EngineType, durability: Durability, cacheBytes: Int? = nil, workDirectory: String) throws {
    self.type = type
    var options = EngineOptions(durability: durability, key: type.encrypts ? ProbedEngine.key : nil)
    if let cacheBytes { options.cacheBytes = cacheBytes }
    self.options = options
    let path = "\(workDirectory)/probe-\(UUID().uuidString).\(type.fileExtension)"
    defer {
      for suffix in ["", "-wal", "-shm", "-lock"] {
        try? FileManager.default.removeItem(atPath: path + suffix)
      }
    }
    let engine = try type.open(path, options)
    library = engine.library
    settings = engine.settings
    try engine.close()
  }

  /// The same engine with another key, for the bare loops on a database that has a data key of its own.
  func keyed(_ key: [UInt8]?) -> ProbedEngine {
    var options = options
    options.key = key
    return ProbedEngine(type: type, library: library, settings: settings, options: options)
  }

  private init(
    type: EngineType, library: String, settings: [(name: String, value: String)], options: EngineOptions
  ) {
    self.type = type
    self.library = library
    self.settings = settings
    self.options = options
  }

  /// The file of a database in a directory.
  func path(in directory: String) -> String { "\(directory)/bench.\(type.fileExtension)" }

  /// Opens or creates the database in a directory.
  func open(in directory: String) throws -> any StorageEngine {
    try type.open(path(in: directory), options)
  }
}
