import Foundation
import Storage
import StorageConformance
import Testing
import Transport
import WebSocket

@testable import Network

/// A server of a test, on loopback: it serves each connection with a closure, on a thread of its own.
final class RawServer: Sendable {
  let port: Int
  private let listener: CInt
  private let workers = Workers(maximum: 64)
  /// What came as the head of each request, in order.
  let requests = Lock<[String]>([])

  /// `serve` gets each connection with its number, from 0. The connection ends when it returns.
  init(_ serve: @escaping @Sendable (RawConnection, Int) -> Void) throws {
    let (listener, port) = try listen()
    (self.listener, self.port) = (listener, port)
    let (workers, requests) = (workers, requests)
    workers.enqueue {
      var number = 0
      while true {
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { break }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let connection = RawConnection(descriptor, requests)
        workers.enqueue { [number] in
          serve(connection, number)
          connection.close()
        }
        number += 1
      }
      Foundation.close(listener)
    }
  }

  deinit { shutdown(listener, CInt(SHUT_RDWR)) }

  /// The URL of a path of this server.
  func url(_ path: String = "/db/_blipsync") -> String { "ws://127.0.0.1:\(port)\(path)" }

  /// The headers of a request so far, by their names in lower case.
  func headers(_ index: Int) -> [String: String] {
    let heads = requests.withLock { $0 }
    guard index < heads.count else { return [:] }
    var headers: [String: String] = [:]
    for line in heads[index].components(separatedBy: "\r\n").dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
        in: .whitespaces)
    }
    return headers
  }
}

/// A socket that listens on loopback, and its port.
func listen() throws -> (CInt, Int) {
  let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  try #require(descriptor >= 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let code = withUnsafeMutablePointer(to: &address) { address in
    address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
      bind(descriptor, address, length) | Foundation.listen(descriptor, 64)
        | getsockname(descriptor, address, &length)
    }
  }
  try #require(code == 0)
  return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
}

/// A connection to a port of loopback; -1 if there is none.
func dial(_ port: Int) -> CInt {
  let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  address.sin_port = UInt16(port).bigEndian
  let code = withUnsafePointer(to: &address) { address in
    address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  if code == 0 { return descriptor }
  Foundation.close(descriptor)
  return -1
}

/// A connection that a `RawServer` has accepted.
final class RawConnection: Sendable {
  let descriptor: CInt
  private let requests: Lock<[String]>
  private let isClosed = Lock(false)

  init(_ descriptor: CInt, _ requests: Lock<[String]>) {
    self.descriptor = descriptor
    self.requests = requests
  }

  func close() {
    let isFirst = isClosed.withLock { isClosed in
      defer { isClosed = true }
      return !isClosed
    }
    if isFirst { Foundation.close(descriptor) }
  }

  /// Gives the socket away: it isn't closed here.
  func take() -> CInt {
    isClosed.withLock { $0 = true }
    return descriptor
  }

  /// Reads the head of a request; what there is, if the client ends before.
  @discardableResult
  func readHead() -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]), read(descriptor, &byte, 1) == 1 {
      bytes.append(byte)
    }
    let head = String(decoding: bytes, as: UTF8.self)
    if !head.isEmpty { requests.withLock { $0.append(head) } }
    return head
  }

  func readAll() -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count <= 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  func write(_ bytes: [UInt8]) {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes {
        send(descriptor, $0.baseAddress.map { $0 + offset }, bytes.count - offset, CInt(MSG_NOSIGNAL))
      }
      if count <= 0 { return }
      offset += count
    }
  }

  func write(_ text: String) { write([UInt8](text.utf8)) }

  /// Answers a request with 101 and further headers.
  func upgrade(_ head: String, _ headers: String...) {
    write(
      ([
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: \(acceptValue(head))",
      ]
        + headers).joined(separator: "\r\n") + "\r\n\r\n")
  }

  /// Reads a request and takes the upgrade, with the first protocol that is offered.
  func upgrade() {
    let head = readHead()
    guard let offered = headerValue(head, "Sec-WebSocket-Protocol") else { return upgrade(head) }
    upgrade(head, "Sec-WebSocket-Protocol: \(offered.components(separatedBy: ",")[0])")
  }

  /// Serves a WebSocket that sends back what comes, until its end.
  func echo() {
    guard let loop = try? SocketLoop.shared() else { return }
    echoAll(WebSocketTransport(SocketStream(take()), .server, loop: loop))
  }
}

