import BenchmarkKit
import Foundation
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone serve` as a child process that serves one database on loopback.
final class ReplicateServer: @unchecked Sendable {
  // Only the thread of the run uses `process`. What is read of the child takes its number alone.

  /// A server that doesn't start or doesn't end.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The URL of the server: `http://127.0.0.1:PORT/`.
  let url: String
  /// The URL for replication: `ws://127.0.0.1:PORT/`.
  var webSocketURL: String { "ws" + url.dropFirst(4) }
  private let process: Process
  private let pid: pid_t
  private let errors: String

  private static let longestWait = 120.0

  /// Starts `executable` for the database at `path`, and waits until it listens. `directory` is for its messages, and
  /// for the file of the key.
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
    errors = directory + "/messages"
    guard FileManager.default.createFile(atPath: errors, contents: nil),
      let messages = FileHandle(forWritingAtPath: errors)
    else { throw Failure(description: "\(errors) can't be written") }
    process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardError = messages
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    try messages.close()
    pid = process.processIdentifier
    guard let line = Self.firstLine(output.fileHandleForReading.fileDescriptor), line.contains("://") else {
      process.terminate()
      process.waitUntilExit()
      let text = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
      throw Failure(description: "\(executable) serve doesn't start: \(text)")
    }
    url = line
  }

  deinit { if process.isRunning { kill(pid, SIGKILL) } }

  /// Reads the first line of a pipe. Nil if there is none, or if it takes too long.
  private static func firstLine(_ descriptor: Int32) -> String? {
    let end = Clock.nanoseconds() + UInt64(longestWait * 1e9)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while Clock.nanoseconds() < end, bytes.count < 1 << 16 {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&wait, 1, 1_000) > 0 else { continue }
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      bytes += chunk[..<count]
      if let line = bytes.firstIndex(of: UInt8(ascii: "\n")) {
        return String(decoding: bytes[..<line], as: UTF8.self)
      }
    }
    return nil
  }

  /// The processor time that it has used, in nanoseconds.
  var cpuNanoseconds: UInt64 { Clock.cpuNanoseconds(of: pid) ?? 0 }

  /// Its anonymous resident memory now, in bytes.
  var anonymousMemory: Int? { ProcessUsage.anonymousMemory(of: pid) }

  /// Ends it and waits for that. Throws if it doesn't end by itself, or with another status than 0.
  func stop() throws {
    process.terminate()
    let end = Clock.nanoseconds() + UInt64(Self.longestWait * 1e9)
    while process.isRunning, Clock.nanoseconds() < end { usleep(1_000) }
    guard !process.isRunning else {
      kill(pid, SIGKILL)
      throw Failure(description: "the server doesn't end")
    }
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      let text = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
      throw Failure(description: "the server ended with \(process.terminationStatus): \(text)")
    }
  }
}
