import Fleece
import Foundation
import RawHTTP
import StorageConformance
import TestSupport

/// A process that serves the databases of a folder over sockets.
final class ServingChild: Sendable {
  let process: ChildProcess
  let port: UInt16

  /// `bodyMemory` is the memory for bodies of requests, in MiB.
  init(_ engine: EngineName, _ directory: String, connections: Int? = nil, bodyMemory: Int = 512) throws {
    process = try startChild(
      .sync, ["http", "serve", "\(engine)", directory, "\(connections ?? 10_000)", "\(bodyMemory)"])
    try process.waitForOutput(lines: 1)
    guard let port = process.outputText.split(separator: "\n").first.flatMap({ UInt16($0) }) else {
      throw ConformanceFailure("the server doesn't start: \(process.outputText) \(process.errorText)")
    }
    self.port = port
  }

  deinit { process.kill() }

  func client(from source: String? = nil, receiveBufferBytes: Int32? = nil) throws -> RawClient {
    try RawClient(port, from: source, receiveBufferBytes: receiveBufferBytes)
  }

  /// Kills it with SIGKILL, and waits for its end.
  func kill() throws {
    process.kill()
    try process.wait()
  }

  var anonymousBytes: Int { process.anonymousBytes }
}

extension RawClient {
  /// Sends a request with a body, and reads the answer.
  func ask(
    _ method: String, _ target: String, _ body: [UInt8] = [], type: String = "application/json",
    headers: [String] = []
  ) throws -> Answer {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
    if !body.isEmpty || method == "PUT" || method == "POST" {
      head += "Content-Length: \(body.count)\r\nContent-Type: \(type)\r\n"
    }
    for header in headers { head += header + "\r\n" }
    try send(Array((head + "\r\n").utf8) + body)
    return try answer(to: method)
  }
}

extension RawClient.Answer {
  func json() throws -> JSONValue {
    try body.withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) }
  }
}
