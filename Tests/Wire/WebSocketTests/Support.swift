import Bytes
import Foundation
import Storage
import StorageConformance
import Testing
import Transport

@testable import WebSocket

func bytes(_ hex: String) -> [UInt8] {
  let digits = Array(hex.filter { !$0.isWhitespace })
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0..<$0 + 2]), radix: 16) ?? 0 }
}

func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// What a session says to bytes, until it throws.
func events(_ session: WebSocketSession, _ bytes: [UInt8]) throws -> [WebSocketEvent] {
  var events: [WebSocketEvent] = []
  try bytes.withUnsafeBytes { bytes in try session.receive(bytes) { events.append($0) } }
  return events
}

/// The violation that bytes are; nil if they are none.
func violation(
  _ bytes: [UInt8], _ role: WebSocketSession.Role = .client, _ limits: WebSocketLimits = WebSocketLimits()
) -> WebSocketViolation? {
  do { _ = try events(WebSocketSession(role, limits: limits), bytes) } catch {
    return error as? WebSocketViolation
  }
  return nil
}

/// What a session writes.
func written(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
  var buffer = ByteBuffer()
  write(&buffer)
  return [UInt8](buffer.bytes)
}

/// A frame as text of its parts.
func frame(
  _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, reserved: UInt8 = 0, mask: [UInt8]? = nil
) -> [UInt8] {
  var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
  let maskBit: UInt8 = mask == nil ? 0 : 0x80
  switch payload.count {
  case ..<126: bytes.append(maskBit | UInt8(payload.count))
  case ..<65536: bytes += [maskBit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
  default:
    bytes.append(maskBit | 127)
    bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
  }
  guard let mask else { return bytes + payload }
  return bytes + mask + payload.enumerated().map { $0.element ^ mask[$0.offset % 4] }
}

extension WebSocketTransport {
  /// What comes next: messages, or the end.
  func next() async -> Result<[[UInt8]], TransportClose> {
    await withCheckedContinuation { continuation in receive { continuation.resume(returning: $0) } }
  }

  /// So many messages, or fewer if the end comes before.
  func messages(_ count: Int) async -> [[UInt8]] {
    var messages: [[UInt8]] = []
    while messages.count < count, case .success(let more) = await next() { messages += more }
    return messages
  }

  /// The end; messages before it are dropped.
  func waitForEnd() async -> TransportClose {
    while true {
      if case .failure(let end) = await next() { return end }
    }
  }

  @discardableResult
  func send(_ messages: [[UInt8]]) async -> TransportClose? {
    await withCheckedContinuation { continuation in
      send(messages) { continuation.resume(returning: $0) }
    }
  }
}

/// Options with much time for closing: the machine may be loaded.
var patientOptions: WebSocketOptions {
  var options = WebSocketOptions()
  options.closeTimeout = 240
  return options
}

/// Two connected sockets.
func socketPair() throws -> (CInt, CInt) {
  var pair: [CInt] = [0, 0]
  try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
  return (pair[0], pair[1])
}

/// A client and a server that are connected.
func transports(
  client: WebSocketOptions = patientOptions, server: WebSocketOptions = patientOptions
) throws -> (client: WebSocketTransport, server: WebSocketTransport) {
  let (left, right) = try socketPair()
  return (
    WebSocketTransport(SocketStream(left), .client, options: client, loop: try .shared()),
    WebSocketTransport(SocketStream(right), .server, options: server, loop: try .shared())
  )
}

/// The other end of a socket, which a test reads and writes byte by byte.
final class RawPeer: Sendable {
  let descriptor: CInt
  private let workers = Workers()

  init(_ descriptor: CInt) { self.descriptor = descriptor }

  deinit { Foundation.close(descriptor) }

  /// A transport and the other end of its socket.
  static func pair(
    _ role: WebSocketSession.Role, _ options: WebSocketOptions = patientOptions, received: [UInt8] = []
  ) throws -> (WebSocketTransport, RawPeer) {
    let (left, right) = try socketPair()
    let transport = WebSocketTransport(
      SocketStream(left), role, options: options, received: received, loop: try .shared())
    return (transport, RawPeer(right))
  }

  /// Reads so many bytes; fewer at the end.
  func read(_ count: Int) async throws -> [UInt8] {
    try await workers.run { [descriptor] _ in
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: min(65536, max(1, count)))
      while bytes.count < count {
        let got = Foundation.read(descriptor, &chunk, min(chunk.count, count - bytes.count))
        if got <= 0 { break }
        bytes += chunk[..<got]
      }
      return bytes
    }
  }

  /// Reads to the end.
  func readAll() async throws -> [UInt8] { try await read(Int.max / 2) }

  func write(_ bytes: [UInt8]) async throws {
    try await workers.run { [descriptor] _ in
      var offset = 0
      while offset < bytes.count {
        let count = bytes.withUnsafeBytes {
          Foundation.send(
            descriptor, $0.baseAddress.map { $0 + offset }, bytes.count - offset, CInt(MSG_NOSIGNAL))
        }
        if count <= 0 { break }
        offset += count
      }
    }
  }

  func endWriting() { shutdown(descriptor, CInt(SHUT_WR)) }
}
