import Foundation
import Storage
import StorageConformance
import Touchstone

/// The package's engines, on which all tests above the engines run. A strict run uses only SQLite and LMDB;
/// the others are variants of these.
package let allEngines: [EngineName] =
  isStrict ? [.sqlite, .lmdb] : [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted]

/// The key of test databases on an engine; nil if it doesn't encrypt.
package func key(of engine: EngineName) throws -> UserKey? {
  try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
}

/// The options of test databases on an engine.
package func options(_ engine: EngineName, durability: Durability = .none) throws -> DatabaseOptions {
  DatabaseOptions(engine: engine, durability: durability, key: try key(of: engine))
}

/// Runs `body` with an empty database named `test` in a temporary directory, and closes it at the end.
/// `change` can change its options.
package func withDatabase(
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

/// Runs `body` with an empty database on a strict engine with the given strictness, and closes it at the end.
package func withStrictDatabase(
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
