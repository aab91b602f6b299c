import BenchmarkKit
import ChildProcesses
import FoundationEssentials
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone serve` as a child process that serves one database on loopback.
final class ReplicateServer: Sendable {
  /// A server that doesn't start or doesn't end.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The URL of the server: `http://127.0.0.1:PORT/`.
  let url: String
  /// The URL for replication: `ws://127.0.0.1:PORT/`.
  var webSocketURL: String { "ws" + url.dropFirst(4) }
  private let process: ChildProcess

  private static let longestWait = 120.0

  /// Starts `executable` for the database at `path`, and waits until it listens. `directory` is for the file of the key.
  init(
    _ executable: String, path: String, engine: ProbedEngine, durability: Durability, isSecure: Bool,
    in directory: String
  ) throws {
    var arguments = ["serve", path, "--listen", "127.0.0.1:0", "--durability", durability.rawValue]
    if isSecure { arguments += ["--tls", "self-signed"] }
    if let key = engine.options.key {
      let file = directory + "/key"
      try Data(key).write(to: URL(fileURLWithPath: file))
      arguments += ["--key-file", file]
    }
    process = try ChildProcess(ProgramLaunch(executable, arguments))
    try process.waitForOutput(seconds: Self.longestWait)
    guard let line = process.wholeLines.first, line.contains("://") else {
      throw Failure(description: "\(executable) serve doesn't start: \(process.errorText)")
    }
    url = String(line)
  }

  /// The processor time that it has used, in nanoseconds.
  var cpuNanoseconds: UInt64 { Clock.cpuNanoseconds(of: process.identifier) ?? 0 }

  /// Its anonymous resident memory now, in bytes.
  var anonymousMemory: Int? { ProcessUsage.anonymousMemory(of: process.identifier) }

  /// Ends it and waits for that. Throws if it doesn't end by itself, or with another status than 0.
  func stop() throws {
    process.kill(SIGTERM)
    let ending = try process.wait(seconds: Self.longestWait)
    guard ending == .exited(0) else {
      throw Failure(description: "the server \(ending): \(process.errorText)")
    }
  }
}
