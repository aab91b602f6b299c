import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Clients go away before, and in the middle of, their answers. Nothing waits for them any more.
@Suite("Clients that go away") struct GoneClientTests {
  private func filled(_ engine: EngineName) throws -> APIClient {
    let client = try APIClient.withDatabase(engine)
    let text = String(repeating: "x", count: 10_000)
    let documents = (0..<50).map { "{\"_id\":\"d\($0)\",\"text\":\"\(text)\"}" }.joined(separator: ",")
    try expect(client.send("POST", "/db/_bulk_docs", "{\"docs\":[\(documents)]}").status, equals: 201)
    try client.save(
      "/db/_design/d", #"{"views":{"v":{"map":"function (doc) { emit(doc._id, doc.text); }"}}}"#)
    try expect(
      client.ask(
        "PUT", "/db/d0/f?rev=\(client.get("/db/d0").json()["_rev"].string ?? "")",
        body: [UInt8](repeating: 1, count: 1 << 20)
      ).status, equals: 201)
    return client
  }

  private static let targets = [
    "/db/_all_docs?include_docs=true", "/db/_changes?include_docs=true", "/db/_design/d/_view/v", "/db/d0/f",
    "/db/d0?attachments=true&open_revs=all",
  ]

  /// The head of the answer is never sent: whoever takes it drops it.
  @Test("an answer that is dropped ends", arguments: someEngines)
  func dropped(_ engine: EngineName) throws {
    let client = try filled(engine)
    for target in Self.targets {
      let parsed = try #require(HTTPTarget(Array(target.utf8)))
      let answers = Lock(0)
      client.service.answer(
        HTTPRequest(
          method: "GET", target: parsed, headers: HTTPHeaders(), body: BytesBody([]), context: .everybody,
          origin: Gone())
      ) { _ in answers.withLock { $0 += 1 } }
      expect(answers.withLock { $0 }, equals: 1, "\(target)")
    }
    try expect(client.ask("DELETE", "/db").status, equals: 200)
  }

  @Test("an answer whose client goes away lets everything go", arguments: someEngines)
  func cutOff(_ engine: EngineName) throws {
    let client = try filled(engine)
    for target in Self.targets + ["/db/_changes?feed=continuous&include_docs=true"] {
      let response = try client.stall("GET", target)
      response.waitUntilStalled()
      response.goAway()
      eventually { response.hasFailed }
    }
    eventually { client.service.watches.counts.open == 0 }
    try expect(client.ask("DELETE", "/db").status, equals: 200)
    try expect(client.ask("PUT", "/db").status, equals: 201)
  }

  private struct Gone: HTTPRequestOrigin {
    var isSecure: Bool { false }
    var network: ByteString { ByteString([]) }
    var isCancelled: Bool { true }
    func onCancel(_ body: @escaping @Sendable () -> Void) { body() }
  }
}
