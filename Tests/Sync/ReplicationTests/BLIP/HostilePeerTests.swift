// Random and mutated messages against both sides. The seed is printed, and TOUCHSTONE_SEED repeats it.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import StorageConformance
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// Makes messages that are right, nearly right, or wrong.
private struct HostileWriter {
  var random: SeededGenerator

  mutating func pick<Value>(_ values: [Value]) -> Value { values[random.below(values.count)] }

  mutating func id() -> String {
    if random.once(in: 12) {
      return pick([
        "", "_x", "a\u{301}", String(repeating: "i", count: 480), String(repeating: "i", count: 481), "own0",
        "é", "\"\\",
      ])
    }
    return "d\(random.below(6))"
  }

  mutating func revision() -> String {
    if random.once(in: 12) {
      return pick([
        "", "x", "0-a", "1-", "-1-aa", "9223372036854775807-aa", "9223372036854775808-aa",
        "1-" + String(repeating: "f", count: 300), "1-A G", "18ea53b7e2650000@abc",
      ])
    }
    return "\(1 + random.below(4))-\(pick(["aa", "bb", "cc", "0123456789abcdef0123456789abcdef01234567"]))"
  }

  mutating func json() -> String {
    switch random.below(14) {
    case 0:
      return pick([
        "", "x", "[]", "1", "null", "{", "{\"a\":}", "\u{0}", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}", "{}{}",
        "tru",
      ])
    case 1: return String(repeating: "[", count: 20_000)
    case 2: return "{\"a\":" + String(repeating: "[", count: 200) + String(repeating: "]", count: 200) + "}"
    case 3: return "{\"n\":99999999999999999999999999,\"m\":-0.0,\"k\":1e-400}"
    case 4:
      return
        "{\"_id\":\"x\",\"_rev\":1,\"_attachments\":{\"blob_/a\":{\"digest\":5},\"b\":[]},\"a\":{\"@type\":\"blob\",\"digest\":\"x\"}}"
    case 5:
      return
        "{\"p\":{\"@type\":\"blob\",\"digest\":\"sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=\",\"length\":\(pick(["3", "-1", "\"x\"", "18446744073709551615", "2"]))}}"
    default:
      return "{\"n\":\(random.below(100)),\"t\":\"\(String(repeating: "t", count: random.below(300)))\"}"
    }
  }

  mutating func sequence() -> String {
    random.once(in: 8)
      ? pick([
        "", "null", "-1", "1.5", "{}", "[1,2]", "\"5:7\"", "99999999999999999999", "x",
        String(repeating: "9", count: 5_000),
      ])
      : "\(1 + random.below(30))"
  }

  mutating func list(_ item: (inout HostileWriter) -> String) -> String {
    if random.once(in: 15) { return json() }
    let count = random.once(in: 60) ? 100_000 : random.once(in: 30) ? 3_000 : random.below(8)
    if count > 1_000 {
      let one = item(&self)
      return "[" + Array(repeating: one, count: count).joined(separator: ",") + "]"
    }
    return "[" + (0..<count).map { _ in item(&self) }.joined(separator: ",") + "]"
  }

  static func quoted(_ text: String) -> String {
    (try? JSONValue.string(text).jsonText()).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
  }

  mutating func change() -> String {
    if random.once(in: 12) {
      return pick(["1", "[]", "{}", "null", "[1]", "[1,2,3]", "[[],[],[]]", "[1,\"d1\"]"])
    }
    let sequence =
      random.once(in: 10) ? pick(["{}", "\"x\"", "[1]", "null", "-5"]) : "\(1 + random.below(30))"
    return
      "[\(sequence),\(Self.quoted(id())),\(Self.quoted(revision())),\(pick(["0", "1", "true", "2", "4", "null", "\"x\"", "99"])),\(random.below(1_000))]"
  }

  mutating func proposal() -> String {
    if random.once(in: 12) { return pick(["1", "[]", "{}", "[\"d1\"]", "[1,2]"]) }
    return
      "[\(Self.quoted(id())),\(Self.quoted(revision())),\(Self.quoted(random.once(in: 2) ? "" : revision())),\(random.below(1_000))]"
  }

  mutating func answers() -> String {
    list { writer in
      writer.pick([
        "0", "304", "409", "500", "[]", "[\"1-aa\"]", "{\"status\":409,\"rev\":\"1-aa\"}",
        "{\"status\":409,\"rev\":\"1-aa\",\"ended\":true}", "{\"status\":409,\"ended\":true}", "{}", "\"x\"",
        "null", "-1", "1e300", "[1]", "[[]]",
      ])
    }
  }

  /// Properties of a request of this profile, some of them missing, wrong or twice.
  mutating func properties(_ all: [(String, String)], collection: Bool) -> BLIPProperties {
    var properties = BLIPProperties()
    if collection, !random.once(in: 20) {
      properties.append("collection", random.once(in: 20) ? pick(["1", "x", "-1", ""]) : "0")
    }
    for (name, value) in all where !random.once(in: 15) {
      properties.append(name, value)
      if random.once(in: 25) { properties.append(name, "twice") }
    }
    if random.once(in: 30) { properties.append("", "") }
    if random.once(in: 40) { properties.append("long", String(repeating: "p", count: 50_000)) }
    return properties
  }

  mutating func rev(collection: Bool) -> BLIPRequest {
    var all = [("id", id()), ("rev", revision()), ("sequence", sequence())]
    if random.once(in: 2) {
      let count = random.once(in: 30) ? 6_000 : random.below(4)
      all.append(("history", (0..<count).map { _ in revision() }.joined(separator: ",")))
    }
    if random.once(in: 8) { all.append(("deltaSrc", revision())) }
    if random.once(in: 5) { all.append(("deleted", pick(["1", "true", "x"]))) }
    if random.once(in: 5) { all.append(("noconflicts", "1")) }
    if random.once(in: 8) { all.append(("replacedRev", revision())) }
    if random.once(in: 8) { all.append(("replaces", revision())) }
    if random.once(in: 20) { all.append(("error", "404")) }
    return BLIPRequest("rev", properties(all, collection: collection), body: .bytes(Array(json().utf8)))
  }

  /// Any request.
  mutating func request(collection: Bool) -> BLIPRequest {
    func make(_ profile: String, _ all: [(String, String)], _ body: String, _ writer: inout HostileWriter)
      -> BLIPRequest
    {
      BLIPRequest(profile, writer.properties(all, collection: collection), body: .bytes(Array(body.utf8)))
    }
    var request: BLIPRequest
    let checkpoint = pick(["cp-1", "", "cp-2", String(repeating: "c", count: 600)])
    switch random.below(16) {
    case 0: request = make("getCheckpoint", [("client", checkpoint)], "", &self)
    case 1:
      request = make(
        "setCheckpoint", [("client", checkpoint), ("rev", pick(["", "1-cc", "2-cc", "x"]))], json(), &self)
    case 2:
      request = make(
        "subChanges",
        [
          ("since", sequence()), ("batch", pick(["1", "0", "-1", "200", "x", "99999999999999999999"])),
          ("continuous", pick(["true", "0"])), ("activeOnly", "true"),
          ("versioning", pick(["rev-trees", "rev-trees", "x"])),
        ],
        random.once(in: 3) ? json() : "", &self)
    case 3, 4: request = make("changes", [], list { $0.change() }, &self)
    case 5: request = make("proposeChanges", [("conflictIncludesRev", "true")], list { $0.proposal() }, &self)
    case 6:
      request = make(
        "norev", [("id", id()), ("rev", revision()), ("error", pick(["404", "x", "410"]))], "", &self)
    case 7:
      request = make(
        "getAttachment", [("digest", pick(["x", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", ""]))], "", &self)
    case 8:
      request = make(
        "proveAttachment", [("digest", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=")],
        String(repeating: "n", count: random.below(300)), &self)
    case 9: request = make(pick(["", "unsubChanges", "Rev", "x\u{1}"]), [("a", "b")], json(), &self)
    case 10 where random.once(in: 4):
      request = make(
        "getCollections", [], pick([json(), #"{"checkpoint_ids":["cp-1"],"collections":["_default"]}"#]),
        &self)
    default: request = rev(collection: collection)
    }
    request.isNoReply = random.once(in: 8)
    request.isUrgent = random.once(in: 4)
    request.isCompressed = random.once(in: 2)
    return request
  }

  /// An answer to a request.
  mutating func reply(_ profile: String) -> BLIPReply? {
    if random.once(in: 25) { return nil }
    if random.once(in: 12) {
      return BLIPReply(
        BLIPErrorReply(
          domain: pick(["HTTP", "BLIP", "LiteCore", "x", ""]),
          code: pick([0, 400, 403, 404, 409, 422, 501, 503, -1, .max]),
          text: json()))
    }
    var properties = BLIPProperties()
    var body = ""
    switch profile {
    case "getCheckpoint", "setCheckpoint":
      properties.append("rev", pick(["1-cc", "x", "", "99999999999999999999-cc"]))
      body = random.once(in: 2) ? "{\"local\":\(sequence()),\"remote\":\(sequence())}" : json()
    case "getCollections":
      body = pick([
        "[{}]", "[{}]", "[{}]", "[{\"rev\":\"1-cc\",\"local\":3,\"remote\":2}]", "[null]", "[]", "{}", json(),
      ])
    case "proposeChanges", "changes":
      properties = [
        "maxHistory": pick(["20", "0", "-1", "x", "99999999999999999999"]), "blobs": pick(["true", "0"]),
        "deltas": "true", "replaces": pick(["true", "0"]),
      ]
      body = random.once(in: 2) ? "[]" : answers()
    case "getAttachment": body = pick(["abc", "ab", "", String(repeating: "z", count: 100_000)])
    default: if random.once(in: 10) { body = json() }
    }
    return BLIPReply(properties, body: .bytes(Array(body.utf8)))
  }
}

@Suite("Hostile peers") struct HostilePeerTests {
  private let databases = TestDatabases()
  private static let seed = environmentVariable("TOUCHSTONE_SEED").flatMap { UInt64($0) }

  private func seeds(_ count: Int) -> [UInt64] {
    if let seed = Self.seed { return [seed] }
    return (0..<UInt64(count)).map { isLong ? UInt64.random(in: 0...UInt64.max) : 1_000 + $0 }
  }

  private func database(_ engine: EngineName) throws -> Database {
    let database = try databases.open(engine)
    for number in 0..<3 {
      var document = MutableDocument(id: "own\(number)", ["n": JSONValue(number)])
      document.set(try Blob(Array("abc".utf8), contentType: "text/plain"), forKey: "p")
      try database.save(&document)
    }
    return database
  }

  private static func faults(_ database: Database) throws -> [String] {
    try database.check(deep: true).map { "\($0)" }
  }

  /// What a hostile server has said. Its checkpoint must not pass what the client doesn't have.
  private struct Said {
    var writer: HostileWriter
    var messages = 0
    var requests = 0
    /// Each with the number of its message.
    var offered: [(message: Int, sequence: String, id: String, revision: String, isLost: Bool)] = []
    /// The lists that the client has refused: it hadn't asked for any yet.
    var refused: Set<Int> = []
    var unavailable: Set<String> = []
  }

  @Test("a client survives any server: it stops, its database is sound, and no checkpoint runs ahead")
  func client() throws {
    let iterations = isLong ? 5_000 : 40
    for seed in seeds(iterations) {
      let client = try database(seed % 2 == 0 ? .sqlite : .lmdb)
      defer { try? client.close() }
      let said = Lock(Said(writer: HostileWriter(random: SeededGenerator(seed: seed))))
      let connector = BLIPConnector(remoteID: "hostile", name: "hostile") { _, done in
        let (end, server) = PipeTransport.pair()
        let connection = BLIPConnection(server, name: "hostile")
        Self.play(connection, said, limit: 40)
        done(.success(BLIPConnector.Opened(end, subprotocol: seed % 3 == 0 ? "BLIP_3+CBMobile_2" : nil)))
      }
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector))
      configuration.maximumRetries = 0
      configuration.isContinuous = seed % 5 == 0
      configuration.checkpointDelay = 0.001
      let outcome = try run(configuration)
      expect(outcome.status.activity, equals: .stopped, "seed \(seed)")
      let faults = try Self.faults(client)
      expect(faults.isEmpty, "seed \(seed): \(faults)")
      try expectNoLead(client, configuration, said.withLock { $0 }, outcome.documents, seed)
    }
    print("hostile servers: \(iterations) seeds")
  }

  /// Answers requests, and sends own ones, until a number of messages. Then it closes.
  private static func play(_ connection: BLIPConnection, _ said: Lock<Said>, limit: Int) {
    // The handlers keep the connection until it has closed.
    @Sendable func act() {
      let requests = said.withLock { said -> [(number: Int, request: BLIPRequest)]? in
        said.messages += 1
        if said.messages > limit { return nil }
        return (0..<1 + said.writer.random.below(5)).map { number in
          var request = said.writer.request(collection: said.writer.random.once(in: 2))
          // The first one always goes on, also if the peer waits for what never comes.
          if number == 0 { request.isNoReply = true }
          said.requests += 1
          note(request, said.requests, &said)
          return (said.requests, request)
        }
      }
      guard let requests else { return connection.close(.webSocket(1006, "enough")) }
      for (number, request) in requests {
        connection.send(request) { result in
          if case .success(let reply) = result, reply.error != nil {
            said.withLock { _ = $0.refused.insert(number) }
          }
          act()
        }
      }
    }
    for profile in [
      "getCollections", "getCheckpoint", "setCheckpoint", "subChanges", "proposeChanges", "changes", "rev",
      "norev", "getAttachment", "proveAttachment",
    ] {
      let kept = Lock<[BLIPIncomingRequest]>([])
      connection.onRequest(profile) { request in
        if let reply = said.withLock({ $0.writer.reply(profile) }) {
          request.reply(reply)
        } else {
          // It is never answered.
          kept.withLock { $0.append(request) }
        }
        act()
      }
    }
    // The requests of two threads might go in another order than that of the notes.
    act()
    connection.start()
  }

  /// Takes note of what the client may take for done.
  private static func note(_ request: BLIPRequest, _ number: Int, _ said: inout Said) {
    guard case .bytes(let body) = request.body else { return }
    let profile = request.properties["Profile"] ?? ""
    // A list that nobody can answer isn't looked at.
    if profile == "changes", !request.isNoReply, let changes = try? ChangeLists.offered(body[...]) {
      for change in changes.prefix(1_000) {
        said.offered.append((number, change.sequence.json, change.id, change.revision, change.isAccessLost))
      }
    }
    if profile == "norev" || request.properties["error"] != nil, let id = request.properties["id"] {
      said.unavailable.insert("\(id) \(request.properties["rev"] ?? "")")
    }
  }

  /// A saved checkpoint doesn't pass a revision that was offered before it, not again behind it, and isn't stored. A document that is
  /// refused for good, as one that is too large, counts as done.
  private func expectNoLead(
    _ client: Database, _ configuration: ReplicatorConfiguration, _ said: Said,
    _ documents: [ReplicatedDocument], _ seed: UInt64
  ) throws {
    let json = try client.replicating { store in
      try store.syncCheckpoint(try configuration.checkpointID.text(store.privateUUID))
    }
    guard let json, let reached = Checkpoint(json: json).pulled else { return }
    // A sequence that was offered twice says nothing.
    let offered = said.offered.filter { !said.refused.contains($0.message) }
    let places = offered.indices.filter { offered[$0].sequence == reached.json }
    guard places.count == 1, let end = places.first else { return }
    let refused = documents.filter { document in
      !document.isPush && !document.isUndone
        && (document.error.map { $0.domain == .http && [403, 413].contains($0.code) } ?? false)
    }
    let done = said.unavailable.union(refused.map { "\($0.id) \($0.revisionID)" })
      .union(offered[(end + 1)...].map { "\($0.id) \($0.revision)" })
    for change in offered[...end] where !change.isLost {
      let key = "\(change.id) \(change.revision)"
      if done.contains(key) || offered.contains(where: { $0.id == change.id && $0.isLost }) { continue }
      let knowledge = try client.replicating {
        try $0.syncKnowledge(of: [(change.id, change.revision)])[0]
      }
      if case .missing = knowledge {
        // It may have been replaced by another one.
        let isReplaced = try client.replicating { try $0.currentRevisions(of: [change.id])[0] } != nil
        expect(isReplaced, "seed \(seed): the checkpoint \(reached.json) passes \(key)")
      }
    }
  }

  @Test("a passive side survives any client: its database is sound, and it serves the next client")
  func server() throws {
    let iterations = isLong ? 5_000 : 40
    for seed in seeds(iterations) {
      let server = try database(seed % 2 == 0 ? .lmdb : .sqlite)
      let closed = CountingSemaphore()
      let (end, passive) = PipeTransport.pair()
      BLIPResponder(BLIPConnection(passive, name: "server"), server).start()
      let connection = BLIPConnection(end, name: "hostile")
      connection.onClose { _ in closed.signal() }
      let said = Lock(Said(writer: HostileWriter(random: SeededGenerator(seed: seed))))
      Self.play(connection, said, limit: 60)
      expect(closed.wait(seconds: 120), "seed \(seed)")
      let faults = try Self.faults(server)
      expect(faults.isEmpty, "seed \(seed): \(faults)")
      let other = try databases.open(.sqlite)
      var configuration = ReplicatorConfiguration(other, ReplicatorTarget(pipeConnector(server)))
      configuration.skipsTombstonesOfFirstPull = false
      // What came last may still be stored when the connection has ended. Then another run brings it.
      try eventually {
        try expect(run(configuration).status.error == nil, "seed \(seed)")
        return try winners(other) == winners(server)
      }
      try expectEqual(other, server, "seed \(seed)")
      try other.close()
      try server.close()
    }
    print("hostile clients: \(iterations) seeds")
  }

  @Test("thousands of open requests are answered or end the connection") func manyRequests() throws {
    let server = try database(.sqlite)
    let client = ScriptedClient(server)
    let count = 20_000
    let left = Lock(count)
    let done = CountingSemaphore()
    for number in 0..<count {
      let request = BLIPRequest("getCheckpoint", ["client": "cp-\(number)"])
      client.connection.send(request) { _ in
        let isLast = left.withLock { left in
          left -= 1
          return left == 0
        }
        if isLast { done.signal() }
      }
    }
    expect(done.wait(seconds: 120))
    try expect(server.check(deep: true).isEmpty)
  }
}
