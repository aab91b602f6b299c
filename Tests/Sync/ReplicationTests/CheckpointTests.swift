import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

@Suite("Checkpoints of replications") struct CheckpointTests {
  private let databases = TestDatabases()

  @Test("the ID is that of Couchbase Lite 2.x") func vectors() throws {
    let uuid = [UInt8](0..<16)
    let id = CheckpointID(remoteID: "ws://example.com:4984/db/_blipsync")
    try expect(id.text(uuid), equals: "cp-diMeSyTipCNYgVFpNs/vsv9hB84=")
    let fleece = id.fleece(uuid)
    expect(fleece.prefix(3), equals: [0x4F, 0x10, 0])
    expect(fleece.suffix(8), equals: [0x60, 0x02, 0x80, 0x1C, 0x80, 0x14, 0x80, 0x03])
    let channels = CheckpointID(remoteID: "ws://example.com:4984/db/_blipsync", channels: ["a", "b"])
    try expect(channels.text(uuid), equals: "cp-VVozFweT08erRaGxwyeRTSZKH2c=")
  }

  @Test("long lists of IDs make wide Fleece that can be read") func wide() throws {
    let ids = (0..<9_000).map { "document \($0)" }
    let id = CheckpointID(remoteID: "x", documentIDs: ids)
    let fleece = id.fleece([UInt8](repeating: 65, count: 16))
    let value = try SyncBody.fleece(fleece, .empty).value()
    expect(value.array?.count, equals: 6)
    expect(value.array?[5].array?.compactMap(\.string), equals: ids)
    expect(value.array?[0].string, equals: "AAAAAAAAAAAAAAAA")
  }

  /// The IDs that the originals used, from the recorded sessions.
  @Test("the recorded sessions have the IDs that are computed here") func recorded() throws {
    guard let data = environmentVariable("TOUCHSTONE_DATA") else { return }
    let root = data + "/sync-transcripts"
    var checked = 0
    for group in ["v2", "v3.2", "v3"] {
      for session in try FileManager.default.contentsOfDirectory(atPath: root + "/" + group) {
        guard !["docids", "channels", "filter", "collections"].contains(where: { session.hasPrefix($0) }),
          let state = FileManager.default.contents(atPath: "\(root)/\(group)/\(session)/state.json"),
          let json = try JSONSerialization.jsonObject(with: state) as? [String: Any]
        else { continue }
        for end in ["start", "end"] {
          guard let side = (json[end] as? [String: Any])?["client"] as? [String: Any],
            let hex = side["private_uuid"] as? String, let stored = side["checkpoints"] as? [[String: Any]],
            stored.count == 1, let name = stored[0]["id"] as? String
          else { continue }
          let uuid = stride(from: 0, to: 32, by: 2).compactMap { place in
            UInt8(hex.dropFirst(place).prefix(2), radix: 16)
          }
          let id = CheckpointID(remoteID: "ws://127.0.0.1:4984/db/_blipsync")
          try expect(id.text(uuid), equals: name, "\(group)/\(session)")
          checked += 1
        }
      }
    }
    expect(checked > 50, "\(checked) IDs were found")
  }

