import Bytes
import Foundation
import HTTP
import Storage
import Testing

/// A request as a server of a test sees it.
struct MiniRequest: Sendable {
  var number = 0
  var method = ""
  var path = ""
  var query: [String: String] = [:]
  var headers = HTTPHeaders()
  var body: [UInt8] = []

  /// The segments of the path, decoded.
  var segments: [String] {
    path.split(separator: "/", omittingEmptySubsequences: true).map {
      $0.removingPercentEncoding ?? String($0)
    }
  }
}

/// An answer, and what goes wrong with it.
struct MiniAnswer: Sendable {
  enum Fault: Sendable, CaseIterable {
    /// The connection ends before the request was looked at, after it, or within the answer.
    case droppedBefore, droppedAfter, truncated
    /// The connection ends between the chunks of an answer that has them.
    case cutChunks
    /// Another answer begins between the chunks. So CouchDB ends a feed whose database is deleted.
    case answerInChunks
    /// The answer is 500 or 503 and nothing was done.
    case failed, unavailable
    /// The length is larger than what comes.
    case tooLong
    /// The answer is 200, 400 or 404 with another text, as from a proxy, and nothing was done.
    case nonsense, refusedByProxy, lostByProxy
    /// The answer isn't HTTP.
    case garbage

    /// Whether a client may take what has gone wrong for a fault that stays.
    var mayBePermanent: Bool {
      [.nonsense, .refusedByProxy, .lostByProxy, .garbage, .answerInChunks].contains(self)
    }
  }

  var status = 200
  var headers: [(String, String)] = [("Content-Type", "application/json")]
  var body: [UInt8] = []

  init(_ status: Int, _ body: String = "{\"ok\":true}\n") {
    self.status = status
    self.body = Array(body.utf8)
  }
}

/// A server of HTTP/1.1 on loopback, with a thread for each connection. It may fail in every way.
final class MiniServer: Sendable {
  typealias Handler = @Sendable (MiniRequest) -> MiniAnswer

  let port: Int
  private let listener: CInt
  private let workers = Workers(maximum: 64)
  private let state = Lock((number: 0, log: [String](), open: Set<CInt>()))
  private let handler: Handler
  /// What goes wrong with a request. The number counts from 0.
  let faults = Lock<@Sendable (MiniRequest) -> MiniAnswer.Fault?>({ _ in nil })

  init(_ handler: @escaping Handler) throws {
    self.handler = handler
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(descriptor >= 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) | Foundation.listen(descriptor, 64)
          | getsockname(descriptor, $0, &length)
      }
    }
    try #require(code == 0)
    listener = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
    workers.enqueue { [weak self] in
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { break }
        guard let self else {
          close(connection)
          break
        }
        self.state.withLock { _ = $0.open.insert(connection) }
        self.workers.enqueue { [weak self] in
          self?.serve(connection)
          self?.state.withLock { _ = $0.open.remove(connection) }
          close(connection)
        }
      }
      close(descriptor)
    }
  }

  deinit { stop() }

  func stop() {
    shutdown(listener, CInt(SHUT_RDWR))
    for connection in state.withLock({ $0.open }) { shutdown(connection, CInt(SHUT_RDWR)) }
  }

  var url: String { "http://127.0.0.1:\(port)/" }
  /// The methods and paths of all requests.
  var log: [String] { state.withLock { $0.log } }
  func forget() { state.withLock { $0.log = [] } }

  private func serve(_ connection: CInt) {
    while var request = read(connection) {
      request.number = state.withLock { state in
        state.log.append("\(request.method) \(request.path)")
        state.number += 1
        return state.number - 1
      }
      let fault = faults.withLock { $0 }(request)
      switch fault {
      case .droppedBefore: return
      case .failed: write(connection, MiniAnswer(500, "{\"error\":\"oops\",\"reason\":\"made up\"}"), nil)
      case .unavailable: write(connection, MiniAnswer(503, "<html>"), nil)
      case .nonsense: write(connection, MiniAnswer(200, "<html>Sign in to the network</html>"), nil)
      case .refusedByProxy: write(connection, MiniAnswer(400, "<html>Bad request</html>"), nil)
      case .lostByProxy: write(connection, MiniAnswer(404, "<html>Not found</html>"), nil)
      case .garbage:
        _ = send(connection, "\u{1}\u{2}\u{3} garbage\r\n\r\nand more", 22, CInt(MSG_NOSIGNAL))
        return
      case .droppedAfter:
        _ = handler(request)
        return
      case .answerInChunks:
        let answer = handler(request)
        write(connection, answer, answer.status == 200 ? fault : nil)
        return
      case .truncated, .tooLong, .cutChunks:
        write(connection, handler(request), fault)
        return
      case nil: write(connection, handler(request), nil)
      }
    }
  }

  private func write(_ connection: CInt, _ answer: MiniAnswer, _ fault: MiniAnswer.Fault?) {
    let length = answer.body.count + (fault == .tooLong ? 10 : 0)
    let isChunked = fault == .cutChunks || fault == .answerInChunks
    var head = "HTTP/1.1 \(answer.status) X\r\n"
    head += isChunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: \(length)\r\n"
    for (name, value) in answer.headers { head += "\(name): \(value)\r\n" }
    var bytes = Array((head + "\r\n").utf8)
    if isChunked {
      let half = answer.body.prefix(max(1, answer.body.count / 2))
      bytes += Array("\(String(half.count, radix: 16))\r\n".utf8) + half + [13, 10]
      if fault == .answerInChunks { bytes += Array("HTTP/1.1 404 Object Not Found\r\n\r\n{}".utf8) }
    } else {
      bytes += fault == .truncated ? answer.body.prefix(answer.body.count / 2) : answer.body[...]
    }
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes {
        send(connection, $0.baseAddress.map { $0 + offset }, bytes.count - offset, CInt(MSG_NOSIGNAL))
      }
      if count <= 0 { return }
      offset += count
    }
  }

  private func read(_ connection: CInt) -> MiniRequest? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
      guard recv(connection, &byte, 1, 0) == 1 else { return nil }
      bytes.append(byte)
    }
    let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
    let start = lines[0].split(separator: " ")
    guard start.count == 3 else { return nil }
    var request = MiniRequest()
    request.method = String(start[0])
    let target = start[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    request.path = String(target[0])
    for item in target.count > 1 ? target[1].split(separator: "&") : [] {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      request.query[String(parts[0])] = parts.count > 1 ? parts[1].removingPercentEncoding ?? "" : ""
    }
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      request.headers.add(
        String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }
    let length = request.headers.first("content-length").flatMap { Int($0) } ?? 0
    var body = [UInt8](repeating: 0, count: length)
    var offset = 0
    while offset < length {
      let count = body.withUnsafeMutableBytes {
        recv(connection, $0.baseAddress.map { $0 + offset }, length - offset, 0)
      }
      guard count > 0 else { return nil }
      offset += count
    }
    request.body = body
    return request
  }
}
