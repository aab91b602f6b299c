// Starting `test-child` and the tools of libraries.

import Foundation
import StorageConformance

/// The path of `test-child` (Tests/Support/TestChild); nil if it wasn't built.
package let testChildPath = builtExecutable("test-child")

/// The path of an executable of this package; nil if it wasn't built.
package func builtExecutable(_ name: String) -> String? {
  // Executables are built beside the test bundle, which a runner loads, or which is the running executable.
  let candidates = Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments
  return candidates.lazy
    .map { ($0 as NSString).deletingLastPathComponent + "/" + name }
    .first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Starts a command of `test-child`, on the original engines. Its standard input is empty, or open until `endInput`.
package func startChild(
  _ arguments: String..., environment: [String: String] = [:], hasInput: Bool = false
) throws -> ChildProcess {
  try startChild(arguments, environment: environment, hasInput: hasInput)
}

package func startChild(
  _ arguments: [String], environment: [String: String] = [:], hasInput: Bool = false
) throws -> ChildProcess {
  guard let testChildPath else { throw ConformanceFailure("test-child isn't built") }
  var changes: [String: String?] = environment
  changes["TOUCHSTONE_STRICT"] = .some(nil)
  return try ChildProcess.start(testChildPath, arguments, environment: changes, hasInput: hasInput)
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
