import TestTools
import Testing

@testable import Network

@Suite struct AnswerHeadTests {
  private func read(_ text: String) throws -> (head: AnswerHead, length: Int)? {
    try AnswerHead.read([UInt8](text.utf8))
  }

  @Test func aHeadIsReadWithItsHeaders() throws {
    let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade:websocket\r\nX-A: \t b c \r\nx-a: d\r\n\r\n"
    let (head, length) = try #require(try read(text + "rest"))
    expect(length, equals: text.utf8.count)
    expect((head.status, head.reason) == (101, "Switching Protocols"))
    expect(head.values("upgrade"), equals: ["websocket"])
    expect(head.values("x-a"), equals: ["b c", "d"])
    expect(head.values("x-b"), equals: [])
  }

  @Test func aHeadThatIsntThereWholeIsWaitedFor() throws {
    let text = "HTTP/1.0 200\r\nA: b\r\n\r\n"
    for count in 0..<text.utf8.count { try expect(AnswerHead.read([UInt8](text.utf8.prefix(count))) == nil) }
    try expect(read(text)?.head, equals: AnswerHead(status: 200, reason: "", headers: [("a", "b")]))
  }

  @Test(arguments: [
    "\r\n\r\n", "SSH-2.0-x\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
    "HTTP/1.1 200 OK\r\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\u{1}\r\n\r\n", "HTTP/1.1 200 O\rK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\u{0}\r\n\r\n",
  ])
  func whatIsMalformedIsRefused(_ text: String) {
    #expect(throws: AnswerHead.Malformed.self) { try read(text) }
  }

  @Test func headersAndBytesHaveLimits() throws {
    func head(_ count: Int) -> String {
      "HTTP/1.1 200 OK\r\n" + (0..<count).map { "a\($0): b\r\n" }.joined() + "\r\n"
    }
    try expect(read(head(64))?.head.headers.count, equals: 64)
    #expect(throws: AnswerHead.Malformed(reason: "more than 64 headers")) { try read(head(65)) }
    func long(_ bytes: Int) -> String {
      let rest = bytes - "HTTP/1.1 200 OK\r\na: \r\n\r\n".utf8.count
      return "HTTP/1.1 200 OK\r\na: \(String(repeating: "b", count: rest))\r\n\r\n"
    }
    try expect(read(long(16384))?.length, equals: 16384)
    #expect(throws: AnswerHead.Malformed(reason: "a head of more than 16384 bytes")) { try read(long(16385)) }
    // Bytes without an end are refused, and not waited for.
    #expect(throws: AnswerHead.Malformed(reason: "a head of more than 16384 bytes")) {
      try read(String(repeating: "a", count: 16384))
    }
  }

  @Test func aWordIsFoundInAListInAnyCase() throws {
    let head = try #require(try read("HTTP/1.1 101 x\r\nConnection: keep-alive, UPGRADE\r\n\r\n")).head
    expect(head.lists("connection", "upgrade"))
    expect(!head.lists("connection", "close"))
    expect(!head.lists("upgrade", "websocket"))
  }
}
