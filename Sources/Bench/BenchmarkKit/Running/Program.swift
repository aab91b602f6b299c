import ChildProcesses
import FoundationEssentials

/// Runs other programs and waits for them.
package enum Program {
  /// Where a program's standard error goes.
  package enum Errors: Sendable {
    /// Into the output, mixed with standard output.
    case withOutput
    /// Into `Outcome.errors`.
    case apart
  }

  /// The outcome of a program.
  package struct Outcome: Sendable {
    /// Its exit status, or the signal that ended it.
    package let status: Int32
    /// Its standard output, and its standard error with `Errors.withOutput`.
    package let output: String
    /// Its standard error with `Errors.apart`.
    package let errors: String

    /// The last three lines of its output, joined into one, for error messages.
    package var lastLines: String { output.split(separator: "\n").suffix(3).joined(separator: " ") }
  }

  /// Runs the executable at `path` and waits for its end.
  ///
  /// The program reads `input` from standard input. Without it, it has this process's standard input. `environment` is
  /// added to that of this process. Throws a `SpawnedProcess.Failure` if the program can't be started.
  package static func run(
    _ path: String, _ arguments: [String] = [], input: String? = nil, environment: [String: String] = [:],
    errors: Errors = .withOutput
  ) throws -> Outcome {
    var launch = ProgramLaunch(path, arguments)
    launch.environment.merge(environment) { $1 }
    let process = try ChildProcess(
      launch, input: input == nil ? .inherited : .written, mixesErrors: errors == .withOutput)
    if let input { try process.write(Array(input.utf8), seconds: 600) }
    process.endInput()
    let status =
      switch try process.wait(seconds: nil) {
      case .exited(let status): status
      case .signalled(let signal): signal
      case .unknown: Int32(-1)
      }
    return Outcome(status: status, output: process.outputText, errors: process.errorText)
  }

  /// Runs a program by its name on the search path, like `run`. The status is 127 if there is none.
  package static func run(
    named name: String, _ arguments: [String], errors: Errors = .withOutput
  ) throws -> Outcome {
    try run("/usr/bin/env", [name] + arguments, errors: errors)
  }

  /// The path of an executable on the search path, or nil.
  static func path(of name: String) -> String? {
    let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(
      separator: ":")
    return directories.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
