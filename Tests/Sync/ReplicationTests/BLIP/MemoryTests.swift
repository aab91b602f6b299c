// What clients may make a listener keep.

import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import BLIP
import Transport
@testable import Replication
@testable import ReplicationBLIP

@Suite("The memory of listeners") struct ListenerMemoryTests {
  private let databases = TestDatabases()

  private func connector(_ database: Database, _ memory: BLIPMemory) -> BLIPConnector {
    BLIPConnector(remoteID: "little", name: "little") { _, done in
      let (client, server) = PipeTransport.pair()
      BLIPResponder(BLIPConnection(server, name: "server", memory: memory), database).start()
      done(.success(BLIPConnector.Opened(client, subprotocol: ReplicationProtocol.offered[0])))
    }
  }

  private func fill(_ database: Database, _ prefix: String) throws {
    for number in 0..<150 {
      var document = MutableDocument(
        id: "\(prefix)\(number)", ["t": .string(String(repeating: "x", count: number * 97))])
      if number % 30 == 0 {
        document.set(try Blob([UInt8](repeating: UInt8(number), count: 40_000)), forKey: "p")
      }
      try database.save(&document)
    }
  }

  @Test("clients with little memory for all of them replicate all the same", arguments: someEngines)
  func littleMemory(_ engine: EngineName) throws {
    let server = try databases.open(engine)
    try fill(server, "server")
    let memory = BLIPMemory(bytes: 60_000, patience: 1_000_000)
    let connector = connector(server, memory)
    let clients = try (0..<3).map { _ in try databases.open(engine) }
    for (number, client) in clients.enumerated() { try fill(client, "client\(number)-") }
    let errors = Lock<[ReplicationError]>([])
    DispatchQueue.concurrentPerform(iterations: clients.count) { number in
      do {
        let outcome = try run(ReplicatorConfiguration(clients[number], ReplicatorTarget(connector)))
        errors.withLock { errors in
          if let error = outcome.status.error { errors.append(error) }
          errors += outcome.failed.values
        }
      } catch { Issue.record(error) }
    }
    expect(errors.withLock { $0 }.isEmpty)
    for client in clients { try run(ReplicatorConfiguration(client, ReplicatorTarget(connector))) }
    for client in clients { try expectEqual(client, server) }
    try expect(winners(server).count, equals: 600)
    eventually { memory.held == 0 }
  }

  /// Gives the first bytes of a body, and never the others.
  private final class HalfBody: BLIPSource {
    private let left: Lock<Int>
    init(_ bytes: Int) { left = Lock(bytes) }

    func read(_ count: Int, into bytes: inout [UInt8]) -> BLIPSourceState {
      left.withLock { left in
        let count = min(count, left)
        bytes += [UInt8](repeating: 0x20, count: count)
        left -= count
        return left == 0 ? .later : .more
      }
    }
  }

