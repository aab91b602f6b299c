// Filters by their names: what a replicator asks for, and what a listener that has them gives.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync

@testable import Replication
@testable import ReplicationBLIP

@Suite("Named filters over BLIP") struct FilterTests {
  private let databases = TestDatabases()

  // MARK: The replicator

  @Test("a replicator names the filter and its parameters") func asks() throws {
    let server = ScriptedServer()
    let outcome = try replicate(try databases.open(.sqlite), server) {
      $0.filter = "by color"
      $0.filterParameters = ["color": "red", "sizes": [1, 2], "é": .null]
    }
    expect(outcome.status.error == nil)
    let request = try #require(server.requests("subChanges").first)
    expect(request["filter"] == "by color" && request["color"] == "red")
    expect(request["sizes"] == "[1,2]" && request["é"] == "null")
  }

  @Test("channels are a filter of Sync Gateway") func channels() throws {
    let server = ScriptedServer()
    _ = try replicate(try databases.open(.sqlite), server) { $0.channels = ["a", "b"] }
    let request = try #require(server.requests("subChanges").first)
    expect(request["filter"] == "sync_gateway/bychannel" && request["channels"] == "a,b")
  }

  @Test("a peer without filters ends the replication with its error") func refused() throws {
    let server = ScriptedServer([
      "subChanges": { _, request in
        request.reply(BLIPErrorReply(domain: "LiteCore", code: 19, text: "Filtering not supported"))
      }
    ])
    let outcome = try replicate(try databases.open(.sqlite), server) { $0.filter = "x" }
    expect(outcome.status.error, equals: ReplicationError(.liteCore, 19, "Filtering not supported"))
  }

  // MARK: The passive side

  /// Lets revisions pass whose color is the parameter's.
  private static let byColor: NamedFilter = { revision, parameters in
    try revision.body()["color"].string == parameters["color"]
  }

  private static func options(_ filters: [String: NamedFilter]) -> PassiveResponder.Options {
    var options = PassiveResponder.Options()
    options.filters = filters
    return options
  }

  private func colors(_ engine: EngineName) throws -> Database {
    let database = try databases.open(engine)
    for number in 0..<300 {
      try database.save("d\(number)", ["color": number % 3 == 0 ? "red" : "blue", "n": JSONValue(number)])
    }
    return database
  }

  @Test("an unknown filter is refused, also where there are others") func unknown() throws {
    let database = try databases.open(.sqlite)
    let plain = ScriptedClient(database)
    try expect(plain.error("subChanges", ["filter": "color"]), equals: "LiteCore 19")
    let client = ScriptedClient(database, Self.options(["color": Self.byColor]))
    for properties: BLIPProperties in [["filter": "colors"], ["filter": ""], ["channels": "a"]] {
      try expect(client.error("subChanges", properties), equals: "LiteCore 19")
    }
    try expect(client.error("subChanges", ["filter": "color"]), equals: "none")
  }

  @Test("a filter gets the parameters, and nothing of the protocol") func parameters() throws {
    let database = try databases.open(.sqlite)
    try database.save("a", ["n": 1])
    let seen = Awaited<[String: String]>()
    let filter: NamedFilter = { _, parameters in
      seen.set(parameters)
      return false
    }
    let client = ScriptedClient(database, Self.options(["f": filter]))
    let properties: BLIPProperties = [
      "since": "0", "continuous": "true", "batch": "100", "activeOnly": "true", "sendReplacementRevs": "1",
      "versioning": "rev-trees", "revocations": "true", "upTo": "1", "filter": "f", "filter": "g",
      "channels": "x",
      "a": "1", "b": "", "a": "2",
    ]
    try expect(client.error("subChanges", properties), equals: "none")
    try expect(seen.get(), equals: ["a": "1", "b": "", "channels": "x"])
  }

