import Glibc
import Storage

/// A client of HTTP/1.1 for benchmarks: one connection that is kept, one request at a time. It reads what the listener of this project
/// writes, no more: a length or chunks.
final class HTTPLoadClient {
  /// A connection that fails, or an answer that can't be read.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The socket, open as long as the client is there.
  let descriptor: Int32
  private var buffer: [UInt8]
  private var begin = 0
  private var end = 0

  /// Connects to a port of 127.0.0.1, from 127.0.0.`source`: a listener lets in so many connections of an address.
  init(port: Int, source: Int = 1, bufferBytes: Int = 256 << 10) throws {
    buffer = [UInt8](repeating: 0, count: bufferBytes)
    descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else {
      throw Failure(description: "no socket: \(String(cString: strerror(errno)))")
    }
    if source != 1 {
      var own = sockaddr_in()
      own.sin_family = sa_family_t(AF_INET)
      own.sin_addr.s_addr = (0x7F00_0000 | UInt32(source)).bigEndian
      let status = withUnsafePointer(to: &own) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard status == 0 else {
        let reason = String(cString: strerror(errno))
        Glibc.close(descriptor)
        throw Failure(description: "can't use the address 127.0.0.\(source): \(reason)")
      }
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else {
      let reason = String(cString: strerror(errno))
      Glibc.close(descriptor)
      throw Failure(description: "can't connect to port \(port): \(reason)")
    }
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { Glibc.close(descriptor) }

  /// The bytes of a request.
  static func request(_ method: String, _ target: String, body: [UInt8]? = nil) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
    if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n" }
    return Array((head + "\r\n").utf8) + (body ?? [])
  }

  /// Sends the bytes of a request.
  func send(_ request: [UInt8]) throws {
    var sent = 0
    while sent < request.count {
      let count = request.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Failure(description: "can't send: \(String(cString: strerror(errno)))") }
      sent += count
    }
  }

  /// Sends a request and reads its answer. Throws unless the status is `status`. Returns the size of the body in bytes.
  @discardableResult
  func ask(_ request: [UInt8], expecting status: Int) throws -> Int {
    try send(request)
    return try receive(expecting: status)
  }

  /// Reads an answer. Returns the size of its body.
  func receive(expecting status: Int) throws -> Int {
    let head = try readHead()
    guard head.status == status else {
      throw Failure(description: "an answer with status \(head.status) in place of \(status)")
    }
    if let length = head.length {
      try skip(length)
      return length
    }
    var total = 0
    while true {
      let line = try readLine()
      guard let size = Int(String(decoding: line, as: UTF8.self), radix: 16) else {
        throw Failure(description: "a chunk without a size")
      }
      try skip(size + 2)
      if size == 0 { return total }
      total += size
    }
  }

  /// Reads a head. A nil length means chunks.
  func readHead() throws -> (status: Int, length: Int?) {
    let first = try readLine()
    guard first.count > 12,
      let status = Int(String(decoding: first[first.startIndex + 9..<first.startIndex + 12], as: UTF8.self))
    else { throw Failure(description: "an answer without a status") }
    var length: Int?
    while true {
      let line = try readLine()
      if line.isEmpty { return (status, length) }
      if line.count > 15, line[line.startIndex + 7] == UInt8(ascii: "-"),
        line.first.map({ $0 | 0x20 }) == UInt8(ascii: "c"),
        let value = Int(String(decoding: line.dropFirst(16), as: UTF8.self)),
        line.prefix(15).elementsEqual("Content-Length:".utf8)
      {
        length = value
      }
    }
  }

  private func fill() throws {
    if begin == end { (begin, end) = (0, 0) }
    if end == buffer.count {
      guard begin > 0 else { throw Failure(description: "a line of more than \(buffer.count) bytes") }
      buffer.replaceSubrange(0..<(end - begin), with: Array(buffer[begin..<end]))
      (begin, end) = (0, end - begin)
    }
    while true {
      let count = buffer.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress.map { $0 + end }, $0.count - end, 0)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Failure(description: "the connection ended") }
      end += count
      return
    }
  }

  private func readLine() throws -> ArraySlice<UInt8> {
    var searched = begin
    while true {
      if let feed = buffer[searched..<end].firstIndex(of: UInt8(ascii: "\n")) {
        defer { begin = feed + 1 }
        return buffer[begin..<max(begin, feed - 1)]
      }
      let before = end - begin
      try fill()
      searched = begin + before
    }
  }

  private func skip(_ count: Int) throws {
    var rest = count
    while rest > 0 {
      if begin == end { try fill() }
      let step = min(rest, end - begin)
      begin += step
      rest -= step
    }
  }
}
