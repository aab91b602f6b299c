// Messages, bodies and blobs that are longer, or nested deeper, than this side takes.

import BLIP
import Blobs
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

@Suite("Messages that are too long for this side") struct TooLongTests {
  private let databases = TestDatabases()

  private static let small: BLIPLimits = {
    var limits = BLIPLimits()
    limits.messageBytes = 100_000
    return limits
  }()
  private static let long = "{\"t\":\"" + String(repeating: "x", count: 150_000) + "\"}"
  private static let deep =
    "{\"a\":" + String(repeating: "[", count: 300) + String(repeating: "]", count: 300) + "}"

  private static let many = "{\"a\":[" + String(repeating: "1,", count: 1_000_000) + "1]}"

  private static func rev(_ id: String, _ revision: String, _ sequence: Int) -> BLIPProperties {
    ["id": id, "rev": revision, "sequence": "\(sequence)"]
  }

  // MARK: Pull

  private static func server(_ body: String) -> ScriptedServer {
    .offering(
      #"[[1,"a","1-aa"],[2,"big","1-bb"],[3,"z","1-cc"]]"#, clientLimits: small,
      [(rev("a", "1-aa", 1), "{}"), (rev("big", "1-bb", 2), body), (rev("z", "1-cc", 3), "{}")])
  }

  @Test(
    "a document that is too long, or too deep, is refused alone, and not asked for again",
    arguments: someEngines)
  func pulled(_ engine: EngineName) throws {
    for body in [Self.long, Self.deep, Self.many] {
      let database = try databases.open(engine)
      let server = Self.server(body)
      let outcome = try replicate(database, server) { $0.direction = .pull }
      expect(outcome.status.error == nil)
      expect(outcome.pulled, equals: ["a", "z"])
      let error = outcome.failed["big"]
      expect(error?.domain == .http && error?.code == 413, "\(String(describing: error))")
      expect(outcome.documents.allSatisfy { !$0.isUndone })
      expect(server.checkpoint.withLock { $0 }?["remote"], equals: 3)
      expect(server.connections, equals: 1)
      try expect(database.check(deep: true).isEmpty)
    }
  }

  @Test("a continuous pull goes on behind such a document, with one connection") func continuousPull() throws
  {
    let database = try databases.open(.lmdb)
    let server = Self.server(Self.long)
    var configuration = ReplicatorConfiguration(database, ReplicatorTarget(server.connector))
    configuration.direction = .pull
    configuration.isContinuous = true
    let replicator = Replicator(configuration)
    let failed = Lock<[ReplicatedDocument]>([])
    let token = replicator.observeDocuments { new in failed.withLock { $0 += new.filter { $0.error != nil } }
    }
    replicator.start()
    eventually { replicator.status.activity == .idle && failed.withLock { !$0.isEmpty } }
    eventually { server.checkpoint.withLock { $0 }?["remote"] == 3 }
    expect(failed.withLock { $0.map(\.id) }, equals: ["big"])
    expect(server.connections, equals: 1)
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
    token.cancel()
  }

  @Test("a list that is too long ends the replication for good") func longList() throws {
    let server = ScriptedServer(
      clientLimits: Self.small,
      [
        "subChanges": { server, request in
          request.reply()
          server.offer(String(repeating: "[", count: 150_000))
        }
      ])
    let outcome = try replicate(try databases.open(.sqlite), server) { $0.maximumRetries = 5 }
    let error = try #require(outcome.status.error)
    expect(error.domain == .webSocket && error.code == 1009 && !error.isTransient)
    expect(server.connections, equals: 1)
  }

  @Test("connections that bring nothing count as one failure after the other") func noProgress() throws {
    let server = ScriptedServer([
      "subChanges": { server, _ in server.close(.webSocket(1011, "no")) }
    ])
    let outcome = try replicate(try databases.open(.sqlite), server) {
      $0.maximumRetries = 2
      $0.maximumRetryWait = 0
    }
    expect(outcome.status.error?.code, equals: 1011)
    expect(server.connections, equals: 3)
  }

