// The program that tests start as a child process: to kill it, to write at the same time, to run out of disk space, or
// to crash.
//
//   test-child GROUP COMMAND …     the file of a group describes its commands
//
// SystemCalls and HeldHandles take the place of some C functions in the whole program. They only pass calls on until
// a command asks for more.

import TestSupport

/// A group of commands, for the tests of one part.
protocol ChildGroup {
  /// The program's first argument.
  static var name: String { get }
  /// The arguments that follow.
  static var usage: String { get }
  /// Runs the command that the arguments after the name of the group give.
  static func run(_ arguments: [String]) throws
}

/// The arguments don't fit the usage of the group.
struct WrongUsage: Error {}

@main enum TestChild {
  static var groups: [any ChildGroup.Type] {
    var groups: [any ChildGroup.Type] = [
      StorageChild.self, LMDBChild.self, BlobsChild.self, DocumentsChild.self, QueryChild.self,
      ConversionChild.self, CBLite2Child.self, UpgradeChild.self, FolderChild.self, LogsChild.self,
      ViewsChild.self, ReplicationChild.self, ForestDBChild.self, HTTPChild.self, ServerChild.self,
      FleeceChild.self, SimulationChild.self, MachineChild.self,
    ]
    #if QUERY_DIFFERENTIAL
      groups.append(QueryDifferentialChild.self)
    #endif
    return groups
  }

  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    // Registers them.
    _ = optionalEngines
    let chosen = groups.filter { $0.name == arguments.first }
    do {
      guard let group = chosen.first else { throw WrongUsage() }
      try group.run(Array(arguments.dropFirst()))
    } catch is WrongUsage {
      for group in chosen.isEmpty ? groups : chosen {
        let line = "usage: test-child \(group.name) \(group.usage)\n"
        _ = write(2, line, line.utf8.count)
      }
      exit(2)
    } catch {
      say("failed: \(error)")
      exit(1)
    }
  }
}

/// Writes a line at once and whole. A line without its end is no acknowledgement.
func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

/// Opens the database `test` in a directory, with the key of the tests if the engine encrypts. `change` can change
/// its options.
func openTestDatabase(
  _ engine: String, in directory: String, _ change: (inout DatabaseOptions) -> Void = { _ in }
) throws -> Database {
  let engine = EngineName(rawValue: engine)
  var options = DatabaseOptions(engine: engine, key: try key(of: engine))
  change(&options)
  return try Database.open("test", in: directory, options: options)
}