  @Test(
    "what is chosen is replicated, and the next run goes on behind all of it",
    arguments: [EngineName.sqlite, .lmdb])
  func chosen(_ engine: EngineName) throws {
    let server = try colors(engine)
    let client = try databases.open(.lmdb)
    let calls = Lock(0)
    let connector = pipeConnector(
      server,
      Self.options([
        "color": { revision, parameters in
          calls.withLock { $0 += 1 }
          return try Self.byColor(revision, parameters)
        }
      ]))
    func pull(_ color: String) throws -> Outcome {
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector))
      configuration.direction = .pull
      configuration.filter = "color"
      configuration.filterParameters = ["color": .string(color)]
      configuration.skipsTombstonesOfFirstPull = false
      return try run(configuration)
    }
    let first = try pull("red")
    expect(first.status.error == nil && first.pulled.count == 100)
    try expect(client.documentCount, equals: 100)
    expect(calls.withLock { $0 }, equals: 300)
    try expect(pull("red").documents.isEmpty)
    expect(calls.withLock { $0 }, equals: 300)
    // What begins to pass comes; what ends to pass stays as it was.
    try server.save("d1", ["color": "red"])
    try server.save("d0", ["color": "blue"])
    try server.delete("d3")
    try expect(pull("red").pulled, equals: ["d1"])
    try expect(client.document("d0")?["color"].string == "red" && client.document("d3") != nil)
    // Other parameters have another checkpoint.
    try expect(pull("blue").pulled.count, equals: 200)
  }

  @Test("a revision that takes the place of an offered one has to pass too") func replacement() throws {
    let database = try databases.open(.sqlite)
    try database.save("a", ["color": "red", "n": 1])
    try database.save("b", ["color": "red", "n": 1])
    let (unavailable, arrived) = (Awaited<String>(), Awaited<String>())
    let client = ScriptedClient(
      database, Self.options(["color": Self.byColor]),
      [
        "changes": { request in
          guard request.message.json != [] else { return _ = request.reply() }
          do {
            // Both revisions are replaced before they are asked for.
            for (id, color) in [("a", "blue"), ("b", "red")] {
              for number in 2...40 {
                try database.save(id, ["color": .string(color), "n": JSONValue(number)])
              }
            }
          } catch { Issue.record("\(error)") }
          request.reply(
            BLIPReply(["maxHistory": "20", "blobs": "true"], body: .bytes(Array("[[],[]]".utf8))))
        },
        "norev": { request in
          unavailable.set(
            "\(request.message.properties["id"] ?? "") \(request.message.properties["error"] ?? "")")
          request.reply()
        },
        "rev": { request in
          arrived.set(request.message.properties["id"] ?? "")
          request.reply()
        },
      ])
    try expect(
      client.error("subChanges", ["filter": "color", "color": "red", "sendReplacementRevs": "1"]),
      equals: "none")
    try expect(arrived.get(), equals: "b")
    try expect(unavailable.get(), equals: "a 410")
  }

  @Test("a filter that fails ends the connection, and no checkpoint passes what it hasn't seen")
  func failing() throws {
    struct Failure: Error {}
    let server = try colors(.lmdb)
    let client = try databases.open(.lmdb)
    let isBroken = Lock(true)
    let connector = pipeConnector(
      server,
      Self.options([
        "color": { revision, parameters in
          if revision.documentID == "d210", isBroken.withLock({ $0 }) { throw Failure() }
          return try Self.byColor(revision, parameters)
        }
      ]))
    func pull() throws -> Outcome {
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector))
      configuration.direction = .pull
      configuration.filter = "color"
      configuration.filterParameters = ["color": "red"]
      configuration.maximumRetries = 0
      return try run(configuration)
    }
    let broken = try pull()
    expect(broken.status.error?.domain == .webSocket && broken.status.error?.code == 1011)
    isBroken.withLock { $0 = false }
    try expect(pull().status.error == nil)
    try expect(client.documentCount, equals: 100)
  }

  // MARK: The listener

  @Test("a listener's filters serve clients over WebSockets, once and continuously") func listener() throws {
    let server = try colors(.sqlite)
    var configuration = SyncListenerConfiguration(databases: ["db": server])
    configuration.filters["color"] = { revision, parameters in
      try revision.isDeleted || revision.body()["color"].string == parameters["color"]
    }
    let listener = SyncListener(configuration)
    try listener.start()
    defer { listener.stop() }
    let client = try databases.open(.lmdb)
    var replication = ReplicatorConfiguration(client, try .url(listener.urls[0]))
    replication.filter = "color"
    replication.filterParameters = ["color": "red"]
    replication.isContinuous = true
    let replicator = Replicator(replication)
    replicator.start()
    eventually { (try? client.documentCount) == 100 }
    try server.save("new", ["color": "red"])
    try server.save("other", ["color": "blue"])
    try server.delete("d0")
    eventually { (try? client.document("new")) != nil && (try? client.document("d0")) == .some(nil) }
    try expect(client.document("other") == nil)
    try client.save("mine", ["color": "blue"])
    eventually { (try? server.document("mine")) != nil }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
    replication.isContinuous = false
    replication.filter = "size"
    try expect(run(replication).status.error?.code, equals: 19)
  }
}
