import Foundation
import Storage
import StorageConformance
import Touchstone

/// The engines of the package, on each of which the tests of what is above engines run. In a strict run the two that
/// the others are kinds of.
public let allEngines: [EngineName] =
  isStrict ? [.sqlite, .lmdb] : [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted]

/// The key of the tests' databases on an engine: nil when it doesn't encrypt.
public func key(of engine: EngineName) throws -> UserKey? {
  try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
}

/// The options of the tests' databases on an engine.
public func options(_ engine: EngineName, durability: Durability = .none) throws -> DatabaseOptions {
  DatabaseOptions(engine: engine, durability: durability, key: try key(of: engine))
}

/// The code of the `DatabaseError` that `body` throws, nil when it throws none. Any other error it throws itself.
public func databaseCode(of body: () throws -> Void) throws -> DatabaseError.Code? {
  do { try body() } catch let error as DatabaseError { return error.code }
  return nil
}

/// Runs `body` with an empty database on an engine, named `test` and in a directory of its own; closes it at the end.
/// `change` may want other options.
public func withDatabase(
  _ engine: EngineName, _ change: (inout DatabaseOptions) -> Void = { _ in },
  _ body: (Database) throws -> Void
) throws {
  var options = try options(engine)
  change(&options)
  try withTemporaryDirectory { directory in
    let database = try Database.open("test", in: directory, options: options)
    try body(database)
    try database.close()
  }
}

/// Runs `body` with an empty database on an engine that is strict as `strictness` says; closes it at the end.
public func withStrictDatabase(
  _ engine: EngineName, _ strictness: Strictness, _ body: (Database) throws -> Void
) throws {
  let name = EngineName(rawValue: "strict-\(engine)-\(UUID())")
  Engines.register(
    StrictEngine.type(over: try Engines.type(engine), name: name.rawValue, strictness: strictness))
  try withTemporaryDirectory { directory in
    let database = try Database.open(
      "test", in: directory, options: DatabaseOptions(engine: name, durability: .none))
    try body(database)
    try database.close()
  }
}
