import Fleece
import HTTP
import TestSupport
import Testing

@testable import HTTPAPI

/// `_node/_local/…` and the one shard of a database.
@Suite struct NodeTests {
  @Test("the counters have CouchDB's form and names") func statistics() throws {
    let client = try APIClient.withDatabase()
    try expect(client.get("/none").status, equals: 404)
    let all = try client.get("/_node/_local/_stats").json()
    expect(all["couchdb"]["httpd"]["requests"]["type"], equals: "counter")
    expect(all["couchdb"]["httpd"]["requests"]["value"], equals: 2)
    expect(all["couchdb"]["httpd_status_codes"]["404"]["value"], equals: 1)
    expect(all["couchdb"]["open_databases"]["value"], equals: 1)
    try expect(
      client.get("/_node/touchstone@localhost/_stats/couchdb/httpd_request_methods/PUT").json()["value"],
      equals: 1)
    try expect(client.get("/_node/_local/_stats/couchdb/none").status, equals: 404)
    try expect(client.get("/_node/other/_stats").error, equals: ["not_found", "no such node: other"])
    try expect(client.ask("POST", "/_node/_local/_stats").status, equals: 405)
  }

  @Test("the process tells what it takes") func system() throws {
    let system = try APIClient().get("/_node/_local/_system").json()
    expect((system["memory"]["other"].int ?? 0) > 1 << 20, "\(system)")
    expect(system["uptime"].int.map { $0 >= 0 && $0 < 3_600 }, equals: true)
    try expect(APIClient().get("/_node/x/_system").status, equals: 404)
  }

  @Test("settings are read as texts, and can't be set") func configuration() throws {
    let client = try APIClient()
    let all = try client.get("/_node/_local/_config").json()
    expect(all["couchdb"]["max_document_size"], equals: "8000000")
    for section in all.object?.map(\.value) ?? [] {
      for value in section.object?.map(\.value) ?? [] { expect(value.string != nil) }
    }
    try expect(client.get("/_node/_local/_config/chttpd_auth/iterations").text, equals: "\"600000\"\n")
    try expect(client.get("/_node/_local/_config/cluster").json(), equals: ["q": "1", "n": "1"])
    for section in ["none", "cors"] {
      try expect(client.get("/_node/_local/_config/" + section).text, equals: "{}\n")
    }
    for path in ["none/x", "couchdb/none", "couchdb/uuid/x"] {
      try expect(client.get("/_node/_local/_config/" + path).status, equals: 404, "\(path)")
    }
    let set = "/_node/_local/_config/couchdb/max_document_size"
    for method in ["PUT", "DELETE"] { try expect(client.send(method, set, "\"1\"").status, equals: 403) }
  }

  @Test("all documents are in one shard") func shards() throws {
    let client = try APIClient.withDatabase()
    let node: JSONValue = ["touchstone@localhost"]
    try expect(client.get("/db/_shards").json(), equals: ["shards": ["00000000-ffffffff": node]])
    try expect(client.get("/db/_shards/doc").json(), equals: ["range": "00000000-ffffffff", "nodes": node])
    try expect(client.send("POST", "/db/_sync_shards").status, equals: 202)
    try expect(client.ask("GET", "/db/_sync_shards").header("Allow"), equals: "POST")
  }
}
