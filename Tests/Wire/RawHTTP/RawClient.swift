import Foundation

/// A client that writes and reads bytes, for requests that no HTTP library would send.
open class RawClient {
  /// A call of the system that failed, or an answer that can't be read.
  public struct Failure: Error, CustomStringConvertible {
    /// What was tried, and why it failed.
    public var description: String
    package init(description: String) { self.description = description }
  }

  package struct Answer {
    package var status: Int
    package var headers: [(String, String)]
    package var body: [UInt8]
    package var text: String { String(decoding: body, as: UTF8.self) }

    package func header(_ name: String) -> String? {
      headers.first { $0.0.lowercased() == name.lowercased() }?.1
    }
  }

  package let descriptor: Int32
  private var buffer: [UInt8] = []
  /// Bytes of the buffer that were used.
  private var used = 0

  /// Connects to a port of this machine, from another of its addresses if one is given. Reads wait a minute at most.
  package init(_ port: UInt16, from source: String? = nil, receiveBufferBytes: Int32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var time = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    if var bytes = receiveBufferBytes { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, 4) }
    func call(
      _ host: String, _ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Bool {
      var address = sockaddr_in(
        sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian,
        sin_addr: in_addr(s_addr: inet_addr(host)), sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
      return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
    }
    if let source, !call(source, 0, bind) {
      throw Failure(description: "bind: \(String(cString: strerror(errno)))")
    }
    guard call("127.0.0.1", port, connect) else {
      throw Failure(description: "connect: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  package func send(_ text: String) throws { try send(Array(text.utf8)) }

  package func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        transmit(UnsafeRawBufferPointer(rebasing: $0[sent...]))
      }
      guard count > 0 else { throw Failure(description: "send: \(String(cString: strerror(errno)))") }
      sent += count
    }
  }

  /// Writes some bytes to the connection; below 1 if it fails.
  open func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
    Foundation.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Reads some bytes; 0 at the end, below 0 if it fails.
  open func receive(_ target: UnsafeMutableRawBufferPointer) -> Int {
    recv(descriptor, target.baseAddress, target.count, 0)
  }

  open func shutdownSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// More bytes; false at the end.
  @discardableResult
  package func fill() throws -> Bool {
    var part = [UInt8](repeating: 0, count: 65_536)
    let count = part.withUnsafeMutableBytes { receive($0) }
    if count == 0 { return false }
    guard count > 0 else {
      if errno == ECONNRESET { return false }
      throw Failure(description: "recv: \(String(cString: strerror(errno)))")
    }
    if used > 1 << 16 {
      buffer.removeFirst(used)
      used = 0
    }
    buffer += part[..<count]
    return true
  }

  /// Whether the server has closed the connection, after what was read.
  package func isClosed() throws -> Bool {
    guard used == buffer.count else { return false }
    return try !fill()
  }

  /// Everything up to the end.
  package func rest() throws -> [UInt8] {
    while try fill() {}
    defer { (buffer, used) = ([], 0) }
    return Array(buffer[used...])
  }

  package func line() throws -> String {
    while true {
      if let end = buffer[used...].firstIndex(of: 0x0A) {
        var line = Array(buffer[used..<end])
        used = end + 1
        if line.last == 0x0D { line.removeLast() }
        return String(decoding: line, as: UTF8.self)
      }
      guard try fill() else { throw Failure(description: "the end came in a line: \(buffer.count) bytes") }
    }
  }

  package func bytes(_ count: Int) throws -> [UInt8] {
    while buffer.count - used < count {
      guard try fill() else {
        throw Failure(description: "the end came after \(buffer.count - used) of \(count) bytes")
      }
    }
    defer { used += count }
    return Array(buffer[used..<used + count])
  }

  /// The next answer, without interim ones.
  package func answer(to method: String = "GET") throws -> Answer {
    while true {
      let answer = try anyAnswer(to: method)
      if answer.status >= 200 || answer.status == 101 { return answer }
    }
  }

  /// The next answer, or an interim one.
  package func anyAnswer(to method: String = "GET") throws -> Answer {
    let parts = try line().split(separator: " ")
    guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
      throw Failure(description: "no status line: \(parts)")
    }
    var answer = Answer(status: status, headers: [], body: [])
    while true {
      let line = try line()
      if line.isEmpty { break }
      guard let colon = line.firstIndex(of: ":") else { throw Failure(description: "no header: \(line)") }
      answer.headers.append(
        (String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)))
    }
    guard method != "HEAD", status >= 200, status != 204, status != 304 else { return answer }
    if let length = answer.header("Content-Length").flatMap({ Int($0) }) {
      answer.body = try bytes(length)
    } else if answer.header("Transfer-Encoding")?.lowercased() == "chunked" {
      while true {
        let text = try line()
        guard let size = Int(text, radix: 16) else {
          throw Failure(description: "no size of a chunk: \(text)")
        }
        answer.body += try bytes(size)
        guard try line().isEmpty else { throw Failure(description: "no line end behind a chunk") }
        if size == 0 { break }
      }
    } else {
      answer.body = try rest()
    }
    return answer
  }

  /// Sends a request without a body and reads the answer.
  package func get(_ target: String, method: String = "GET", headers: [String] = []) throws -> Answer {
    try send(
      "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n" + headers.map { $0 + "\r\n" }.joined() + "\r\n")
    return try answer(to: method)
  }
}
