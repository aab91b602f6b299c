// Pushes to a server that is as strict as LiteCore: what can't get there is reported.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("Pushes that an original may refuse") struct RefusedPushTests {
  private let databases = TestDatabases()

  private static let directions: [ReplicatorConfiguration.Direction] = [.push, .pushAndPull]

  private static let storesNoCheckpoint: [String: ScriptedServer.Answer] = [
    "setCheckpoint": { _, request in request.reply(BLIPErrorReply(domain: "HTTP", code: 503)) }
  ]

  private func edit(_ database: Database, _ numbers: Range<Int>, of id: String = "doc") throws {
    for number in numbers { try database.update(id, creating: true) { $0["n"] = .int(Int64(number)) } }
  }

  /// Depths of trees, each with an engine: in a short run one engine after the other.
  private static let depths: [(EngineName, Int)] = [2, 5, 19, 20, 50].enumerated().flatMap { index, depth in
    (isShort ? [someEngines[index % someEngines.count]] : someEngines).map { ($0, depth) }
  }

  @Test(
    "a document reaches the server however often it was edited since the last time", arguments: depths)
  func manyEdits(_ engine: EngineName, _ depth: Int) throws {
    for (saysRevision, direction) in [(false, Self.directions[0]), (true, .push), (false, .pushAndPull)] {
      for edits in [1, 4, 19, 20, 21, 60] {
        let what: Comment = "\(depth) \(direction) \(edits)"
        let database = try databases.open(engine) { $0.maximumTreeDepth = depth }
        let original = OriginalServer(saysRevision: saysRevision)
        let server = original.scripted()
        try edit(database, 0..<1)
        try expect(replicate(database, server) { $0.direction = direction }.pushed, equals: ["doc"])
        for round in 0..<2 {
          try edit(database, round * 100 + 1..<round * 100 + 1 + edits)
          let outcome = try replicate(database, server) { $0.direction = direction }
          expect(outcome.pushed == ["doc"] && outcome.failed == [:] && outcome.status.error == nil, what)
          try expect(
            original.current("doc"), equals: (try database.document("doc")?.revisionID.description), what)
          try expect(original.json("doc"), equals: (try database.document("doc")?.value()), what)
          expect(original.state.withLock { $0.badHistories }, equals: [], what)
        }
        try expect(replicate(database, server) { $0.direction = direction }.documents, equals: [], what)
        // What this side has of the server's revision isn't fetched and taken for another branch.
        let reset = try replicate(database, server) {
          $0.direction = direction
          $0.resetsCheckpoint = true
        }
        expect(reset.documents == [] && reset.status.error == nil, what)
      }
    }
  }

  @Test("the server's revision is known although it was pruned here", arguments: someEngines)
  func prunedOffer(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 3 }
    let original = OriginalServer(saysRevision: true)
    let server = original.scripted()
    try edit(database, 0..<1)
    _ = try replicate(database, server)
    try edit(database, 1..<40)
    // The pull from the beginning offers the old revision once more.
    let outcome = try replicate(database, server) { $0.resetsCheckpoint = true }
    expect(outcome.pulled == [] && outcome.pushed == ["doc"] && outcome.failed == [:])
    try expect(database.document("doc")?.revisionID.generation, equals: 40)
    try expect(original.current("doc"), equals: (try database.document("doc")?.revisionID.description))
  }

  @Test(
    "an erased server gets everything again, also what was edited since",
    arguments: [EngineName.lmdb, .sqlite], [true, false])
  func erased(_ engine: EngineName, _ saysRevision: Bool) throws {
    for direction in Self.directions {
      let database = try databases.open(engine)
      let original = OriginalServer(saysRevision: saysRevision)
      let server = original.scripted()
      for number in 0..<4 { try edit(database, 0..<2, of: "doc\(number)") }
      _ = try replicate(database, server) { $0.direction = direction }
      for number in 0..<2 { try edit(database, 2..<30, of: "doc\(number)") }
      original.erase()
      let outcome = try replicate(database, server) { $0.direction = direction }
      expect(outcome.pushed == ["doc0", "doc1", "doc2", "doc3"] && outcome.failed == [:])
      for number in 0..<4 {
        let id = "doc\(number)"
        try expect(original.current(id), equals: (try database.document(id)?.revisionID.description))
      }
      try expect(replicate(database, server) { $0.direction = direction }.documents, equals: [])
    }
  }

  @Test(
    "an erased server gets everything again, also when a pull or part of a push came first, with and without an earlier checkpoint",
    arguments: [EngineName.lmdb, .sqlite], [(true, true), (true, false), (false, true), (false, false)])
  func erasedBefore(_ engine: EngineName, _ how: (isPull: Bool, hadCheckpoint: Bool)) throws {
    let database = try databases.open(engine)
    let original = OriginalServer(saysRevision: true)
    for number in 0..<4 { try edit(database, 0..<2, of: "doc\(number)") }
    let first = try replicate(database, original.scripted(how.hadCheckpoint ? [:] : Self.storesNoCheckpoint))
    expect(first.pushed.count, equals: 4)
    original.erase()
    if how.isPull {
      original.state.withLock { state in
        state.sequence = 1
        state.documents["new"] = OriginalServer.Document(
          parents: ["1-aa": ""], current: "1-aa", isDeleted: false, json: "{}", sequence: 1)
      }
      // Both sides have the same checkpoint afterwards.
      let pulled = try replicate(database, original.scripted()) { $0.direction = .pull }
      expect(pulled.pulled, equals: ["new"])
    } else {
      // The server fails for all but the first document.
      let server = original.scripted([
        "rev": { _, request in
          if request.message.properties["id"] == "doc0" { return original.take(request) }
          request.reply(BLIPErrorReply(domain: "HTTP", code: 503))
        }
      ])
      try expect(replicate(database, server).pushed, equals: ["doc0"])
    }
    expect(original.state.withLock { $0.checkpoints.count }, equals: 1)
    let outcome = try replicate(database, original.scripted()) { $0.direction = .push }
    expect(outcome.failed == [:] && outcome.status.error == nil)
    for number in 0..<4 {
      let id = "doc\(number)"
      try expect(original.current(id), equals: (try database.document(id)?.revisionID.description), "\(id)")
    }
    try expect(replicate(database, original.scripted()) { $0.direction = .push }.documents, equals: [])
  }

  @Test(
    "an erased server gets everything again, also when no checkpoint was stored before",
    arguments: [EngineName.lmdb, .sqlite])
  func erasedWithoutCheckpoint(_ engine: EngineName) throws {
    for direction in Self.directions {
      let database = try databases.open(engine)
      let original = OriginalServer(saysRevision: true)
      for number in 0..<4 { try edit(database, 0..<2, of: "doc\(number)") }
      let refusing = original.scripted(Self.storesNoCheckpoint)
      try expect(replicate(database, refusing) { $0.direction = direction }.pushed.count, equals: 4)
      original.erase()
      let outcome = try replicate(database, original.scripted()) { $0.direction = direction }
      expect(outcome.failed == [:] && outcome.pushed == ["doc0", "doc1", "doc2", "doc3"])
      try expect(replicate(database, original.scripted()) { $0.direction = direction }.documents, equals: [])
    }
  }

  @Test(
    "a server that is restored as it was at the last checkpoint gets what was replicated since",
    arguments: [EngineName.lmdb, .sqlite])
  func restoredToCheckpoint(_ engine: EngineName) throws {
    for direction in Self.directions {
      let database = try databases.open(engine)
      let original = OriginalServer(saysRevision: true)
      for number in 0..<3 { try edit(database, 0..<2, of: "doc\(number)") }
      _ = try replicate(database, original.scripted()) { $0.direction = direction }
      let copy = original.state.withLock { $0 }
      // The session ends before it saves a checkpoint.
      try edit(database, 2..<3, of: "doc1")
      try edit(database, 0..<1, of: "mine")
      original.state.withLock { state in
        state.sequence += 1
        state.documents["theirs"] = OriginalServer.Document(
          parents: ["1-aa": ""], current: "1-aa", isDeleted: false, json: "{}", sequence: state.sequence)
      }
      let unsaved = try replicate(database, original.scripted(Self.storesNoCheckpoint)) {
        $0.direction = direction
      }
      expect(unsaved.pushed, equals: ["doc1", "mine"])
      original.state.withLock { $0 = copy }
      let outcome = try replicate(database, original.scripted()) { $0.direction = direction }
      expect(outcome.pushed == unsaved.pushed + unsaved.pulled && outcome.failed == [:])
      for id in ["doc0", "doc1", "doc2", "mine"] + unsaved.pulled {
        try expect(original.current(id), equals: (try database.document(id)?.revisionID.description), "\(id)")
      }
      // A checkpoint is saved, so nothing is doubted any more.
      let last = try replicate(database, original.scripted()) { $0.direction = direction }
      expect(last.status.progress.total, equals: 0)
    }
  }

  @Test(
    "what is pushed and doubted is pending until the server says that it is there",
    arguments: [EngineName.lmdb, .sqlite])
  func pending(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let original = OriginalServer(saysRevision: true)
    for number in 0..<4 { try edit(database, 0..<2, of: "doc\(number)") }
    var configuration = ReplicatorConfiguration(database, ReplicatorTarget(original.scripted().connector))
    func pending() throws -> Set<String> {
      let replicator = Replicator(configuration)
      let all = try replicator.pendingDocumentIDs()
      for id in try winners(database).keys {
        try expect(replicator.isDocumentPending(id), equals: all.contains(id))
      }
      return all
    }
    try expect(replicate(database, original.scripted(Self.storesNoCheckpoint)).pushed.count, equals: 4)
    try expect(pending(), equals: ["doc0", "doc1", "doc2", "doc3"])
    original.erase()
    // The server fails for all but the first document.
    let failing = original.scripted([
      "rev": { _, request in
        if request.message.properties["id"] == "doc0" { return original.take(request) }
        request.reply(BLIPErrorReply(domain: "HTTP", code: 503))
      }
    ])
    try expect(replicate(database, failing).pushed, equals: ["doc0"])
    try expect(pending(), equals: ["doc1", "doc2", "doc3"])
    try expect(replicate(database, original.scripted()).pushed, equals: ["doc1", "doc2", "doc3"])
    try expect(pending(), equals: [])
    // A session knows what it has pushed and pulled, also before it can store a checkpoint.
    original.state.withLock { state in
      state.sequence += 1
      state.documents["new"] = OriginalServer.Document(
        parents: ["1-aa": ""], current: "1-aa", isDeleted: false, json: "{}", sequence: state.sequence)
    }
    configuration = ReplicatorConfiguration(
      database, ReplicatorTarget(original.scripted(Self.storesNoCheckpoint).connector))
    configuration.isContinuous = true
    configuration.resetsCheckpoint = true
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { replicator.status.activity == .idle }
    try expect(database.document("new") != nil)
    try expect(replicator.pendingDocumentIDs(), equals: [])
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
  }

  @Test(
    "a document that the server has purged gets there when it is edited", arguments: [true, false],
    [true, false])
  func purged(_ saysRevision: Bool, _ isContinuous: Bool) throws {
    for direction in Self.directions {
      let database = try databases.open(.sqlite)
      let original = OriginalServer(saysRevision: saysRevision)
      let server = original.scripted()
      try edit(database, 0..<2)
      _ = try replicate(database, server) { $0.direction = direction }
      original.state.withLock { $0.documents["doc"] = nil }
      try edit(database, 2..<4)
      // A pull that goes on may still bring what the server has, unless it says that it has nothing.
      if isContinuous, direction == .pushAndPull, !saysRevision { continue }
      let outcome = try finish(database, server, isContinuous: isContinuous) { $0.direction = direction }
      expect(outcome.failed == [:] && outcome.pushed == ["doc"])
      try expect(original.current("doc"), equals: (try database.document("doc")?.revisionID.description))
    }
  }

  /// Replicates, continuously until it is idle.
  private func finish(
    _ database: Database, _ server: ScriptedServer, isContinuous: Bool,
    _ change: (inout ReplicatorConfiguration) -> Void
  ) throws -> Outcome {
    guard isContinuous else { return try replicate(database, server, change) }
    var configuration = ReplicatorConfiguration(database, ReplicatorTarget(server.connector))
    configuration.isContinuous = true
    change(&configuration)
    let replicator = Replicator(configuration)
    let (documents, stopped) = (Lock<[ReplicatedDocument]>([]), CountingSemaphore())
    let tokens = [
      replicator.observeDocuments { new in documents.withLock { $0 += new } },
      // Observers are told of the end after all documents. The status of the replicator may say it earlier.
      replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } },
    ]
    replicator.start()
    eventually({ replicator.status.activity == .idle })
    replicator.stop()
    expect(stopped.wait(seconds: 120))
    for token in tokens { token.cancel() }
    return Outcome(status: replicator.status, documents: documents.withLock { $0 })
  }

  @Test(
    "a conflict that nothing follows is reported, once", arguments: [false, true],
    [ReplicatorConfiguration.Direction.push, .pushAndPull])
  func reported(_ isContinuous: Bool, _ direction: ReplicatorConfiguration.Direction) throws {
    for isProposal in [true, false] {
      let database = try databases.open(.lmdb)
      for id in ["a", "doc", "z"] { try edit(database, 0..<2, of: id) }
      let original = OriginalServer(saysRevision: true)
      let server = original.scripted(
        isProposal
          ? [
            "proposeChanges": { _, request in
              let statuses = (request.message.json.array ?? []).map {
                $0[0].string == "doc" ? #"{"status":409,"rev":"9-aa"}"# : "0"
              }
              request.reply(
                BLIPReply(["blobs": "true"], body: .bytes(Array("[\(statuses.joined(separator: ","))]".utf8)))
              )
            }
          ]
          : [
            "rev": { _, request in
              guard request.message.properties["id"] == "doc" else { return _ = request.reply() }
              request.reply(BLIPErrorReply(domain: "HTTP", code: 409))
            }
          ])
      let outcome = try finish(database, server, isContinuous: isContinuous) { $0.direction = direction }
      expect(outcome.status.error == nil && outcome.pushed == ["a", "z"])
      let errors = outcome.documents.compactMap { document in document.error.map { (document.id, $0.code) } }
      expect(errors.count == 1 && errors.first?.0 == "doc" && errors.first?.1 == 409)
      expect(
        original.state.withLock { state in
          state.checkpoints.values.contains {
            String(decoding: $0.json, as: UTF8.self).contains("\"local\":6")
          }
        })
    }
  }

  @Test("a revision that is forbidden is sent once more, after all others", arguments: [1, 2])
  func forbidden(_ times: Int) throws {
    let database = try databases.open(.sqlite)
    for id in ["a", "b", "c"] { try edit(database, 0..<1, of: id) }
    let left = Lock(times)
    let server = ScriptedServer([
      "rev": { _, request in
        let isRefused =
          request.message.properties["id"] == "a"
          && left.withLock { left in
            left -= 1
            return left >= 0
          }
        if isRefused {
          request.reply(BLIPErrorReply(domain: "HTTP", code: 403, text: "no access"))
        } else {
          request.reply()
        }
      }
    ])
    let outcome = try replicate(database, server) { $0.direction = .push }
    expect(server.requests("rev").map { $0["id"] }, equals: ["a", "b", "c", "a"])
    expect(outcome.pushed, equals: (times == 1 ? ["a", "b", "c"] : ["b", "c"]))
    expect(outcome.failed["a"]?.code, equals: (times == 1 ? nil : 403))
    expect(outcome.documents.count == 3 && outcome.status.error == nil)
    expect(outcome.status.progress.completed == 3 && outcome.status.progress.total == 3)
    expect(server.checkpoint.withLock { $0 }?["local"], equals: 3)
  }

  @Test("a stop doesn't wait long for the answer to the last checkpoint") func stopAtTheEnd() throws {
    let database = try databases.open(.sqlite)
    try edit(database, 0..<1)
    let asked = Awaited<Void>()
    // The request is kept, or it would be answered with an error.
    let kept = Lock<[BLIPIncomingRequest]>([])
    let server = ScriptedServer([
      "setCheckpoint": { _, request in
        kept.withLock { $0.append(request) }
        asked.set(())
      }
    ])
    var configuration = ReplicatorConfiguration(database, ReplicatorTarget(server.connector))
    let timer = ManualTimer()
    configuration.timer = timer
    let replicator = Replicator(configuration)
    replicator.start()
    try asked.get()
    eventually({ timer.delays.contains(60) })
    replicator.stop()
    eventually({ timer.delays.contains(2) })
    timer.advance(by: 2)
    eventually({ replicator.status.activity == .stopped })
    expect(replicator.status.error == nil)
    kept.withLock { $0 = [] }
  }
}
