import Fleece
import Foundation
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// What clients send that is too much, or means nothing.
@Suite("Limits of requests") struct RequestLimitTests {
  private func client(_ change: (inout DatabaseServiceConfiguration) -> Void = { _ in }) throws -> APIClient {
    var configuration = DatabaseServiceConfiguration()
    change(&configuration)
    let client = try APIClient(.lmdb, configuration)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    return client
  }

  private func gzipped(_ bytes: [UInt8]) throws -> [UInt8] {
    try #require(GzipEncoder()).encode(bytes, isLast: true)
  }

  @Test("a small body that decompresses to a large one is refused") func bombs() throws {
    let client = try client {
      $0.maximumRequestBytes = 1 << 20
      $0.maximumAttachmentBytes = 1 << 20
    }
    let bomb = try gzipped([UInt8](repeating: 0x20, count: 64 << 20))
    expect(bomb.count < 1 << 19)
    let gzip = ("Content-Encoding", "gzip")
    let json = ("Content-Type", "application/json")
    for (method, target) in [
      ("PUT", "/db/a"), ("POST", "/db"), ("POST", "/db/_bulk_docs"), ("POST", "/db/_revs_diff"),
      ("POST", "/db/_all_docs"), ("POST", "/db/_changes?filter=_doc_ids"), ("POST", "/db/_query"),
    ] {
      let answer = try client.ask(method, target, headers: [gzip, json], body: bomb)
      expect(answer.status, equals: 413, "\(method) \(target): \(answer.status)")
    }
    let attachment = try client.ask("PUT", "/db/a/f", headers: [gzip], body: bomb)
    expect(attachment.status, equals: 413)
    try expect(attachment.error[0], equals: "attachment_too_large")
    let parts = ("Content-Type", "multipart/related; boundary=x")
    try expect(client.ask("PUT", "/db/a", headers: [gzip, parts], body: bomb).status, equals: 400)
    try expect(client.get("/db/_all_docs").json()["total_rows"], equals: 0)
  }

