import Foundation

/// Runs other programs and waits for them.
package enum Program {
  /// Where a program's standard error goes.
  package enum Errors: Sendable {
    /// Into the output, mixed with standard output.
    case withOutput
    /// Into `Outcome.errors`. It must fit into a pipe: 64 KiB.
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
  /// The program reads `input` from standard input. It must read all of it before it writes more than fits
  /// into a pipe. Without `input` it has this process's standard input. `environment` is added to that of
  /// this process. Throws Foundation's error if the program can't be started.
  package static func run(
    _ path: String, _ arguments: [String] = [], input: String? = nil, environment: [String: String] = [:],
    errors: Errors = .withOutput
  ) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let inputPipe = Pipe()
    let outputPipe = Pipe()
    let errorPipe = Pipe()
    if input != nil { process.standardInput = inputPipe }
    process.standardOutput = outputPipe
    process.standardError = errors == .apart ? errorPipe : outputPipe
    try process.run()
    if let input {
      try inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
      try inputPipe.fileHandleForWriting.close()
    }
    let output = readAll(outputPipe)
    let complaints = errors == .apart ? readAll(errorPipe) : []
    process.waitUntilExit()
    return Outcome(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
      errors: String(decoding: complaints, as: UTF8.self))
  }

  /// Reads a pipe until its other end is closed. It retries after EINTR, which Foundation's own read doesn't.
  private static func readAll(_ pipe: Pipe) -> [UInt8] {
    let descriptor = pipe.fileHandleForReading.fileDescriptor
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count > 0 {
        bytes += chunk[..<count]
      } else if count == 0 || errno != EINTR {
        return bytes
      }
    }
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
