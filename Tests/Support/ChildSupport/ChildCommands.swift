// The programs that tests start as child processes: to kill them, to write at the same time, to run out of disk space, or
// to crash.
//
//   PROGRAM GROUP COMMAND …     the file of a group describes its commands

#if canImport(Glibc)
  import Glibc
#endif

/// A group of commands, for the tests of one part.
package protocol ChildCommands {
  /// The program's first argument.
  static var name: String { get }
  /// The arguments that follow.
  static var usage: String { get }
  /// Runs the command that the arguments after the name of the group give.
  static func run(_ arguments: [String]) throws
}

/// The arguments don't fit the usage of the group.
package struct WrongUsage: Error {
  package init() {}
}

/// Runs the command that the arguments of the process name: `main` of a program that has these groups.
package func runChild(_ groups: [any ChildCommands.Type]) {
  let arguments = Array(CommandLine.arguments.dropFirst())
  let chosen = groups.filter { $0.name == arguments.first }
  do {
    guard let group = chosen.first else { throw WrongUsage() }
    try group.run(Array(arguments.dropFirst()))
  } catch is WrongUsage {
    let program = CommandLine.arguments[0].split(separator: "/").last ?? ""
    for group in chosen.isEmpty ? groups : chosen {
      let line = "usage: \(program) \(group.name) \(group.usage)\n"
      _ = write(2, line, line.utf8.count)
    }
    exit(2)
  } catch {
    say("failed: \(error)")
    exit(1)
  }
}

/// Writes a line at once and whole. A line without its end is no acknowledgement.
package func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}