  @Test("zero and missing fields are left out") func json() {
    func text(_ checkpoint: Checkpoint) -> String {
      String(decoding: checkpoint.json(time: nil), as: UTF8.self)
    }
    expect(text(Checkpoint()), equals: "{}")
    expect(text(Checkpoint(pushed: 7)), equals: #"{"local":7}"#)
    let both = Checkpoint(pushed: 7, pulled: RemoteSequence(json: #"["a",1]"#))
    expect(text(both), equals: #"{"local":7,"remote":["a",1]}"#)
    expect(Checkpoint(json: both.json(time: 5)), equals: both)
    expect(Checkpoint(json: Array("{}".utf8)), equals: Checkpoint())
    let nonsense = Checkpoint(json: Array("nonsense".utf8))
    expect(nonsense.isAt(Checkpoint()) && nonsense.unproven == .max)
  }

  @Test("what can't be the last sequence of doubted marks doubts all") func unproven() {
    func read(_ value: String) -> UInt64 { Checkpoint(json: Array("{\"unproven\":\(value)}".utf8)).unproven }
    for value in ["0", "0.0", "false", "null"] { expect(read(value), equals: 0, "\(value)") }
    expect(read("7") == 7 && read("18446744073709551615") == .max)
    for value in ["true", "\"7\"", "1.5", "-7", "1e30", "[]", "{}"] {
      expect(read(value), equals: .max, "\(value)")
    }
  }

  /// Some builds have stored `true` in the place of a sequence.
  @Test("a checkpoint that doubts marks without a sequence doubts all, and the next one has a sequence")
  func unprovenTrue() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.sqlite))
    for number in 0..<3 { try a.save("doc\(number)", ["n": 1]) }
    try replicate(a, b)
    try b.purge("doc1")
    let connection = connection(to: b)
    let id = try CheckpointID(remoteID: connection.remoteID).text(a.replicating { $0.privateUUID })
    try a.replicatingChanges { try $0.setSyncCheckpoint(id, Array(#"{"unproven":true}"#.utf8)) }
    let there = try b.replicating { try $0.peerCheckpoint(id) }
    _ = try b.replicating { try $0.setPeerCheckpoint(id, Array("{}".utf8), basedOn: there?.revision) }
    let replicator = Replicator(ReplicatorConfiguration(a, ReplicatorTarget(connection)))
    try expect(replicator.pendingDocumentIDs(), equals: ["doc0", "doc1", "doc2"])
    func stored() throws -> UInt64? {
      try a.replicating { try $0.syncCheckpoint(id) }.map { Checkpoint(json: $0).unproven }
    }
    // A pull proves nothing.
    try replicate(a, b) { $0.direction = .pull }
    try expect(stored(), equals: a.replicating { try $0.lastSequence })
    try expect(replicate(a, b).pushed, equals: ["doc1"])
    try expect(stored() == 0 && replicator.pendingDocumentIDs() == [])
    try expectEqual(a, b)
  }

  @Test("a field that differs begins again, the other goes on") func fields() {
    func agree(_ local: Checkpoint?, _ remote: Checkpoint?) -> (Checkpoint, Bool) {
      var checkpointer = Checkpointer(id: "a", askedID: "a")
      checkpointer.agree(
        local: local, remote: remote.map { StoredCheckpoint(json: $0.json(time: 1), revision: "3-cc") })
      expect([0, 3, .max].contains(checkpointer.unproven))
      return (checkpointer.current, checkpointer.unproven == 0)
    }
    let one = RemoteSequence(json: "1")
    let both = Checkpoint(pushed: 5, pulled: one)
    expect(agree(both, both) == (both, true))
    expect(agree(both, Checkpoint(pushed: 4, pulled: one)) == (Checkpoint(pulled: one), false))
    expect(agree(both, Checkpoint(pushed: 5)) == (Checkpoint(pushed: 5), false))
    expect(agree(both, nil) == (Checkpoint(), false))
    expect(agree(nil, both) == (Checkpoint(), false))
    // What isn't proven isn't trusted.
    var unproven = both
    unproven.unproven = 3
    expect(Checkpoint(json: unproven.json(time: 5)), equals: unproven)
    expect(agree(unproven, both) == (both, false) && agree(both, unproven) == (both, true))
    // The latest common place counts. Equal numbers of two sessions are a coincidence.
    func places(_ names: [String]) -> Checkpoint {
      var checkpoint = both
      checkpoint.pushes = names.map { SavedPlace(session: $0, sequence: $0 == "0" ? "3" : "5") }
      return checkpoint
    }
    expect(agree(places(["2", "1"]), places(["1"])) == (both, true))
    expect(agree(places(["2", "0"]), places(["1", "0"])) == (Checkpoint(pushed: 3, pulled: one), false))
    expect(agree(places(["2"]), places(["1"])) == (Checkpoint(pulled: one), false))
    // Couchbase Lite keeps none.
    expect(agree(places(["2"]), both) == (both, true) && agree(both, places(["2"])) == (both, true))
  }

  /// The session after the restore breaks off between the two saves.
  @Test("a restored side isn't told of places that it has lost") func restoredPlaces() {
    func saved(_ places: [(String, Int)]) -> Checkpoint {
      var checkpoint = Checkpoint(
        pushed: UInt64(places[0].1), pulled: RemoteSequence(json: "\(places[0].1)"))
      checkpoint.pushes = places.map { SavedPlace(session: $0.0, sequence: "\($0.1)") }
      checkpoint.pulls = checkpoint.pushes
      return checkpoint
    }
    func agree(_ local: Checkpoint, _ remote: Checkpoint) -> Checkpointer {
      var checkpointer = Checkpointer(id: "a", askedID: "a")
      checkpointer.agree(
        local: local, remote: StoredCheckpoint(json: remote.json(time: 1), revision: "3-cc"))
      return checkpointer
    }
    let local = saved([("c", 7), ("b", 5), ("a", 3)])
    let begun = agree(local, saved([("a", 3)]))
    expect(begun.current.isAt(saved([("a", 3)])))
    let again = agree(local, begun.next(places: 8))
    expect(again.current.isAt(saved([("a", 3)])) && again.unproven == .max)
    // Nothing is common.
    let other = agree(local, saved([("d", 7)]))
    expect(other.current == Checkpoint() && other.pushes == [] && other.pulls == [])
  }

  @Test("a checkpoint says what is done, in any order of the ends") func queue() {
    var queue = SequenceQueue<Int>()
    let tickets = (1...5).map { queue.append($0) }
    expect(queue.reached == nil)
    queue.complete(tickets[1])
    queue.complete(tickets[4])
    expect(queue.reached == nil && queue.open == 3)
    queue.complete(tickets[0])
    expect(queue.reached, equals: 2)
    queue.pass(6)
    expect(queue.reached, equals: 2)
    queue.complete(tickets[3])
    queue.complete(tickets[3])
    queue.complete(tickets[2])
    expect(queue.reached == 6 && queue.open == 0)
    queue.pass(9)
    expect(queue.reached, equals: 9)
    var random = SeededGenerator(seed: testSeed)
    var large = SequenceQueue<Int>()
    var open: [(Int, Int)] = []
    for number in 1...20_000 {
      open.append((large.append(number), number))
      while open.count > 50 || random.once(in: 3), !open.isEmpty {
        large.complete(open.remove(at: random.below(open.count)).0)
      }
      expect(large.reached ?? 0, equals: (open.map(\.1).min() ?? number + 1) - 1)
    }
  }

  @Test(
    "both sides store it, and a second run sends nothing",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay"), arguments: enginePairs)
  func secondRun(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = (try databases.open(here), try databases.open(there))
    for number in 0..<450 { try a.save("doc\(number)", ["n": .int(Int64(number))]) }
    try b.save("other", ["n": 1])
    let first = try replicate(a, b)
    expect(
      first.status, equals: ReplicatorStatus(activity: .stopped, progress: .init(completed: 451, total: 451)))
    expect(first.pushed.count == 450 && first.pulled == ["other"])
    try expectEqual(a, b)
    let id = try CheckpointID(remoteID: connection(to: b).remoteID).text(a.replicating { $0.privateUUID })
    let local = try a.replicating { try $0.syncCheckpoint(id) }
    let remote = try b.replicating { try $0.peerCheckpoint(id) }
    expect(local != nil && local == remote?.json)
    let second = try replicate(a, b)
    expect(second.documents == [] && second.status.progress == .init())
    try expect(b.replicating { try $0.peerCheckpoint(id)?.revision }, equals: remote?.revision)
    try expect(a.check() == [] && b.check() == [])
  }

  @Test("a lost or a reset checkpoint compares all, and sends nothing again") func lost() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    for number in 0..<30 { try a.save("a\(number)", ["n": 1]) }
    for number in 0..<30 { try b.save("b\(number)", ["n": 1]) }
    try replicate(a, b)
    let reset = try replicate(a, b) { $0.resetsCheckpoint = true }
    expect(reset.pushed == [] && reset.pulled == [] && reset.status.progress.total > 0)
    let id = try CheckpointID(remoteID: connection(to: b).remoteID).text(a.replicating { $0.privateUUID })
    let stored = try b.replicating { try $0.peerCheckpoint(id) }
    _ = try b.replicating { try $0.setPeerCheckpoint(id, Array("{}".utf8), basedOn: stored?.revision) }
    let lost = try replicate(a, b)
    expect(lost.pushed == [] && lost.pulled == [])
    try expect(replicate(a, b).status.progress.total, equals: 0)
    try expectEqual(a, b)
  }

  @Test("a copy with new UUIDs goes on where its original stopped", arguments: [EngineName.sqlite, .lmdb])
  func prebuilt(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let server = try databases.open(engine)
    for number in 0..<20 { try server.save("s\(number)", ["n": 1]) }
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    let original = try folder.open("original")
    try replicate(original, server)
    let path = original.path
    try original.close()
    _ = try folder.install("copy", from: path)
    let copy = try folder.open("copy")
    try server.save("new", ["n": 2])
    let outcome = try replicate(copy, server)
    expect(outcome.pulled == ["new"] && outcome.status.progress.total == 1)
    try expect(replicate(copy, server).status.progress.total, equals: 0)
    try copy.close()
  }
}

@Suite("What replication stores") struct SyncRecordTests {
  private let databases = TestDatabases()

  @Test(
    "a history ends with what the peer has, however many revisions are between",
    arguments: [EngineName.sqlite, .lmdb])
  func cutHistory(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var ids: [String] = []
    for number in 0..<12 {
      ids.append(try database.save("doc", ["n": JSONValue(number)]).revisionID.description)
    }
    func history(_ ancestors: [String], _ maximum: Int, isWhole: Bool = false) throws -> [String]? {
      let wanted = SyncWanted(
        id: "doc", revision: ids[11], ancestors: ancestors, maximumHistory: maximum, isWhole: isWhole)
      guard case .revision(let revision) = try database.replicating({ try $0.syncRevisions([wanted]) })[0]
      else {
        return nil
      }
      return revision.history
    }
    try expect(history([], 3), equals: [ids[11], ids[10], ids[9], ids[8]])
    try expect(history([ids[9]], 3), equals: [ids[11], ids[10], ids[9]])
    try expect(history([ids[8]], 3), equals: [ids[11], ids[10], ids[9], ids[8]])
    try expect(history([ids[2]], 3), equals: [ids[11], ids[10], ids[9], ids[2]])
    try expect(history(["7-ffff"], 3), equals: [ids[11], ids[10], ids[9], ids[8]])
    // Behind it goes what the maximum leaves, if that is wanted.
    try expect(history([ids[9]], 3, isWhole: true), equals: [ids[11], ids[10], ids[9], ids[8]])
    try expect(history([ids[9], ids[10]], 20, isWhole: true), equals: ids.reversed())
    try expect(history([ids[2]], 3, isWhole: true), equals: [ids[11], ids[10], ids[9], ids[2]])
    try expect(history(["7-ffff"], 3, isWhole: true), equals: [ids[11], ids[10], ids[9], ids[8]])
  }

  @Test(
    "a history ends with what the peer has, also if it was pruned here",
    arguments: [EngineName.sqlite, .lmdb], [0, 2])
  func prunedHistory(_ engine: EngineName, _ block: Int) throws {
    // Small blocks put older revisions outside of the record.
    let database = try databases.open(engine) {
      $0.maximumTreeDepth = 5
      if block > 0 { $0.revisionsPerBlock = block }
    }
    var ids: [String] = []
    for number in 0..<12 {
      ids.append(try database.save("doc", ["n": JSONValue(number)]).revisionID.description)
    }
    func history(_ known: String, _ maximum: Int) throws -> [String]? {
      let wanted = SyncWanted(
        id: "doc", revision: ids[11], ancestors: [], maximumHistory: maximum, known: known)
      guard case .revision(let revision) = try database.replicating({ try $0.syncRevisions([wanted]) })[0]
      else { return nil }
      return revision.history
    }
    let stored = [ids[11], ids[10], ids[9], ids[8], ids[7]]
    try expect(history(ids[2], 20), equals: stored + [ids[2]])
    try expect(history(ids[2], 3), equals: Array(stored.prefix(3)) + [ids[2]])
    try expect(history(ids[9], 20), equals: Array(stored.prefix(3)))
    try expect(history("7-ffff", 20), equals: stored + ["7-ffff"])
    // It can't be an ancestor, or isn't a revision.
    try expect(history("8-ffff", 20), equals: stored)
    try expect(history("x", 20), equals: stored)
    // A pruned revision is known if it is marked.
    let remote = try database.replicatingChanges { try $0.remoteNumber("there") }
    func knowledge(_ revision: String, _ remote: UInt32?) throws -> SyncKnowledge {
      try database.replicating { try $0.syncKnowledge(of: [("doc", revision)], remote: remote)[0] }
    }
    try database.replicatingChanges { try $0.mark([("doc", ids[2])], remote: remote) }
    try expect(knowledge(ids[2], remote), equals: .known(.ancestor))
    try expect(knowledge(ids[2], nil), equals: .missing(possibleAncestors: []))
    try expect(knowledge(ids[2], remote + 1), equals: .missing(possibleAncestors: []))
    try expect(knowledge(ids[1], remote), equals: .missing(possibleAncestors: []))
  }

  @Test("a check reports entries that can't be", arguments: [EngineName.sqlite, .lmdb])
  func check(_ engine: EngineName) throws {
    let (a, b) = (try databases.open(engine), try databases.open(engine))
    try a.save("doc", ["n": 1])
    try replicate(a, b)
    try expect(a.check(deep: true), equals: [])
    func put(_ keyspace: String, _ key: [UInt8], _ value: [UInt8]) throws {
      try a.replicating { store in
        try store.writingDerived { transaction in
          let keyspace = try #require(try transaction.keyspace(named: keyspace))
          try transaction.put(key, value, in: keyspace)
        }
      }
    }
    try put("marks", [0, 0, 0, 1] + Array("gone".utf8), [1, 2, 0xAA])
    try put("marks", [0, 0, 0, 7] + Array("doc".utf8), [1, 2, 0xAA])
    try put("marks", [0, 0, 0, 1] + Array("doc".utf8), [])
    try put("sync", Array("cx".utf8), [1] + Array("nonsense".utf8))
    try put("sync", Array("px".utf8), [1, 0])
    try put("sync", Array("ry".utf8), [1, 1])
    try put("sync", Array("zz".utf8), [1])
    let faults = try a.check()
    expect(faults.count, equals: 7, "\(faults)")
    expect(faults.allSatisfy { $0.subject == "keyspace marks" || $0.subject == "keyspace sync" })
  }

  @Test("checkpoints and marks aren't documents, and a conversion keeps them") func hidden() throws {
    let directory = TemporaryDirectory()
    let a = try Database.open("a", in: directory.path, options: try options(.sqlite))
    let b = try databases.open(.lmdb)
    for number in 0..<10 { try a.save("doc\(number)", ["n": 1]) }
    try replicate(a, b)
    try expect(a.localDocumentIDs() == [] && a.documentCount == 10)
    let path = a.path
    try a.close()
    try Database.convert(path, to: .lmdb)
    let converted = try Database.open(path, options: try options(.lmdb))
    try expect(replicate(converted, b).status.progress.total, equals: 0)
    try expect(converted.check(deep: true), equals: [])
    try converted.close()
  }
}
