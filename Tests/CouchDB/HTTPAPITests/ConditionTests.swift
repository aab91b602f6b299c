import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Conditions, codings, and HEAD.
@Suite("What clients say of the answers that they take") struct ConditionTests {
  private func request(_ headers: [(String, String)]) throws -> HTTPRequest {
    var fields = HTTPHeaders()
    for (name, value) in headers { fields.add(name, value) }
    let target = try #require(HTTPTarget(Array("/".utf8)))
    return HTTPRequest(
      method: "GET", target: target, headers: fields, body: BytesBody([]), context: .everybody,
      origin: NeverCancelled())
  }

  private struct NeverCancelled: HTTPRequestOrigin {
    var isSecure: Bool { false }
    var network: ByteString { ByteString([]) }
    var isCancelled: Bool { false }
    func onCancel(_ body: @escaping @Sendable () -> Void) {}
  }

  @Test("gzip is taken by those who say so") func gzip() throws {
    for (value, isTaken) in [
      ("gzip", true), ("x-gzip", true), ("GZIP", true), ("*", true), ("br, gzip;q=0.5", true),
      ("gzip; q=0", false),
      ("gzip;q=0, *", false), ("*, gzip;q=0", false), ("*;q=0", false), ("identity", false), ("br", false),
      ("gzip;q=x", false), ("", false),
    ] {
      try expect(request([("Accept-Encoding", value)]).acceptsGzip, equals: isTaken, "\(value)")
    }
    try expect(!request([]).acceptsGzip)
  }

  @Test("tags are compared as a whole, weak ones too") func tags() throws {
    for (value, matches) in [
      (#""a""#, true), (#"W/"a""#, true), (#""b" , "a""#, true), ("*", true), ("a", false), (#""b""#, false),
      (#""ab""#, false), ("", false),
    ] {
      try expect(request([("If-None-Match", value)]).matches(#""a""#), equals: matches, "\(value)")
    }
    try expect(request([("If-None-Match", #""b""#), ("If-None-Match", #""a""#)]).matches(#""a""#))
    try expect(!request([]).matches(#""a""#))
  }

  @Test("media types are taken by those who say so, or nothing") func types() throws {
    for (value, isTaken) in [
      ("application/json", true), ("*/*", true), ("application/*", true),
      ("text/html, application/json;q=0.1", true),
      ("text/html", false), ("application/json;q=0", false), ("APPLICATION/JSON", true),
    ] {
      try expect(request([("Accept", value)]).accepts("application/json"), equals: isTaken, "\(value)")
    }
    try expect(request([]).accepts("application/json"))
  }

  @Test("HEAD is answered as GET, without a body", arguments: [EngineName.lmdb], [false, true])
  func head(_ engine: EngineName, _ isCompressed: Bool) throws {
    let client = try APIClient(engine)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let text = String(repeating: "the same again ", count: 10_000)
    let revision = try client.save("/db/doc", "{\"text\":\"\(text)\"}")
    try client.save(
      "/db/small",
      #"{"_attachments":{"t.txt":{"content_type":"text/plain","data":"YWJj"},"b":{"data":"YWJj"}}}"#)
    try client.save("/db/_local/l", #"{"n":1}"#)
    try client.save("/db/_design/d", #"{"views":{"v":{"map":"function (doc) { emit(doc._id); }"}}}"#)
    let headers = isCompressed ? [("Accept-Encoding", "gzip")] : []
    for target in [
      "/", "/_up", "/_all_dbs", "/_active_tasks", "/db", "/db/doc", "/db/doc?rev=\(revision)",
      "/db/doc?revs_info=true",
      "/db/doc?open_revs=all", "/db/nosuch", "/db/doc?rev=1-no", "/nosuch", "/db/small?attachments=true",
      "/db/small/t.txt", "/db/small/b", "/db/small/no", "/db/_local/l", "/db/_local/no", "/db/_design/d",
      "/db/_all_docs", "/db/_all_docs?include_docs=true", "/db/_changes", "/db/_changes?include_docs=true",
      "/db/_design/d/_view/v", "/db/_local_docs", "/db/_design_docs", "/db/_all_docs?limit=x",
      "/db/_changes?feed=x",
    ] {
      for accept in ["application/json", "*/*"] {
        let all = headers + [("Accept", accept)]
        let get = try client.ask("GET", target, headers: all)
        let head = try client.ask("HEAD", target, headers: all)
        _ = get.body()
        expect(head.status, equals: get.status, "\(target)")
        expect(head.body().isEmpty || head.status >= 400 || !head.hasFailed, "\(target)")
        for name in [
          "Content-Type", "ETag", "Accept-Ranges", "Vary", "Cache-Control", "Content-Security-Policy",
        ] {
          func value(_ response: Response) -> String? {
            response.header(name).map { String($0.prefix { $0 != ";" }) }
          }
          // The tag of a list of changes is made with its rows.
          expect(value(head), equals: value(get), "\(target): \(name)")
        }
        let coding = get.header("Content-Encoding")
        let isStream =
          target.contains("_all_docs") || target.contains("_changes") || target.contains("_view")
          || target.contains("_docs")
        if !isStream { expect(head.header("Content-Encoding"), equals: coding, "\(target)") }
        if let tag = get.header("ETag") {
          let known = try client.ask("GET", target, headers: all + [("If-None-Match", tag)])
          expect(known.status == 304 && known.header("ETag") == tag && known.body().isEmpty, "\(target)")
          let other = try client.ask("HEAD", target, headers: all + [("If-None-Match", "W/" + tag)])
          expect(other.status, equals: 304, "\(target)")
        }
      }
    }
  }
}
