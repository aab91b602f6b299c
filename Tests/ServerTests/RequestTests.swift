import Bytes
import Foundation
import Storage
import Testing

@testable import Server

@Suite struct RequestTests {
  @Test func aGetIsAnsweredAndTheConnectionStays() throws {
    let server = try TestServer()
    let client = try server.client()
    for number in 0..<3 {
      let answer = try client.get("/a?\(number)")
      #expect(answer.status == 200)
      #expect(answer.text == "GET\n/a?\(number)\n")
    }
    #expect(server.server.connections.map(\.requests) == [3])
  }

  @Test func methodsAndRawTargetsPassAsTheyCame() throws {
    let server = try TestServer { request, responder in
      let segments = request.target.segments.map { $0.map { Hex.text($0.bytes) }.joined(separator: "/") } ?? "bad"
      responder.answer(
        HTTPAnswer(status: 200, text: "\(request.method) \(Hex.text(request.target.raw)) \(segments)"))
    }
    let client = try server.client()
    let cases: [(String, [String]?)] = [
      ("/", []), ("/db/", ["db", ""]), ("/db/a%2Fb", ["db", "a/b"]), ("/db/..%2f..%2Fx", ["db", "../../x"]),
      ("/a/../b/./c", ["a", "..", "b", ".", "c"]), ("//", ["", ""]), ("/%00", ["\0"]), ("/%", nil), ("/%4", nil),
      ("/%zz", nil), ("/a+b", ["a+b"]), ("/%C3%A4", ["ä"]), ("/a?b/c=%2F", ["a"]), ("/;x=1", [";x=1"]),
    ]
    for method in ["GET", "COPY", "DELETE", "OPTIONS", "PROPFIND", "get"] {
      for (target, segments) in cases {
        let answer = try client.get(target, method: method)
        let expected = segments.map { $0.map { Hex.text(Array($0.utf8)) }.joined(separator: "/") } ?? "bad"
        #expect(answer.text == "\(method) \(Hex.text(Array(target.utf8))) \(expected)")
      }
    }
    // Bytes that aren't UTF-8, as they are and as escapes.
    try client.send(Array("GET /".utf8) + [0xFF, 0xFE] + Array("%FF HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    #expect(try client.answer().text == "GET 2ffffe254646 fffeff")
  }
}
