import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Forms of web pages with files for a document.
@Suite struct FormTests {
  /// A field of a form.
  private struct Field {
    var name: String
    var file: String?
    var type: String?
    var text: String
  }

  private func post(
    _ client: APIClient, _ target: String, _ fields: [Field], referer: String? = "http://localhost/page.html",
    host: String? = nil, type: String = "multipart/form-data; boundary=\"x y\""
  ) throws -> Response {
    var body = ""
    for field in fields {
      body += "--x y\r\nContent-Disposition: form-data; name=\"\(field.name)\""
      if let file = field.file { body += "; filename=\"\(file)\"" }
      if let type = field.type { body += "\r\nContent-Type: \(type)" }
      body += "\r\n\r\n\(field.text)\r\n"
    }
    body += "--x y--"
    var headers = [("Content-Type", type)]
    if let referer { headers.append(("Referer", referer)) }
    if let host { headers.append(("Host", host)) }
    return try client.ask("POST", target, headers: headers, body: Array(body.utf8))
  }

  private func attachments(_ client: APIClient, _ id: String) throws -> [String: String] {
    let found = try client.get("/db/\(id)?attachments=true").json()["_attachments"].object ?? [:]
    return Dictionary(
      uniqueKeysWithValues: found.map {
        ($0, "\($1["content_type"].string ?? "") \($1["data"].string ?? "")")
      })
  }

  @Test("files of a form are added to a revision, and replace those with their names", arguments: someEngines)
  func files(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let first = try client.save(
      "/db/d", #"{"n":1,"_attachments":{"old":{"data":"b2xk"},"b":{"content_type":"image/x","data":"Yg=="}}}"#
    )
    let answer = try post(
      client, "/db/d",
      [
        Field(name: "_rev", text: first), Field(name: "unknown", text: "?"),
        Field(name: "_attachments", file: "a.txt", type: "text/plain", text: "one\r\n"),
        Field(name: "_attachments", file: "b", text: "first"),
        Field(name: "_attachments", file: "b", text: "two"), Field(name: "_attachments", file: "", text: ""),
      ])
    expect(answer.status, equals: 201, "\(answer.text)")
    let revision = try answer.json()["rev"].string ?? ""
    expect(revision.hasPrefix("2-") && answer.header("ETag") == "\"\(revision)\"")
    try expect(client.get("/db/d").json()["n"], equals: 1)
    try expect(
      attachments(client, "d"),
      equals: [
        "old": "application/octet-stream b2xk", "a.txt": "text/plain b25lDQo=",
        "b": "application/octet-stream dHdv",
      ])
    // That revision isn't the current one any more.
    let late = try post(
      client, "/db/d", [Field(name: "_rev", text: first), Field(name: "_attachments", file: "c", text: "c")])
    expect(late.status, equals: 409)
    let none = try post(client, "/db/none", [Field(name: "_rev", text: first)])
    expect(none.status, equals: 409)
  }

  @Test("a form may have the document too", arguments: someEngines)
  func documents(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let made = try post(
      client, "/db/d",
      [
        Field(name: "_attachments", file: "z", text: "zz"),
        Field(
          name: "_doc",
          text: #"{"n":1,"_attachments":{"in":{"data":"aW4="},"y":{"content_type":"image/x","data":"eA=="}}}"#
        ),
        Field(name: "_attachments", file: "y", type: "text/x", text: "yy"),
      ])
    expect(made.status, equals: 201, "\(made.text)")
    try expect(
      attachments(client, "d"),
      equals: [
        "z": "application/octet-stream eno=", "y": "text/x eXk=", "in": "application/octet-stream aW4=",
      ])
    let again = try post(client, "/db/d", [Field(name: "_doc", text: #"{"n":2}"#)])
    expect(again.status, equals: 409)
    let revision = try made.json()["rev"].string ?? ""
    let next = try post(
      client, "/db/d",
      [
        Field(
          name: "_doc", text: #"{"n":2,"_rev":"\#(revision)","_attachments":{"z":{"stub":true,"revpos":1}}}"#)
      ])
    expect(next.status, equals: 201, "\(next.text)")
    try expect(client.get("/db/d").json()["n"], equals: 2)
    try expect(attachments(client, "d"), equals: ["z": "application/octet-stream eno="])
    // A part that follows and isn't there.
    let follows = #"{"_attachments":{"a":{"follows":true,"length":2}}}"#
    let wrong = try post(
      client, "/db/e",
      [Field(name: "_doc", text: follows), Field(name: "_attachments", file: "b", text: "bb")])
    expect(wrong.status, equals: 400)
    try expect(client.get("/db/e").status, equals: 404)
  }

  @Test("forms of other pages, and what is no form, are refused") func refusals() throws {
    let client = try APIClient.withDatabase()
    let fields = [Field(name: "_doc", text: "{}")]
    func error(_ answer: Response) throws -> [String] { try ["\(answer.status)"] + answer.error }
    try expect(
      error(post(client, "/db/a", fields, referer: nil)),
      equals: ["400", "bad_request", "Referer header required."])
    let other = ["400", "bad_request", "Referer header must match host."]
    for referer in [
      "http://evil.example/", "http://localhost.evil.example/", "http://localhost:81/", "localhost", "",
    ] {
      try expect(error(post(client, "/db/a", fields, referer: referer)), equals: other, "\(referer)")
    }
    try expect(
      post(client, "/db/b", fields, referer: "https://h:5?x", host: "h:5").status, equals: 201)
    for type in ["application/x-www-form-urlencoded", "application/json", "multipart/form-data"] {
      try expect(
        error(post(client, "/db/a", fields, type: type)),
        equals: ["415", "bad_content_type", "Content-Type must be multipart/form-data"])
    }
    try expect(post(client, "/db/a", []).status, equals: 400)
    try expect(post(client, "/db/a", [Field(name: "_doc", text: "[]")]).status, equals: 400)
    try expect(post(client, "/db/a", [Field(name: "_rev", text: "x")]).status, equals: 400)
    try expect(
      post(client, "/db/a", fields + [Field(name: "_attachments", file: "_x", text: "")]).status, equals: 400)
    try expect(post(client, "/db/_bad", fields).error[0], equals: "illegal_docid")
    try expect(client.get("/db/a").status, equals: 404)
  }
}
