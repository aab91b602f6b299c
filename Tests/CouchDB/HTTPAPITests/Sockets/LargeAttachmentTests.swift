import Foundation
import RawHTTP
import Storage
import StorageConformance
import TestSupport
import Testing

/// An attachment that is much larger than the memory that it may take goes up and down through a socket.
@Suite("Large attachments", .serialized) struct LargeAttachmentTests {
  /// 1 GiB in the long run.
  private static let megabytes = times(128, sanitized: 192, long: 1_024)
  private static let allowedBytes = 100 << 20

  /// The pieces of an attachment: each begins with its number.
  private static func piece(_ number: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number &* 7), count: 1 << 20)
    for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
    return bytes
  }

  @Test(
    "the memory of the server doesn't grow with an attachment",
    arguments: isLong ? Array(allEngines) : [EngineName.lmdb], [false, true])
  func memory(_ engine: EngineName, _ isChunked: Bool) throws {
    let directory = TemporaryDirectory()
    let server = try ServingChild(engine, directory.path)
    let client = try server.client()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let most = Lock(0)
    let isDone = Lock(false)
    let watching = CountingSemaphore()
    Thread.detachNewThread {
      while !isDone.withLock({ $0 }) {
        let bytes = server.anonymousBytes
        most.withLock { $0 = max($0, bytes) }
        usleep(2_000)
      }
      watching.signal()
    }
    defer {
      isDone.withLock { $0 = true }
      watching.wait()
      let megabytes = most.withLock { $0 } >> 20
      print("\(engine)\(isChunked ? ", chunked" : ""): \(Self.megabytes) MiB in \(megabytes) MiB of memory")
      if !isSanitized { expect(most.withLock { $0 } < Self.allowedBytes) }
    }

    let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(Self.megabytes << 20)"
    try client.send(
      "PUT /db/doc/file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\(framing)\r\n\r\n"
    )
    for number in 0..<Self.megabytes {
      if isChunked { try client.send("100000\r\n") }
      try client.send(Self.piece(number))
      if isChunked { try client.send("\r\n") }
    }
    if isChunked { try client.send("0\r\n\r\n") }
    try expect(client.answer().status, equals: 201)

    // It comes back piece by piece.
    try client.send("GET /db/doc/file HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try expect(client.line(), equals: "HTTP/1.1 200 OK")
    var length = 0
    while case let line = try client.line(), !line.isEmpty {
      if line.lowercased().hasPrefix("content-length:") {
        length = Int(line.dropFirst(15).filter(\.isNumber)) ?? 0
      }
    }
    expect(length, equals: Self.megabytes << 20)
    for number in 0..<Self.megabytes {
      guard try client.bytes(1 << 20) == Self.piece(number) else {
        Issue.record("piece \(number) isn't what was sent")
        return
      }
    }
    let range = try client.ask("GET", "/db/doc/file", headers: ["Range: bytes=-1048576"])
    expect(range.status == 206 && range.body == Self.piece(Self.megabytes - 1))
  }
}
