import Foundation
import TestSupport
import TestTools
import Touchstone

#if POSTGRES
  import StoragePostgres
#endif

/// Where a world has its database: the directory `test.touchstone` in its folder, or wholly on a PostgreSQL server. Then the folder
/// has a file with the location.
package struct SimulatedPlace {
  private static let server = EngineName(rawValue: "postgres")

  /// The engine whose databases are on a server; nil if no server can be started here.
  package static var serverEngine: EngineName? {
    #if POSTGRES
      PostgresServer.absence == nil ? server : nil
    #else
      nil
    #endif
  }

  /// Registers the engine if it is the one. Other tests have another one under its name, which isn't on a server wholly.
  static func isServer(_ engine: EngineName) -> Bool {
    guard engine == server else { return false }
    #if POSTGRES
      _ = (optionalEngines, registered)
    #endif
    return true
  }

  #if POSTGRES
    private static let registered: Void = Engines.register(PostgresEngines.postgres)
  #endif

  private let folder: String

  package init(_ folder: String) { self.folder = folder }

  private var file: String { folder + "/location" }

  /// The path or the location.
  private var path: String {
    (try? String(contentsOfFile: file, encoding: .utf8)) ?? folder + "/test"
  }

  private func newPath(_ engine: EngineName) throws -> String {
    guard Self.isServer(engine) else { return folder + "/test" }
    return try PostgresServer.shared.get().location("simulated-\(UUID())")
  }

  private func note(_ path: String, _ engine: EngineName) throws {
    if Self.isServer(engine) {
      try path.write(toFile: file, atomically: true, encoding: .utf8)
    } else {
      try? FileManager.default.removeItem(atPath: file)
    }
  }

  func make(_ engine: EngineName) throws {
    let path = try newPath(engine)
    let options = DatabaseOptions(engine: engine, durability: .none, key: try key(of: engine))
    try Database.open(path, options: options).close()
    try note(path, engine)
  }

  package func open(_ engine: EngineName, isReadOnly: Bool = false) throws -> Database {
    // Registers it.
    _ = Self.isServer(engine)
    var options = DatabaseOptions(
      engine: engine, creation: .openExisting, isReadOnly: isReadOnly, key: try key(of: engine))
    // Documents with many leaves are written in another way, which few of the simulated ones would have by themselves.
    options.wideTree = 3
    return try Database.open(path, options: options)
  }

  /// In place, except from and to a server.
  func convert(_ engine: EngineName, to target: EngineName) throws {
    let isMoved = [engine, target].contains(where: Self.isServer)
    let (key, newKey) = (try key(of: engine), try key(of: target))
    guard isMoved else {
      try Database.convert(path, to: target, key: key, newKey: newKey)
      return
    }
    let (old, new) = (path, try newPath(target))
    try Database.convert(old, to: target, at: new, key: key, newKey: newKey)
    try note(new, target)
    try Database.delete(old)
  }

  /// Removes what a server has of it. The folder is removed by who made it.
  func remove(_ engine: EngineName) {
    if Self.isServer(engine) { try? Database.delete(path) }
  }
}
