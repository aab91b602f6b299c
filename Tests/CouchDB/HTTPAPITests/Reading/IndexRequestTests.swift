import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// `_indexes`: the indexes of queries over HTTP.
@Suite("Indexes over HTTP") struct IndexRequestTests {
  @Test("value indexes are made, listed and deleted", arguments: someEngines)
  func values(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.database.save("a", ["city": "Rome", "open": true])
    try expect(reading.get("_indexes").json(), equals: ["indexes": []])
    let body = "{\"name\":\"by City\",\"expressions\":[\"city\",\"LOWER(name)\"],\"where\":\"open\"}"
    let made = try reading.post("_indexes", body)
    try expect(made.status == 201 && made.json() == ["name": "by City", "change": "created"])
    let again = try reading.post("_indexes", body)
    try expect(again.status == 200 && again.json()["change"] == "unchanged")
    try expect(
      reading.get("_indexes").json()["indexes"],
      equals: [
        ["name": "by City", "kind": "value", "expressions": ["city", "LOWER(name)"], "where": "open"]
      ])
    try expect(reading.database.indexes.map(\.text), equals: ["city, LOWER(name) WHERE open"])
    let target = "/db/_indexes/by%20City"
    try expect(reading.client.ask("DELETE", target).json(), equals: ["ok": true])
    try expect(reading.client.ask("DELETE", target).status, equals: 404)
  }

  @Test("an index over an array has its items") func arrays() throws {
    let reading = try ReadingClient(.lmdb)
    let body = "{\"name\":\"r\",\"expressions\":[\"r.stars\"],\"unnest\":\"reviews AS r\"}"
    try expect(reading.post("_indexes", body).status, equals: 201)
    let index = try reading.get("_indexes").json()["indexes"][0]
    expect(index["unnest"], equals: "reviews AS r")
    expect(index["expressions"], equals: ["r.stars"])
  }

  @Test("full-text indexes have their options", arguments: someEngines)
  func fullText(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.database.save("a", ["name": "The castles of Ñame"])
    let body = """
      {"name":"text","kind":"fulltext","expressions":["name"],"language":"en","ignore_accents":true,
       "stop_words":[],"weights":[2]}
      """
    try expect(reading.post("_indexes", body).status, equals: 201)
    try expect(
      reading.get("_indexes").json()["indexes"][0],
      equals: [
        "name": "text", "kind": "fulltext", "expressions": ["name"], "language": "english",
        "ignore_accents": true,
        "stemming": true, "stop_words": [], "weights": [2.0],
      ])
    let found = try reading.post(
      "_query", "{\"query\":\"SELECT META().id FROM _ WHERE MATCH(text, 'castle name the')\"}")
    try expect(found.json()["rows"], equals: [["id": "a"]])
  }

  @Test(
    "what is wrong is said, and nothing is made",
    arguments: [
      ("[]", "object"), ("{}", "`name`"), ("{\"name\":1}", "`name`"),
      ("{\"name\":\"\(String(repeating: "x", count: 201))\",\"expressions\":[\"a\"]}", "200 bytes"),
      ("{\"name\":\"a\\u0009b\",\"expressions\":[\"a\"]}", "control characters"),
      ("{\"name\":\"x\",\"kind\":\"y\"}", "`kind`"),
      ("{\"name\":\"x\",\"expressions\":[1]}", "`expressions`"),
      ("{\"name\":\"x\",\"expressions\":[\"a +\"]}", "expected"),
      ("{\"name\":\"x\",\"expressions\":[\"a\"],\"language\":\"en\"}", "`language`"),
      ("{\"name\":\"x\",\"kind\":\"fulltext\",\"expressions\":[\"a\"],\"language\":\"xx\"}", "english"),
      ("{\"name\":\"x\",\"kind\":\"fulltext\",\"expressions\":[\"a\"],\"weights\":\"2\"}", "`weights`"),
      (
        "{\"name\":\"x\",\"kind\":\"fulltext\",\"expressions\":[\"a\"],\"ignore_accents\":1}",
        "`ignore_accents`"
      ),
    ])
  func refused(_ body: String, _ word: String) throws {
    let reading = try ReadingClient(.lmdb)
    let answer = try reading.post("_indexes", body)
    expect(answer.status, equals: 400, "\(body): \(answer.text)")
    expect(answer.text.contains(word), "\(answer.text)")
    try expect(reading.database.indexes.isEmpty)
  }

  @Test("who only reads makes none, and the server's own databases keep theirs") func forbidden() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let body = "{\"name\":\"x\",\"expressions\":[\"a\"]}"
    let reading = try ReadingClient(.lmdb, configuration)
    try expect(reading.post("_indexes", body).status, equals: 403)
    try expect(reading.client.ask("DELETE", "/db/_indexes/x").status, equals: 403)
    let client = try APIClient()
    try expect(client.send("PUT", "/_users").status, equals: 201)
    try expect(client.send("POST", "/_users/_indexes", body).status, equals: 403)
  }
}
