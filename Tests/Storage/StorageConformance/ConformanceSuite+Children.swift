@_exported import ChildProcesses
import Foundation
import Storage

extension ChildProcess {
  /// Starts the executable at `path`. Its environment is that of this process with `environment`; nil removes a variable. Its
  /// standard input is empty, or open until `endInput`.
  package static func start(
    _ path: String, _ arguments: [String], environment: [String: String?] = [:], hasInput: Bool = false
  ) throws -> ChildProcess {
    var launch = ProgramLaunch(path, arguments)
    // A crash must end the child at once. A backtrace takes a minute.
    launch.environment["SWIFT_BACKTRACE"] = "enable=no"
    for (name, value) in environment { launch.environment[name] = value }
    return try ChildProcess(launch, input: hasInput ? .written : .empty)
  }
}

extension ConformanceSuite {
  /// Starts a command of `ConformanceChild` on the suite's engine.
  func startChild(_ command: String, _ arguments: [String], key: [UInt8]?? = nil) throws -> ChildProcess {
    guard let childPath else { throw ConformanceFailure("there is no child to start") }
    let key = key ?? self.key
    return try ChildProcess.start(
      childPath,
      childArguments + [command, subject.engine.name, key.map { hexadecimal($0) } ?? "-"] + arguments)
  }

  /// Runs a command, which must end with status 0, and returns the lines of its output.
  func runChild(_ command: String, _ arguments: [String], key: [UInt8]?? = nil) throws -> [String] {
    let child = try startChild(command, arguments, key: key)
    let ending = try child.wait()
    guard ending == .exited(0) else {
      throw ConformanceFailure(
        "the child of “\(command)” \(ending), after “\(child.outputText)” and “\(child.errorText)”")
    }
    return child.outputText.split(separator: "\n").map(String.init)
  }
}
