import Foundation
import Storage
import StorageConformance
import TestTools
import Testing
import Touchstone

#if ROCKSDB
  import StorageRocksDB
#endif
#if WIREDTIGER
  import StorageWiredTiger
#endif

/// The engines that TOUCHSTONE_ONLY_ENGINES names, separated by spaces: the suites that choose engines from the lists below then run on
/// these only. Nil without the variable.
package let onlyEngines: [EngineName]? = environmentVariable("TOUCHSTONE_ONLY_ENGINES").map { names in
  // Registers them.
  _ = optionalEngines
  return names.split(separator: " ").map { EngineName(rawValue: String($0)) }
}

/// The package's engines, on which all tests above the engines run. A strict run uses only SQLite and LMDB, since
/// the others are variants of these; a short one only LMDB, since a strict engine hands over the same copies whatever is below it.
package let allEngines: [EngineName] =
  onlyEngines
  ?? (isStrict
    ? (isShort ? [.lmdb] : [.sqlite, .lmdb])
    : [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted] + (isLong ? optionalEngines : []))

/// All engines, also in a short run: for suites that try each once.
package let everyEngine: [EngineName] =
  onlyEngines ?? (isStrict || isLong ? allEngines : allEngines + optionalEngines)

/// The engines whose libraries not every machine has, registered. Most suites run on them only in the long run.
package let optionalEngines: [EngineName] = {
  var types: [EngineType] = []
  #if ROCKSDB
    types.append(RocksDBEngines.rocksdb)
  #endif
  #if WIREDTIGER
    types.append(WiredTigerEngines.wiredtiger)
  #endif
  #if POSTGRES
    // It isn't one of the list: each database is a schema of a server that the process starts. It runs only when it is named.
    Engines.register(PointedEngine.type)
  #endif
  for type in types { Engines.register(type) }
  return types.map { EngineName(rawValue: $0.name) }
}()

/// The engines on which most suites above the engines run: all in the long run, otherwise one of each kind.
package let someEngines: [EngineName] = onlyEngines ?? (isLong || isStrict ? allEngines : [.sqlite, .lmdb])

/// Whether several processes can have a database on an engine open.
package func isShared(_ engine: EngineName) -> Bool { !optionalEngines.contains(engine) }

/// The engines of `someEngines` whose databases several processes can have open.
package let sharedEngines: [EngineName] = someEngines.filter(isShared)

/// Whether a large value is read together with its key. It is on engines whose libraries have no position that shows keys alone.
package func readsValuesWithKeys(_ engine: EngineName) -> Bool { optionalEngines.contains(engine) }

/// The key of test databases on an engine; nil if it doesn't encrypt.
package func key(of engine: EngineName) throws -> UserKey? {
  try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
}

/// The options of test databases on an engine.
package func options(_ engine: EngineName, durability: Durability = .none) throws -> DatabaseOptions {
  DatabaseOptions(engine: engine, durability: durability, key: try key(of: engine))
}

/// The databases of one test. A suite has one of these as a property; it closes them when the test has ended.
package final class TestDatabases: Sendable {
  private let opened = Lock<[(database: Database, directory: TemporaryDirectory)]>([])

  package init() {}

  deinit {
    for (database, directory) in opened.withLock({ $0 }).reversed() {
      do { try database.close() } catch {
        let here = SourceLocation(fileID: #fileID, filePath: #filePath, line: #line, column: #column)
        Issue.record(error, "a database of a test can't be closed", sourceLocation: here)
      }
      withExtendedLifetime(directory) {}
    }
  }

  /// Opens an empty database named `test` in a temporary directory. `change` can change its options.
  package func open(
    _ engine: EngineName, _ change: (inout DatabaseOptions) -> Void = { _ in }
  ) throws -> Database {
    var options = try options(engine)
    change(&options)
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path, options: options)
    opened.withLock { $0.append((database, directory)) }
    return database
  }
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
  try withDatabase(name, { _ in }, body)
}

/// What `left.compare(with: right)` finds.
package func differences(
  _ left: Database, _ right: Database, sequences: Bool = false
) throws -> [DocumentDifference] {
  var found: [DocumentDifference] = []
  try left.compare(with: right, sequences: sequences) { found.append($0) }
  return found
}

/// Opens the database `test` in a directory, with the key of the tests if the engine encrypts. `change` can change
/// its options.
package func openTestDatabase(
  _ engine: String, in directory: String, _ change: (inout DatabaseOptions) -> Void = { _ in }
) throws -> Database {
  let engine = EngineName(rawValue: engine)
  var options = DatabaseOptions(engine: engine, key: try key(of: engine))
  change(&options)
  return try Database.open("test", in: directory, options: options)
}