  @Test("clients that keep half a message each lose their connections, and honest ones go on")
  func halfMessages() throws {
    let server = try databases.open(.lmdb)
    for number in 0..<20 { try server.save("server\(number)", ["n": .int(Int64(number))]) }
    let memory = BLIPMemory(bytes: 8 << 20, patience: 1_000_000)
    let (isBlocked, gate) = (CountingSemaphore(), CountingSemaphore())
    let ends = Lock<[Int?]>([])
    func keepHalf(of bytes: Int) -> BLIPConnection {
      let (left, right) = PipeTransport.pair()
      let connection = BLIPConnection(right, name: "server", memory: memory)
      connection.onRequest("block") { request in
        isBlocked.signal()
        _ = gate.wait(seconds: 120)
        request.reply()
      }
      BLIPResponder(connection, server).start()
      let client = BLIPConnection(left, name: "hostile")
      client.onClose { error in ends.withLock { $0.append(error.close?.code) } }
      client.start()
      client.send(BLIPRequest("changes", body: .source(HalfBody(bytes / 2)))) { _ in }
      return client
    }
    // The one that holds most is at something else, and doesn't end when it is told to.
    let blocked = keepHalf(of: 6 << 20)
    eventually { memory.held > 3 << 20 }
    blocked.send(BLIPRequest("block")) { _ in }
    expect(isBlocked.wait(seconds: 120))
    let others = (0..<40).map { _ in keepHalf(of: 2 << 20) }
    // One whose first frame comes when nothing is left has ended for it.
    eventually { memory.held >= memory.total && memory.waitingCount > 0 }
    expect(ends.withLock { $0.allSatisfy { $0 == 1011 } })
    let outcomes = Lock<[Result<Outcome, any Error>]>([])
    let honest = Workers(maximum: 3)
    for number in 0..<3 {
      let client = try databases.open(.sqlite)
      try client.save("client\(number)", ["n": 1])
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector(server, memory)))
      configuration.maximumRetries = 0
      honest.enqueue { [configuration] in
        let outcome = Result { try run(configuration) }
        outcomes.withLock { $0.append(outcome) }
      }
    }
    var mostHeld = 0
    eventually {
      mostHeld = max(mostHeld, memory.held)
      // Those that were told to end have ended, but for the one that can't.
      if memory.endingCount <= 1 { memory.evictStuck() }
      return outcomes.withLock { $0.count } == 3 && ends.withLock { $0.contains(1011) }
    }
    // Each connection may have been given a frame when there was room for one.
    expect(mostHeld < memory.total + 44 * 20_000)
    // Others that were told to end may still be at it.
    eventually { memory.endingCount == 1 }
    expect(blocked.closed == nil)
    for connection in others + [blocked] { connection.close() }
    gate.signal()
    eventually { memory.held == 0 && outcomes.withLock { $0.count } == 3 }
    for outcome in outcomes.withLock({ $0 }) {
      let outcome = try outcome.get()
      expect(outcome.status.error == nil && outcome.failed == [:] && outcome.pushed.count == 1)
      expect(Set(outcome.pulled).isSuperset(of: (0..<20).map { "server\($0)" }))
    }
    // Some hostile ones were told to end, and not all.
    let evicted = ends.withLock { $0.count { $0 == 1011 } }
    expect((1..<40).contains(evicted))
  }

  @Test("a pull of many document IDs is refused while others have the memory, and then it is not")
  func tooManyDocumentIDs() throws {
    let server = try databases.open(.lmdb)
    try server.save("d7", ["n": 1])
    let memory = BLIPMemory(bytes: 1 << 20, patience: 1_000_000)
    let other = memory.open({}, evict: {})
    memory.update(other, held: 900_000, toSend: 0)
    let client = try databases.open(.sqlite)
    var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector(server, memory)))
    configuration.direction = .pull
    configuration.documentIDs = (0..<1_000).map { "d\($0)" }
    configuration.maximumRetries = 0
    let refused = try run(configuration)
    expect(refused.status.error?.domain == .http && refused.status.error?.code == 503)
    configuration.documentIDs = ["d7"]
    try expect(run(configuration).pulled, equals: ["d7"])
    try client.purge("d7")
    memory.close(other)
    configuration.documentIDs = (0..<1_000).map { "d\($0)" }
    try expect(run(configuration).status.error == nil)
    eventually { memory.held == 0 }
  }

  /// Wants everything, and takes it when it is told.
  private final class ShortSink: PullSink {
    struct State {
      var parts: [Int] = []
      var bytes = 0
      var mostBytes = 0
      var waiting: [@Sendable () -> Void] = []
    }
    let state = Lock(State())
    var sendingLimits: SendingLimits { .short }

    func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
      answer(OfferAnswers(changes.map { _ in .wanted(possibleAncestors: []) }, maximumHistory: 20))
    }
    func received(
      _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
    ) {
      let bytes = revisions.reduce(0) { $0 + $1.revision.body.byteCount }
      state.withLock { state in
        state.parts.append(revisions.count)
        state.bytes += bytes
        state.mostBytes = max(state.mostBytes, state.bytes)
        state.waiting.append { [self] in
          self.state.withLock { $0.bytes -= bytes }
          done(revisions.map { _ in .success(()) })
        }
      }
    }
    func unavailable(_ revisions: [UnavailableRevision]) {}
    func caughtUp(at sequence: RemoteSequence?) {}
  }

  @Test("while memory is short, little is on its way, and everything is sent") func shortMemory() throws {
    let server = try databases.open(.lmdb)
    try fill(server, "server")
    let sink = ShortSink()
    let changes = try ChangeServer(PassiveResponder(server), PullRequest(), sink) { Issue.record($0) }
    changes.start()
    var taken = 0
    while taken < 150 {
      eventually { sink.state.withLock { !$0.waiting.isEmpty } }
      let (count, done) = sink.state.withLock { state in
        (state.parts.removeFirst(), state.waiting.removeFirst())
      }
      taken += count
      done()
    }
    changes.stop()
    // A part begins below the limit and ends with the document that exceeds it.
    expect(sink.state.withLock { $0.mostBytes } < 3 * SendingLimits.short.bytesInFlight)
  }

  @Test("a client that asks for many documents has them counted until it goes") func documentIDs() throws {
    let memory = BLIPMemory(bytes: 10_000_000, patience: 1_000_000)
    let (left, right) = PipeTransport.pair()
    BLIPResponder(
      BLIPConnection(right, name: "server", memory: memory), try databases.open(.sqlite)
    ).start()
    let client = BLIPConnection(left, name: "client")
    client.start()
    let ids = (0..<1_000).map { "\"document\($0)\"" }.joined(separator: ",")
    let answer = Awaited<Bool>()
    client.send(
      BLIPRequest(
        "subChanges", ["continuous": "true"], body: .bytes(Array("{\"docIDs\":[\(ids)]}".utf8)))
    ) { result in answer.set((try? result.get())?.error == nil) }
    try expect(answer.get())
    eventually { memory.held > 100_000 }
    client.close()
    eventually { memory.held == 0 }
  }

  @Test("lists and other bodies with too much in them are refused, and the connection goes on")
  func largeLists() throws {
    let client = ScriptedClient(try databases.open(.sqlite))
    let many = "[" + String(repeating: "[],", count: 300_000) + "[]]"
    for profile in ["changes", "proposeChanges"] {
      try expect(client.error(profile, [:], many), equals: "BLIP 400")
    }
    let wide = "{\"docIDs\":\(many)}"
    try expect(client.error("subChanges", [:], wide), equals: "BLIP 400")
    try expect(client.error("getCollections", [:], wide), equals: "BLIP 400")
    let long = "[\"" + String(repeating: "x", count: 9 << 20) + "\"]"
    try expect(client.error("changes", [:], long), equals: "BLIP 400")
    try expect(client.error("getCheckpoint", ["client": "x"]), equals: "HTTP 404")
  }
}
