// Starting the programs of tests, and the tools of libraries.

import Foundation
import StorageConformance

/// A program that tests start as a child process, to kill it or to let it crash. docs/testing.md lists them. A target of tests
/// depends on the program that it starts.
package enum TestProgram: String {
  case ground = "ground-child"
  case server = "server-child"
  case storage = "storage-child"
  case fleece = "fleece-child"
  case database = "database-child"
  case sync = "sync-child"
  case whole = "whole-child"

  /// Its path; nil if it wasn't built.
  package var path: String? { builtExecutable(rawValue) }
}

/// Executables are built beside the test bundle, which a runner loads, or which is the running executable.
private let buildDirectories = (Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments)
  .compactMap { path in path.lastIndex(of: "/").map { String(path[..<$0]) } }

/// The path of an executable of this package; nil if it wasn't built.
package func builtExecutable(_ name: String) -> String? {
  buildDirectories.lazy.map { $0 + "/" + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Starts a command of a program of tests, on the original engines. Its standard input is empty, or open until `endInput`.
package func startChild(
  _ program: TestProgram, _ arguments: String..., environment: [String: String] = [:], hasInput: Bool = false
) throws -> ChildProcess {
  try startChild(program, arguments, environment: environment, hasInput: hasInput)
}

package func startChild(
  _ program: TestProgram, _ arguments: [String], environment: [String: String] = [:], hasInput: Bool = false
) throws -> ChildProcess {
  guard let path = program.path else { throw ConformanceFailure("\(program.rawValue) isn't built") }
  var changes: [String: String?] = environment
  changes["TOUCHSTONE_STRICT"] = .some(nil)
  return try ChildProcess.start(path, arguments, environment: changes, hasInput: hasInput)
}

/// Runs a program to its end and returns its output. Throws unless its status is 0.
package func runTool(_ command: String...) throws -> String {
  let child = try ChildProcess.start("/usr/bin/env", command)
  let ending = try child.wait()
  guard ending == .exited(0) else {
    throw ConformanceFailure("\(command[0]) \(ending): \(child.outputText) \(child.errorText)")
  }
  return child.outputText
}
