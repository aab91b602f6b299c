// What the passive side answers to single messages, row by row.

import BLIP
import Blobs
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("Messages to the passive side") struct PassiveMessageTests {
  private let databases = TestDatabases()

  private func database(_ documents: [String: JSONValue] = [:]) throws -> Database {
    let database = try databases.open(.sqlite)
    for (id, body) in documents.sorted(by: { $0.key < $1.key }) {
      var document = MutableDocument(id: id, body)
      try database.save(&document)
    }
    return database
  }

  // MARK: Collections

  @Test("clients of the old form are served without the property collection") func oldForm() throws {
    let client = ScriptedClient(try database(["a": ["n": 1]]))
    try expect(client.error("getCheckpoint", ["client": "cp-1"]), equals: "HTTP 404")
    try expect(
      client.ask("setCheckpoint", ["client": "cp-1", "rev": ""], #"{"local":1}"#).properties["rev"],
      equals: "1-cc")
    let stored = try client.ask("getCheckpoint", ["client": "cp-1"])
    expect(stored.properties["rev"] == "1-cc" && stored.json == ["local": 1])
    try expect(client.error("subChanges"), equals: "none")
    // The property needs getCollections first.
    for profile in ["getCheckpoint", "setCheckpoint", "subChanges", "proposeChanges", "changes", "rev"] {
      try expect(
        client.error(profile, ["collection": "0", "client": "cp-1"]), equals: "HTTP 400", "\(profile)")
    }
  }

  @Test("clients of the new form name the collection in each request") func newForm() throws {
    let client = ScriptedClient(try database())
    let body = #"{"checkpoint_ids":["cp-1"],"collections":["_default"]}"#
    try expect(client.ask("getCollections", [:], body).json, equals: [[:]])
    try expect(
      client.ask("setCheckpoint", ["collection": "0", "client": "cp-1", "rev": ""], #"{"remote":3}"#)
        .properties["rev"], equals: "1-cc")
    try expect(
      client.ask("getCollections", ["uuid": "x"], body).json, equals: [["remote": 3, "rev": "1-cc"]])
    for profile in ["getCheckpoint", "setCheckpoint", "subChanges", "proposeChanges", "changes", "rev"] {
      try expect(client.error(profile, ["client": "cp-1"]), equals: "HTTP 400", "\(profile)")
      for number in ["1", "-1", "x", "", "99999999999999999999", "00x"] {
        try expect(
          client.error(profile, ["collection": number, "client": "cp-1"]), equals: "HTTP 400",
          "\(profile) \(number)")
      }
    }
  }

  @Test("named collections are refused, and the default one is found at its place") func named() throws {
    let client = ScriptedClient(try database())
    let body =
      #"{"checkpoint_ids":["cp-1","cp-2","cp-3","cp-4"],"collections":["inventory.hotel","_default","x","_default._default"]}"#
    try expect(client.ask("getCollections", [:], body).json, equals: [.null, [:], .null, [:]])
    try expect(client.error("subChanges", ["collection": "0"]), equals: "HTTP 404")
    try expect(client.error("subChanges", ["collection": "2"]), equals: "HTTP 404")
    try expect(client.error("subChanges", ["collection": "1"]), equals: "none")
  }

  @Test(
    "getCollections that can't be read is refused",
    arguments: [
      "", "[]", "{}", "x", #"{"collections":["_default"]}"#,
      #"{"collections":["_default"],"checkpoint_ids":[]}"#, #"{"collections":[],"checkpoint_ids":[]}"#,
      #"{"collections":["_default"],"checkpoint_ids":[1]}"#,
      #"{"collections":"_default","checkpoint_ids":"cp"}"#,
    ])
  func badCollections(_ body: String) throws {
    try expect(ScriptedClient(try database()).error("getCollections", [:], body), equals: "HTTP 400")
  }

  @Test("a list of more than 1,000 collections is refused") func manyCollections() throws {
    func list(_ text: String, _ count: Int) -> String {
      "[" + Array(repeating: "\"\(text)\"", count: count).joined(separator: ",") + "]"
    }
    let client = ScriptedClient(try database())
    for (count, error) in [(1_000, "none"), (1_001, "HTTP 400")] {
      let body = #"{"collections":\#(list("x", count)),"checkpoint_ids":\#(list("cp", count))}"#
      try expect(client.error("getCollections", [:], body), equals: error)
    }
  }

  // MARK: Checkpoints

  @Test("checkpoints have revisions, and a stale one is refused") func checkpoints() throws {
    let client = ScriptedClient(try database())
    try expect(client.error("setCheckpoint", ["client": "cp", "rev": "1-cc"], "{}"), equals: "HTTP 409")
    try expect(client.ask("setCheckpoint", ["client": "cp"], "{}").properties["rev"], equals: "1-cc")
    for stale in ["", "2-cc", "0-cc", "x", "-1-cc", "1-", "1-cc-cc", "18446744073709551616-cc"] {
      try expect(
        client.error("setCheckpoint", ["client": "cp", "rev": stale], "{}"), equals: "HTTP 409", "\(stale)")
    }
    try expect(
      client.ask("setCheckpoint", ["client": "cp", "rev": "1-cc"], "{}").properties["rev"], equals: "2-cc")
  }

  @Test("checkpoints without an ID, with a long one, or that are large are refused") func badCheckpoints()
    throws
  {
    let client = ScriptedClient(try database())
    try expect(client.error("getCheckpoint"), equals: "BLIP 400")
    try expect(client.error("setCheckpoint", ["client": ""], "{}"), equals: "BLIP 400")
    let long = String(repeating: "c", count: 1_001)
    try expect(client.error("getCheckpoint", ["client": long]), equals: "BLIP 400")
    try expect(client.error("setCheckpoint", ["client": long], "{}"), equals: "BLIP 400")
    try expect(
      client.error(
        "setCheckpoint", ["client": "cp"], "{\"x\":\"\(String(repeating: "x", count: 64 << 10))\"}"),
      equals: "HTTP 400")
    for text in ["", "x", "[]", "1", "{", "{}x"] {
      try expect(client.error("setCheckpoint", ["client": "cp"], text), equals: "HTTP 400", "\(text)")
    }
    try expect(client.error("getCheckpoint", ["client": "cp"]), equals: "HTTP 404")
  }

  // MARK: Lists of changes

  @Test(
    "lists that can't be read are refused",
    arguments: [
      "x", "{}", "1", "[1]", "[[]]", #"["a"]"#, #"[["a"]]"#, #"[["a",1]]"#, #"[[1,"1-a"]]"#,
      #"[[null,null,null]]"#,
    ])
  func badLists(_ body: String) throws {
    let client = ScriptedClient(try database())
    try expect(client.error("proposeChanges", [:], body), equals: "BLIP 400")
    try expect(client.error("changes", [:], body), equals: "BLIP 400")
  }

  @Test("a list has at most 10,000 changes") func longLists() throws {
    let client = ScriptedClient(try database())
    for (count, error) in [(10_000, "none"), (10_001, "BLIP 400")] {
      let list = "[" + Array(repeating: #"["a","1-a"]"#, count: count).joined(separator: ",") + "]"
      try expect(client.error("proposeChanges", [:], list), equals: error)
    }
  }

  @Test("the deleted state of a change is a number, a boolean, or left out") func deletedForms() throws {
    let list =
      #"[[1,"a","1-a"],[2,"b","1-a",0],[3,"c","1-a",1],[4,"d","1-a",true],[5,"e","1-a",false],[6,"f","1-a",2],[7,"g","1-a",4],[8,"h","1-a",7],[[9,"x"],"i","1-a",null],["10:2","j","1-a"],[11,"k","1-a",5],[12,"l","1-a",3]]"#
    let changes = try ChangeLists.offered(Array(list.utf8)[...])
    expect(changes.filter(\.isDeleted).map(\.id), equals: ["c", "d", "h", "k", "l"])
    expect(changes.filter(\.isAccessLost).map(\.id), equals: ["f", "g", "h", "l"])
    expect(changes.map(\.sequence.json)[8...9], equals: [#"[9,"x"]"#, #""10:2""#])
  }

  @Test("a proposal conflicts with other current revisions, and the answer names them if asked")
  func conflicts()
    throws
  {
    let database = try database(["a": ["n": 1]])
    let current = try #require(try database.document("a")).revisionID.description
    let client = ScriptedClient(database)
    let list =
      #"[["a","2-b","1-c"],["a","2-b","\#(current)"],["a","\#(current)"],["b","1-a"],["b","2-a","1-a"]]"#
    try expect(client.ask("proposeChanges", [:], list).json, equals: [409, 0, 304, 0, 409])
    let conflict: JSONValue = ["status": 409, "rev": .string(current)]
    try expect(
      client.ask("proposeChanges", ["conflictIncludesRev": "true"], list).json,
      equals: [conflict, 0, 304, 0, ["status": 409, "rev": ""]])
  }

  // MARK: Pull

  @Test("other versionings and filters are refused with the errors of LiteCore") func refusedPulls() throws {
    let client = ScriptedClient(try database())
    try expect(client.error("subChanges", ["versioning": "version-vectors"]), equals: "LiteCore 501")
    try expect(client.error("subChanges", ["versioning": "x"]), equals: "LiteCore 501")
    try expect(client.error("subChanges", ["filter": "app/x", "p": "1"]), equals: "LiteCore 19")
    try expect(
      client.error("subChanges", ["filter": "sync_gateway/bychannel", "channels": "a"]), equals: "LiteCore 19"
    )
    try expect(client.error("subChanges", ["channels": "a"]), equals: "LiteCore 19")
    try expect(client.error("subChanges", ["versioning": "rev-trees"]), equals: "none")
  }

  @Test(
    "a sequence that isn't one of this database is refused",
    arguments: [
      "x", "-1", "1.5", "[1]", "\"1\"", "18446744073709551616", String(repeating: "1", count: 5_000),
    ])
  func badSince(_ since: String) throws {
    try expect(ScriptedClient(try database()).error("subChanges", ["since": since]), equals: "HTTP 400")
  }

  @Test("a body of subChanges that isn't an object is refused", arguments: ["x", "[]", "1", "{"])
  func badFilterBody(_ body: String) throws {
    try expect(ScriptedClient(try database()).error("subChanges", [:], body), equals: "HTTP 400")
  }

  @Test("a revision that is gone comes as norev 410, or as the newer one if the client takes it")
  func replaced() throws {
    for takesReplacements in [false, true] {
      let database = try database(["a": ["n": 1]])
      let first = try #require(try database.document("a")).revisionID.description
      let held = Awaited<BLIPIncomingRequest>()
      let came = Awaited<ReceivedRequest>()
      let take: @Sendable (BLIPIncomingRequest) -> Void = { request in
        request.reply()
        came.set(
          ReceivedRequest(
            profile: request.message.profile ?? "", properties: request.message.properties,
            body: Array(request.message.body)))
      }
      let client = ScriptedClient(
        database, PassiveResponder.Options(),
        [
          "changes": { request in
            if !request.message.isNoReply { held.set(request) } else { request.reply() }
          }, "rev": take, "norev": take,
        ])
      try expect(
        client.error("subChanges", takesReplacements ? ["sendReplacementRevs": "1"] : [:]), equals: "none")
      let offer = try held.get()
      for generation in 2...40 {
        var document = try #require(try database.document("a")).toMutable()
        document["n"] = JSONValue(generation)
        try database.save(&document)
      }
      offer.reply(BLIPReply(["maxHistory": "20", "blobs": "true"], body: .bytes(Array("[[]]".utf8))))
      let answer = try came.get()
      expect(answer.profile, equals: (takesReplacements ? "rev" : "norev"))
      expect(answer["sequence"] == "1" && answer["id"] == "a")
      if takesReplacements {
        expect(answer["replacedRev"] == first && answer["rev"]?.hasPrefix("40-") == true)
        expect(answer.json, equals: ["n": 40])
      } else {
        expect(answer["error"] == "410" && answer["rev"] == first)
      }
    }
  }

  // MARK: Revisions

  private func rev(_ id: String? = "a", _ rev: String? = "1-aa", _ more: BLIPProperties = [:])
    -> BLIPProperties
  {
    var properties = BLIPProperties()
    if let id { properties.append("id", id) }
    if let rev { properties.append("rev", rev) }
    properties.append(more)
    return properties
  }

  @Test("a revision without a property that it needs is refused") func missingProperties() throws {
    let database = try database()
    let client = ScriptedClient(database)
    let sequence: BLIPProperties = ["sequence": "1"]
    try expect(client.error("rev", rev(nil, "1-aa", sequence), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("a", nil, sequence), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("a", "1-aa"), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("", "1-aa", sequence), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("a", "", sequence), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("a", "x", sequence), "{}"), equals: "HTTP 400")
    try expect(client.error("rev", rev("a", "0-aa", sequence), "{}"), equals: "HTTP 400")
    try expect(
      client.error("rev", rev(String(repeating: "i", count: 481), "1-aa", sequence), "{}"), equals: "HTTP 400"
    )
    let long = "\"" + String(repeating: "1", count: 5_000) + "\""
    try expect(client.error("rev", rev("a", "1-aa", ["sequence": long]), "{}"), equals: "HTTP 400")
    try expect(database.lastSequence, equals: 0)
    try expect(client.error("rev", rev("a", "1-aa", sequence), "{}"), equals: "none")
  }

  @Test(
    "a body that isn't a JSON object is refused, and nothing is stored",
    arguments: ["x", "[]", "1", "null", "{", #"{"a":}"#, #"{"a":"\ud800"}"#, "{}{}"])
  func badBodies(_ body: String) throws {
    let database = try database()
    let error = try ScriptedClient(database).error("rev", rev("a", "1-aa", ["sequence": "1"]), body)
    expect(error, equals: "HTTP 400")
    try expect(database.lastSequence, equals: 0)
  }

  @Test("over a tombstone only a document made anew is no conflict", arguments: someEngines)
  func overTombstones(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let client = ScriptedClient(database)
    func push(_ id: String, _ revision: String, _ history: String, deleted: Bool = false) throws -> String {
      var properties = rev(id, revision, ["sequence": "1", "noconflicts": "1"])
      if !history.isEmpty { properties.append("history", history) }
      if deleted { properties.append("deleted", "1") }
      return try client.error("rev", properties, "{}")
    }
    for id in ["a", "b", "c"] {
      try expect(push(id, "1-aa", ""), equals: "none")
      try expect(push(id, "2-bb", "1-aa", deleted: true), equals: "none")
    }
    // An edit of what was deleted meanwhile.
    try expect(push("a", "2-cc", "1-aa"), equals: "HTTP 409")
    // One of which nothing is known, because the history is cut.
    try expect(push("a", "30-dd", "29-ee,28-ff"), equals: "HTTP 409")
    try expect(database.document("a") == nil)
    // Made anew by somebody who doesn't know the tombstone.
    try expect(push("b", "2-ee", "1-dd"), equals: "none")
    try expect(database.document("b")?.revisionID.description, equals: "2-ee")
    // On top of it.
    try expect(push("c", "3-ff", "2-bb,1-aa"), equals: "none")
    try expect(database.document("c")?.revisionID.description, equals: "3-ff")
    try expect(database.check(deep: true).isEmpty)
  }

  @Test("a history is refused that is too long or isn't one") func histories() throws {
    let database = try database()
    let client = ScriptedClient(database)
    func history(_ text: String, _ revision: String = "9000-aa") -> BLIPProperties {
      rev("a", revision, ["sequence": "1", "history": text])
    }
    let long = (1...1_001).reversed().map { "\($0)-aa" }.joined(separator: ",")
    try expect(client.error("rev", history(long), "{}"), equals: "HTTP 400")
    for bad in ["x", "9001-aa", "9000-aa", "8999-aa,8999-bb", "8998-aa,8999-aa", ",", "1-aa,", "0-a"] {
      try expect(client.error("rev", history(bad), "{}"), equals: "HTTP 400", "\(bad)")
    }
    try expect(database.lastSequence, equals: 0)
    // Blanks behind the commas are those of some peers.
    try expect(client.error("rev", history("2-bb, 1-aa", "3-cc"), "{}"), equals: "none")
    try expect(database.revisions(of: "a")?.map(\.id.description), equals: ["3-cc", "2-bb", "1-aa"])
    // A long history is accepted, and pruned.
    let allowed = (8_000...8_999).reversed().map { "\($0)-aa" }.joined(separator: ",")
    try expect(
      client.error("rev", rev("b", "9000-aa", ["sequence": "1", "history": allowed]), "{}"), equals: "none")
    try expect(database.revisions(of: "b")?.count, equals: 20)
  }

  @Test("a delta is applied to its source; without the source, or if it doesn't fit, it is refused with 422")
  func deltas() throws {
    let database = try database()
    let client = ScriptedClient(database)
    try expect(client.error("rev", rev("a", "1-aa", ["sequence": "1"]), #"{"n":1,"t":"x"}"#), equals: "none")
    func delta(_ revision: String, _ source: String, _ id: String = "a") -> BLIPProperties {
      rev(id, revision, ["sequence": "2", "history": source, "deltaSrc": source])
    }
    for (source, body) in [
      ("1-bb", "{}"), ("1-aa", "x"), ("1-aa", #"{"n":{"x":1}}"#), ("1-aa", "[]"), ("x", "{}"),
    ] {
      try expect(client.error("rev", delta("2-aa", source), body), equals: "HTTP 422", "\(source) \(body)")
    }
    try expect(client.error("rev", delta("2-aa", "1-aa", "b"), "{}"), equals: "HTTP 422")
    try expect(database.lastSequence, equals: 1)
    try expect(client.error("rev", delta("2-aa", "1-aa"), #"{"n":2,"t":[],"_id":"x"}"#), equals: "none")
    try expect(database.document("a")?.value(), equals: ["n": 2])
  }

  @Test("norev of a client is taken note of") func norev() throws {
    let database = try database()
    let client = ScriptedClient(database)
    try expect(client.error("norev", ["id": "a", "rev": "1-aa", "error": "410"]), equals: "none")
    try expect(client.error("norev"), equals: "none")
    try expect(database.lastSequence, equals: 0)
  }

  @Test("a profile that isn't known is refused with BLIP 404") func unknownProfile() throws {
    let client = ScriptedClient(try database())
    try expect(client.error("unsubChanges"), equals: "BLIP 404")
    try expect(client.error(""), equals: "BLIP 404")
  }

  // MARK: Blobs

  private static let abc = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="

  private func databaseWithBlob() throws -> Database {
    let database = try database()
    var document = MutableDocument(id: "a", [:])
    document.set(try Blob(Array("abc".utf8), contentType: "text/plain"), forKey: "photo")
    try database.save(&document)
    return database
  }

  @Test("a blob is given, and proven with the hash of the nonce's length, the nonce and the blob")
  func givenBlobs() throws {
    let client = ScriptedClient(try databaseWithBlob())
    try expect(client.ask("getAttachment", ["digest": Self.abc]).text, equals: "abc")
    let nonce = String(decoding: [1, 2, 3, 4] as [UInt8], as: UTF8.self)
    try expect(
      client.ask("proveAttachment", ["digest": Self.abc], nonce).text,
      equals: "sha1-bawW0S07+kSMVzqOKJZSUR9fPG0=")
    let other = "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="
    for profile in ["getAttachment", "proveAttachment"] {
      try expect(client.error(profile, ["digest": other], nonce), equals: "HTTP 404")
      try expect(client.error(profile, ["digest": "md5-x"], nonce), equals: "BLIP 400")
      try expect(client.error(profile, [:], nonce), equals: "BLIP 400")
    }
    try expect(client.error("proveAttachment", ["digest": Self.abc], ""), equals: "HTTP 400")
    let long = String(repeating: "n", count: 255)
    try expect(client.error("proveAttachment", ["digest": Self.abc], long), equals: "none")
    try expect(client.error("proveAttachment", ["digest": Self.abc], long + "n"), equals: "HTTP 400")
  }

  @Test("a blob that is wrong or missing keeps its revision out, and another length than declared doesn't")
  func takenBlobs() throws {
    for (answer, length, error) in [
      ("abcd", 3, "LiteCore 15"), ("abd", 3, "LiteCore 15"), ("ab", 3, "LiteCore 15"), ("", 3, "LiteCore 15"),
      (nil, 3, "HTTP 404"), ("abc", 3, "none"), ("abc", 2, "none"), ("abc", 4, "none"), ("abc", 0, "none"),
    ] as [(String?, Int, String)] {
      let database = try database()
      let client = ScriptedClient(
        database, PassiveResponder.Options(),
        [
          "getAttachment": { request in
            guard let answer else {
              return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404))
            }
            request.reply(BLIPReply(body: .bytes(Array(answer.utf8))))
          }
        ])
      let body =
        #"{"p":{"@type":"blob","digest":"\#(Self.abc)","length":\#(length),"content_type":"text/plain"}}"#
      let result = try client.error("rev", rev("a", "1-aa", ["sequence": "1"]), body)
      expect(result.hasPrefix(error), "\(answer ?? "none"): \(result)")
      let document = try database.document("a")
      expect((document != nil), equals: (error == "none"), "\(answer ?? "none")")
      if let document { try expect(document.blob(forKey: "p")?.content(), equals: Array("abc".utf8)) }
      try expect(database.check(deep: true).isEmpty)
    }
  }
}
