import Foundation
import TestSupport
import Testing

@testable import HTTPAPI

/// The table of routes: what docs/http.md says of it, and what follows from it.
@Suite("Routes") struct RouteTests {
  @Test("docs/http.md lists every route with its methods") func documented() throws {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
    let page = try String(contentsOf: root.appending(path: "docs/http.md"), encoding: .utf8)
    let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let start = try #require(
      lines.firstIndex(of: "| path | methods | right |"), "the page has no table of routes")
    let found = lines[(start + 2)...].prefix { $0.hasPrefix("|") }
    let wanted = Routes.all.map { "| `\($0.path)` | \($0.methods) | \($0.rights) |" }
    expect(Array(found), equals: wanted, "docs/http.md should have:\n\(wanted.joined(separator: "\n"))")
  }

  @Test("a method that a route doesn't have is refused with those that it has") func refused() throws {
    let client = try APIClient()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    for (path, methods, _) in Routes.all where methods != "501" && methods != "any" {
      var target = path.replacing("/…", with: "").replacing("{db}", with: "db")
      for name in ["{doc}", "{attachment}", "{design}", "{view}", "{id}", "{node}", "{name}"] {
        target = target.replacing(name, with: "x")
      }
      // It is gone, whatever the method.
      if target.hasSuffix("_temp_view") { continue }
      let answer = try client.ask("PATCH", target, body: Array("{}".utf8))
      expect(answer.status, equals: 405, "\(target)")
      // CouchDB doesn't name PUT of a database.
      let allowed = target == "/db" ? "DELETE, GET, HEAD, POST" : methods
      expect(answer.header("Allow"), equals: allowed.replacing(", ", with: ","), "\(target)")
    }
  }

  @Test("no database takes a path of the server, which answers it without asking for one") func ownPaths()
    throws
  {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: DatabaseOptions(engine: .lmdb))
    for name in ["_up", "_session", "_other"] { try folder.open(name).close() }
    let client = APIClient(folder: folder)
    try expect(client.ask("GET", "/_up").json()["status"] == "ok")
    try expect(client.ask("GET", "/_session").json()["ok"] == true)
    try expect(client.ask("GET", "/_other").json()["db_name"] == "_other")
    try folder.close()
  }

  @Test("what CouchDB has and this server hasn't is refused as that") func notImplemented() throws {
    let client = try APIClient()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    for (path, methods, _) in Routes.all where methods == "501" {
      let target = path.replacing("/…", with: "/a/b").replacing("{db}", with: "db")
        .replacing("{design}", with: "x")
      try expect(client.ask("GET", target).status, equals: 501, "\(target)")
    }
  }

  @Test("a literal segment goes before a name, and a path of more segments is another one") func patterns()
    throws
  {
    let client = try APIClient()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    try expect(client.ask("GET", "/_node/_local").status, equals: 200)
    try expect(client.ask("GET", "/_node/other").status, equals: 501)
    try expect(client.ask("GET", "/_node/other/_system").status, equals: 404)
    try expect(client.ask("GET", "/_up/more").status, equals: 404)
    // An attachment of a document with that ID, which can't be.
    try expect(client.ask("GET", "/db/_all_docs/more").status, equals: 404)
    try expect(client.ask("GET", "/db/_design%2Fx/_info").status, equals: 404)
    try expect(client.ask("POST", "/db/_design%2Fx/_info").status, equals: 405)
  }
}