/// Sends back what comes.
func echoAll(_ transport: WebSocketTransport) {
  transport.receive { result in
    guard case .success(let messages) = result else { return }
    transport.send(messages) { if $0 == nil { echoAll(transport) } }
  }
}

func headerValue(_ head: String, _ name: String) -> String? {
  head.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
}

func acceptValue(_ head: String) -> String {
  headerValue(head, "Sec-WebSocket-Key").flatMap(WebSocketKey.accept) ?? ""
}

typealias Connected = Result<WebSocketConnection, TransportClose>

func connect(_ request: WebSocketRequest) async -> Connected {
  await withCheckedContinuation { continuation in
    WebSocketClient.connect(request) { continuation.resume(returning: $0) }
  }
}

/// A request without the environment's proxy.
func request(_ url: String, _ protocols: [String] = []) -> WebSocketRequest {
  var request = WebSocketRequest(url: url, protocols: protocols)
  request.proxy = .none
  // The machine may be loaded.
  request.connectTimeout = 120
  return request
}

extension Connected {
  /// The error; nil if it is a connection, which is then closed.
  var failure: TransportClose? {
    switch self {
    case .success(let connection):
      connection.transport.close(.normal)
      return nil
    case .failure(let close): return close
    }
  }
}

extension TransportClose {
  /// Domain, code and whether it is transient, for comparisons.
  var kind: String { "\(domain.rawValue) \(code)\(isTransient ? " transient" : "")" }
}

extension WebSocketTransport {
  func next() async -> Result<[[UInt8]], TransportClose> {
    await withCheckedContinuation { continuation in receive { continuation.resume(returning: $0) } }
  }

  func messages(_ count: Int) async -> [[UInt8]] {
    var messages: [[UInt8]] = []
    while messages.count < count, case .success(let more) = await next() { messages += more }
    return messages
  }

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

/// Sends messages of many lengths to a peer that sends them back, and checks that they come.
func exchange(_ transport: WebSocketTransport, count: Int = 300) async {
  let messages = (0..<count).map { [UInt8](repeating: UInt8($0 & 255), count: $0 * 37 % 16_000) }
  async let received = transport.messages(count)
  #expect(await transport.send(messages) == nil)
  #expect(await received == messages)
}

/// A child process that ends with its object, or with this process: its standard input ends then.
final class Child: Sendable {
  private let process: ChildProcess
  private let workers = Workers()

  init(_ command: [String]) throws {
    process = try ChildProcess.start(command[0], Array(command.dropFirst()), hasInput: true)
  }

  deinit {
    process.kill()
    _ = try? process.wait()
  }

  /// The first line that it prints; empty if it ends before.
  func line() async throws -> String {
    try await workers.run { [process] _ in
      try process.waitForOutput()
      return process.wholeLines.first.map(String.init) ?? ""
    }
  }
}

/// Where a program is on the PATH; nil if it isn't.
func program(_ name: String) -> String? {
  if name.hasPrefix("/") { return FileManager.default.isExecutableFile(atPath: name) ? name : nil }
  return (EnvironmentVariable.value("PATH") ?? "").split(separator: ":").map { "\($0)/\(name)" }
    .first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Runs a program to its end. Returns whether it was successful.
func succeeds(_ command: [String]) -> Bool {
  guard let child = try? ChildProcess.start(command[0], Array(command.dropFirst())) else { return false }
  return (try? child.wait()) == .exited(0)
}

/// A directory that ends with its object.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("network-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