  @Test("a connection that has brought something begins the count of failures again") func progress() throws {
    // It closes when the document's checkpoint is to be saved.
    let server = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        let number = server.connections
        guard number < 5 else { return server.offer("[]") }
        server.offer("[[\(number),\"d\(number)\",\"1-aa\"]]") { _ in
          var properties = Self.rev("d\(number)", "1-aa", number)
          if let collection = request.message.properties["collection"] {
            properties.append("collection", collection)
          }
          server.rev(properties, "{}")
        }
      },
      "setCheckpoint": { server, request in
        guard server.connections < 5 else {
          return ScriptedServer.usual["setCheckpoint"]?(server, request) ?? ()
        }
        server.close(.webSocket(1011, "no"))
      },
    ])
    let outcome = try replicate(try databases.open(.sqlite), server) {
      $0.direction = .pull
      $0.maximumRetries = 2
      $0.maximumRetryWait = 0
      $0.checkpointDelay = 0.001
    }
    expect(outcome.status.error == nil && outcome.pulled == ["d1", "d2", "d3", "d4"])
  }

  // MARK: Push

  @Test("a listener refuses such a document alone, and the push goes on", arguments: someEngines)
  func pushed(_ engine: EngineName) throws {
    let (from, to) = (try databases.open(engine), try databases.open(engine))
    for (id, text) in [("a", "x"), ("big", String(repeating: "x", count: 150_000)), ("z", "x")] {
      var document = MutableDocument(id: id, ["t": .string(text)])
      try from.save(&document)
    }
    let connector = BLIPConnector(remoteID: "small", name: "small") { _, done in
      let (client, server) = PipeTransport.pair()
      BLIPResponder(BLIPConnection(server, limits: Self.small, name: "server"), to).start()
      done(.success(BLIPConnector.Opened(client, subprotocol: ReplicationProtocol.offered[0])))
    }
    var configuration = ReplicatorConfiguration(from, ReplicatorTarget(connector))
    configuration.direction = .push
    let outcome = try run(configuration)
    expect(outcome.status.error == nil && outcome.pushed == ["a", "z"])
    expect(outcome.failed["big"]?.code, equals: 413)
    try expect(winners(to).keys.sorted(), equals: ["a", "z"])
    // It counts as done, as everything that the other side refuses for good.
    try expect(run(configuration).documents.isEmpty)
  }

  @Test("a passive side answers what is too long or too deep, and serves the same client further")
  func passive() throws {
    let database = try databases.open(.sqlite)
    let client = ScriptedClient(database, serverLimits: Self.small)
    let fixed = #""_cookie":1,"#
    for body in [Self.long, Self.deep, Self.deep.replacingOccurrences(of: "{", with: "{" + fixed)] {
      try expect(client.error("rev", Self.rev("big", "1-aa", 1), body), equals: "HTTP 413")
    }
    try expect(client.error("rev", Self.rev("a", "1-aa", 2), "{}"), equals: "none")
    try expect(winners(database).keys.sorted(), equals: ["a"])
    try expect(client.error("getCheckpoint", ["client": "x"]), equals: "HTTP 404")
  }

  // MARK: Blobs

  @Test("a blob that doesn't end is refused, and the connection goes on") func endlessBlob() throws {
    let database = try databases.open(.lmdb)
    let (left, right) = PipeTransport.pair()
    let connection = BLIPConnection(left, name: "client")
    let peer = BLIPConnection(right, name: "server")
    let isEndless = Lock(true)
    peer.onRequest("getAttachment") { request in
      let count = isEndless.withLock { $0 } ? Int.max : 3
      request.reply(BLIPReply(body: .source(Zeros(count))))
    }
    connection.start()
    peer.start()
    let transfer = BlobTransfer(connection, maximumBytes: 1_000_000)
    let digest = try #require(BlobDigest("sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="))
    func fetch(_ length: UInt64?) throws -> ReplicationError? {
      let writer = try database.replicatingChanges { try $0.requiredBlobs.makeWriter() }
      let answer = Awaited<ReplicationError?>()
      transfer.fetch(
        MissingBlob(digest, length: length), of: "a", collection: nil, into: writer
      ) { result in
        if case .failure(let error) = result { answer.set(error) } else { answer.set(nil) }
      }
      return try answer.get()
    }
    for length in [nil, 10, 2_000_000] as [UInt64?] {
      let error = try fetch(length)
      expect(error?.domain == .http && error?.code == 413 && error?.isTransient == false)
    }
    isEndless.withLock { $0 = false }
    try expect(fetch(10) == nil)
    connection.close()
  }

  private final class Zeros: BLIPSource {
    private let left: Lock<Int>
    init(_ count: Int) { left = Lock(count) }
    func read(_ count: Int, into bytes: inout [UInt8]) -> BLIPSourceState {
      left.withLock { left in
        let now = min(count, left)
        bytes.append(contentsOf: repeatElement(0, count: now))
        left -= now
        return left == 0 ? .end : .more
      }
    }
  }
}
