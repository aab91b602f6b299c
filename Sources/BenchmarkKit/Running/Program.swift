import Foundation

/// Runs other programs to their end.
public enum Program {
  /// Where goes what a program writes to standard error.
  public enum Errors: Sendable {
    /// Into the output, between what is written there.
    case withOutput
    /// Apart from the output. It has to fit a pipe: 64 KiB.
    case apart
  }

  /// What a program left behind.
  public struct Outcome: Sendable {
    /// Its exit status, or the signal that ended it.
    public let status: Int32
    /// What it wrote to standard output, and to standard error with `Errors.withOutput`.
    public let output: String
    /// What it wrote to standard error with `Errors.apart`.
    public let errors: String

    /// The last lines of its output, as one: for what is said of a failure.
    public var lastLines: String { output.split(separator: "\n").suffix(3).joined(separator: " ") }
  }

  /// Runs the executable at `path` and waits for its end.
  ///
  /// `input` is what it reads from standard input, which it has to read before it writes more than fits a pipe; without
  /// one it has this process's own. `environment` adds to this process's. Throws Foundation's error when it can't be
  /// started.
  public static func run(
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

  /// What is written into a pipe until its other end is closed. A signal interrupts a read, which Foundation's own doesn't
  /// survive.
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

  /// Runs the program of a name on the search path, as `run` does; the status is 127 when there is none.
  public static func run(
    named name: String, _ arguments: [String], errors: Errors = .withOutput
  ) throws -> Outcome {
    try run("/usr/bin/env", [name] + arguments, errors: errors)
  }

  /// The path of a program on the search path that can be run, or nil.
  static func path(of name: String) -> String? {
    let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(
      separator: ":")
    return directories.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