  @Test("what isn't gzip is told") func malformed() throws {
    let client = try client()
    let whole = try gzipped(Array(#"{"n":1}"#.utf8))
    try expect(
      client.ask("PUT", "/db/a", headers: [("Content-Encoding", "gzip")], body: whole).status, equals: 201)
    for body in [Array(#"{"n":1}"#.utf8), Array(whole.dropLast(3)), whole + [0], []] {
      let answer = try client.ask("PUT", "/db/b", headers: [("Content-Encoding", "gzip")], body: body)
      expect(answer.status, equals: 400, "\(body.count) bytes")
      try expect(answer.error, equals: ["bad_request", "Request body is not properly gzipped."])
    }
  }

  @Test("gzip may have several members, also empty ones, wherever the pieces end") func members() throws {
    let client = try client()
    let members = try [#"{"a":"#, "", #""x","b":2"#, "}", ""].map { try gzipped(Array($0.utf8)) }
    let whole = Array(members.joined())
    func put(_ id: String, _ body: [UInt8]) throws -> Int {
      try client.ask("PUT", "/db/\(id)", headers: [("Content-Encoding", "gzip")], body: body).status
    }
    try expect(put("whole", whole), equals: 201)
    let read = try client.ask("GET", "/db/whole").json()
    expect(read["a"] == "x" && read["b"] == 2)
    try expect(put("text", Array(#"{"n":1}"#.utf8) + whole), equals: 400)
    for count in [1, 2, 9, 17] {
      try expect(put("rest", Array(whole.dropLast(count))), equals: 400, "\(count)")
    }
    for rest in [[0x1F], [0x1F, 0x8B], [0x1F, 0x8B, 8, 0]] as [[UInt8]] {
      try expect(put("rest", whole + rest), equals: 400, "\(rest)")
    }
    // Clients such as libcurl decode one member.
    let attachment = try client.ask(
      "PUT", "/db/att/f", headers: [("Content-Encoding", "gzip"), ("Content-Type", "image/png")], body: whole)
    expect(attachment.status, equals: 201)
    let plain = try client.ask("GET", "/db/att/f")
    expect(plain.status == 200 && plain.body() == Array(#"{"a":"x","b":2}"#.utf8))
  }

  @Test("other encodings of a body than gzip are refused") func encodings() throws {
    let answer = try client().send("PUT", "/db/a", "{}", headers: [("Content-Encoding", "br")])
    expect(answer.status, equals: 415)
    try expect(answer.error, equals: ["bad_content_type", "br is not a supported content encoding."])
  }

  @Test("a hundred thousand documents are too many for one request") func bulk() throws {
    let client = try client()
    let documents = (0..<100_000).map { "{\"_id\":\"\($0)\"}" }.joined(separator: ",")
    let answer = try client.send("POST", "/db/_bulk_docs", "{\"docs\":[\(documents)]}")
    expect(answer.status, equals: 413)
    try expect(answer.error, equals: ["max_bulk_docs_count_exceeded", "10000"])
    let wanted = try client.send("POST", "/db/_bulk_get", "{\"docs\":[\(documents)]}")
    try expect(wanted.error, equals: ["max_bulk_get_count_exceeded", "10000"])
    try expect(client.get("/db/_all_docs").json()["total_rows"], equals: 0)
  }

  @Test("millions of values are refused before they take memory") func values() throws {
    let client = try client()
    let list = "[" + String(repeating: "1,", count: 4_000_001) + "1]"
    for (target, body) in [
      ("/db/_all_docs", "{\"keys\":\(list)}"), ("/db/_revs_diff", "{\"a\":\(list)}"),
      ("/db/_changes?filter=_doc_ids", "{\"doc_ids\":\(list)}"), ("/db/_query", "{\"query\":\(list)}"),
    ] {
      try expect(client.send("POST", target, body).status, equals: 413, "\(target)")
    }
  }

  @Test("JSON that is too deep is refused, wherever it is") func depth() throws {
    let client = try client()
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    let open = String(repeating: "{\"a\":", count: 100_000)
    for text in [deep, open] {
      for (method, target, body) in [
        ("PUT", "/db/a", "{\"x\":\(text)}"), ("POST", "/db/_bulk_docs", "{\"docs\":[{\"x\":\(text)}]}"),
        ("POST", "/db/_bulk_docs", text), ("POST", "/db/_revs_diff", "{\"a\":\(text)}"),
        ("PUT", "/db/_local/a", "{\"x\":\(text)}"), ("POST", "/db/_all_docs", "{\"keys\":\(text)}"),
        ("PUT", "/db/a", "{\"_attachments\":{\"a\":{\"data\":\(text)}}}"),
      ] {
        try expect(client.send(method, target, body).status, equals: 400, "\(method) \(target)")
      }
    }
    for target in ["/db/_all_docs?key=", "/db/_all_dbs?startkey=", "/db/a?open_revs="] {
      let text = String(repeating: "%5B", count: 2_000) + String(repeating: "%5D", count: 2_000)
      try expect([400, 404].contains(try client.get(target + text).status), "\(target)")
    }
  }

  @Test("escapes and IDs that can't be are told") func escapes() throws {
    let client = try client()
    for (target, status) in [
      ("/db/a%zz", 400), ("/db/a%", 400), ("/db/%ff%fe", 400), ("/db/a?rev=%zz", 400), ("/db/a?rev=", 400),
      ("/db/%00", 404), ("/%00", 404), ("/db/..", 404), ("/db/../..", 404), ("/..%2F..%2Fetc%2Fpasswd", 404),
      ("/db/a/%ff", 400), ("/db/_design/%ff", 400), ("//db", 200), ("/db//", 200),
    ] {
      try expect(client.ask("GET", target).status, equals: status, "\(target)")
    }
    for target in ["_local", "_local/", "_local%2F"] {
      for method in ["GET", "PUT"] {
        try expect(
          client.send(method, "/db/" + target, "{}").error,
          equals: [
            "bad_request", "Invalid _local document id.",
          ])
      }
    }
    for id in ["%00", "a%01b", String(repeating: "x", count: 500), "_x", "_design%2F"] {
      let answer = try client.send("PUT", "/db/\(id)", "{}")
      expect(answer.status, equals: 400, "\(id.prefix(20))")
      try expect(answer.error[0], equals: "illegal_docid", "\(id.prefix(20))")
    }
  }

  @Test("parameters of a wrong type are told as CouchDB does") func parameters() throws {
    let client = try client()
    for query in [
      "limit=x", "limit=-1", "skip=x", "skip=-1", "descending=maybe", "include_docs=1", "key=x",
      "startkey=%5B",
      "keys=1", "group=true", "reduce=true", "update=maybe",
    ] {
      let answer = try client.get("/db/_all_docs?" + query)
      expect(answer.status, equals: 400, "\(query): \(answer.status)")
      try expect(!(try answer.error[1]).isEmpty, "\(query)")
    }
    for (query, status) in [
      ("since=x", 400), ("since=-1", 400), ("since=", 400), ("since=18446744073709551616", 400),
      ("since=18446744073709551615", 200), ("since=now", 200), ("since=%220%22", 200), ("since=0-abc", 200),
      ("since=0-", 400),
      ("feed=x", 400), ("heartbeat=x", 400), ("filter=_nosuch", 400), ("filter=a", 400), ("filter=a/b", 404),
      ("style=x", 500), ("limit=x", 500), ("timeout=x", 500),
    ] {
      try expect(client.get("/db/_changes?" + query).status, equals: status, "\(query)")
    }
  }

  @Test("the attachments in one answer have a limit", .enabled(if: !isSanitized)) func attachments() throws {
    let client = try client()
    let large = [UInt8](repeating: 0x61, count: 70 << 20)
    var revision = ""
    for name in ["a", "b"] {
      let target = "/db/doc/\(name)" + (revision.isEmpty ? "" : "?rev=\(revision)")
      let answer = try client.ask("PUT", target, headers: [("Content-Type", "text/plain")], body: large)
      expect(answer.status, equals: 201)
      revision = try answer.json()["rev"].string ?? ""
    }
    for target in [
      "_all_docs?include_docs=true&attachments=true", "_changes?include_docs=true&attachments=true",
    ] {
      try expect(client.get("/db/" + target).status, equals: 413, "\(target)")
    }
    // One by one they are sent.
    try expect(client.ask("GET", "/db/doc/b").body().count, equals: large.count)
  }
}
