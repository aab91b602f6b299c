import ChildProcesses
import StorageConformance
import StoragePostgres
import TestSupport

/// Whether a server can be started here. Without one, the tests that need one say so and are skipped.
let hasServer = PostgresServer.absence == nil

/// The engine, registered.
private let registered: Void = Engines.register(PostgresEngines.postgres)

/// The server that the tests of this process share.
func server() throws -> PostgresServer {
  registered
  return try PostgresServer.shared.get()
}

/// The location of a new database.
func newLocation(_ name: String = "test-\(UUID().uuidString)") throws -> String {
  try server().location(name)
}

/// Opens an empty database on the server, runs `body`, and closes and removes it.
func withServerDatabase(
  _ change: (inout DatabaseOptions) -> Void = { _ in }, _ body: (Database, _ location: String) throws -> Void
) throws {
  let location = try newLocation()
  var options = DatabaseOptions(durability: .none)
  change(&options)
  let database = try Database.open(location, options: options)
  do { try body(database, location) } catch {
    try? database.close()
    throw error
  }
  try database.close()
  try Database.delete(location)
}

/// Bytes that no compression makes smaller.
func randomBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var random = SeededGenerator(seed: seed)
  return random.bytes(count)
}

/// Runs the command to its end.
func touchstone(
  _ arguments: String..., environment: [String: String] = [:]
) throws -> (status: Int32, output: String, errors: String) {
  guard let path = builtExecutable("touchstone") else { throw ConformanceFailure("touchstone isn't built") }
  var changes: [String: String?] = environment
  for name in ["TOUCHSTONE_KEY", "TOUCHSTONE_NEW_KEY"] { changes[name] = .some(nil) }
  let child = try ChildProcess.start(path, arguments, environment: changes)
  let ending = try child.wait()
  return (ending.shellStatus, child.outputText, child.errorText)
}

/// The schemas and tables that a name has on the server, sorted.
func tables(_ schema: String) throws -> [String] {
  try server().sql(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = '\(schema)' ORDER BY 1")
}

extension String {
  /// The name of the schema in a location that needs no percent-encoding.
  var schema: String { String(split(separator: "#").last ?? "") }
}
