import Blobs
import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication

@Suite("Changes that stay undone") struct UndoneTests {
  private let databases = TestDatabases()

  @Test("the queue is as small as what is open, however long a task stays open or undone") func bounded() {
    var queue = SequenceQueue<Int>(reached: 0)
    let first = queue.append(1)
    var most = 0
    for number in 2..<200_000 {
      if number % 3 == 0 { queue.pass(number) } else { queue.complete(queue.append(number)) }
      most = max(most, queue.count)
    }
    expect(most <= 70 && queue.reached == 0 && queue.open == 1)
    let second = queue.append(200_000)
    queue.complete(first)
    expect(queue.reached, equals: 199_999)
    queue.abandon(second)
    for number in 200_001..<300_000 {
      let ticket = queue.append(number)
      // The same document, which stays undone each time.
      if number % 2 == 0 { queue.abandon(ticket) } else { queue.complete(ticket) }
      queue.pass(number)
      most = max(most, queue.count)
    }
    expect(most <= 70 && queue.reached == 199_999 && queue.open == 0)
  }

  @Test("the queue knows what is reached when tasks end, or never do, in any order") func anyOrder() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<100 {
      var queue = SequenceQueue<Int>(reached: 0)
      var open: [(ticket: Int, number: Int)] = []
      var limit = Int.max
      for number in 1...random.below(200) + 1 {
        if random.once(in: 4) { queue.pass(number) } else { open.append((queue.append(number), number)) }
        while !open.isEmpty, random.once(in: 2) {
          let one = open.remove(at: random.below(open.count))
          if random.once(in: 20) {
            limit = min(limit, one.number)
            queue.abandon(one.ticket)
          } else {
            queue.complete(one.ticket)
          }
        }
        let lowest = open.map(\.number).min() ?? number + 1
        expect(queue.reached, equals: min(lowest, limit, number + 1) - 1)
        expect(queue.count <= 64 + 2 * open.count)
      }
    }
  }

  @Test("a continuous push of a document that is refused again and again keeps nothing of it")
  func continuousPush() throws {
    let (local, other) = (try databases.open(.lmdb), try databases.open(.sqlite))
    for number in 0..<40 { try local.save("doc\(number)", ["n": 0]) }
    try local.save("bad", ["n": 0])
    var configuration = ReplicatorConfiguration(local, .database(other))
    configuration.isContinuous = true
    configuration.direction = .push
    let peer = RefusingPeer(LocalPeer(other), refused: "bad")
    let remote = try local.replicating { try $0.remoteNumber("other") }
    let session = Session(configuration, peer, remote: remote, Checkpointer(id: "x", askedID: "x"), .init())
    session.start()
    let kept = Lock(0)
    for round in 1...60 {
      for number in 0..<40 {
        try local.update("doc\(number)") { $0["n"] = .int(Int64(round)) }
        try local.update("bad") { $0["n"] = .int(Int64(round * 100 + number)) }
      }
      let isDone = Lock(false)
      eventually {
        session.enqueue { session in
          let (push, last) = (session.push, try session.database.replicating { try $0.lastSequence })
          guard let push else { return }
          kept.withLock { $0 = max($0, push.progress.count) }
          isDone.withLock { $0 = push.isIdle && push.scanned == last }
        }
        return isDone.withLock { $0 }
      }
    }
    // At least once a round.
    expect(peer.refusals >= 60, "\(peer.refusals)")
    expect(kept.withLock { $0 } <= 200, "\(kept.withLock { $0 })")
    try expect(other.document("doc39")?["n"].int == 60 && other.document("bad") == nil)
    session.enqueue { $0.end(nil) }
  }

  @Test("a continuous session that always has something to do ends a minute after a transient failure")
  func busySession() throws {
    let (local, other) = (try databases.open(.sqlite), try databases.open(.lmdb))
    let timer = ManualTimer()
    var configuration = ReplicatorConfiguration(local, .database(other))
    configuration.isContinuous = true
    configuration.direction = .push
    configuration.timer = timer
    let error = ReplicationError(.http, 503, "not now")
    let peer = RefusingPeer(LocalPeer(other), refused: "bad", error, unanswered: "slow")
    let remote = try local.replicating { try $0.remoteNumber("other") }
    let session = Session(configuration, peer, remote: remote, Checkpointer(id: "x", askedID: "x"), .init())
    let owner = EndOwner()
    session.owner = owner
    for id in ["slow", "bad", "good"] { try local.save(id, [:]) }
    session.start()
    try eventually { try other.document("good") != nil && peer.refusals == 1 }
    eventually { timer.delays.contains(Session.longestFailure) }
    expect(owner.ended.withLock { $0 } == nil)
    timer.advance(by: Session.longestFailure)
    eventually { owner.ended.withLock { $0 } == error }
  }

  @Test(
    "what the other side fails to store is tried again, and what it refuses isn't", arguments: [false, true])
  func failureOfTheOtherSide(byBLIP: Bool) throws {
    let (local, other) = (try databases.open(.lmdb), try databases.open(.sqlite))
    // The checkpoint passes what comes before the first failure.
    for id in ["refused", "full", "denied", "fine"] { try local.save(id, [:]) }
    let isFailing = Lock(true)
    var options = PassiveResponder.Options()
    options.checks = {
      { revision in
        guard isFailing.withLock({ $0 }) else { return }
        switch revision.id {
        case "full": throw StorageError(.diskFull, "there is no room")
        case "denied": throw StorageError(.permissionDenied, "the file can't be written")
        case "refused": throw DocumentError(.rejected, "never")
        default: break
        }
      }
    }
    let connector: any PeerConnector = byBLIP ? pipeConnector(other, options) : LocalConnector(other, options)
    func push() throws -> Outcome {
      var configuration = ReplicatorConfiguration(local, ReplicatorTarget(connector))
      configuration.direction = .push
      configuration.maximumRetries = 0
      return try run(configuration)
    }
    let first = try push()
    expect(first.failed.keys.sorted(), equals: ["denied", "full", "refused"])
    let undone = Set(first.documents.filter(\.isUndone).map(\.id))
    expect(undone, equals: ["denied", "full"])
    // Still full: it isn't forgotten, and the run says so.
    try expect(Set(push().failed.keys), equals: ["denied", "full"])
    isFailing.withLock { $0 = false }
    try expect(push().failed.isEmpty)
    for id in ["full", "denied", "fine"] { try expect(other.document(id) != nil, "\(id)") }
    try expect(other.document("refused") == nil)
  }

  @Test(
    "a document whose blob can't be read here is pushed once it can", arguments: [false, true], [false, true])
  func unreadableBlob(byBLIP: Bool, isDamaged: Bool) throws {
    let (local, other) = (try databases.open(.lmdb), try databases.open(.sqlite))
    let blob = try local.makeBlob([UInt8](repeating: 7, count: 10_000))
    try local.save("blob", ["blob": blob.jsonValue])
    try local.save("plain", [:])
    let folder = local.path + "/Attachments"
    let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".blob") }
    expect(files.count, equals: 1)
    let file = URL(filePath: folder + "/" + (files.first ?? ""))
    let bytes = try Data(contentsOf: file)
    try FileManager.default.removeItem(at: file)
    if isDamaged { try Data("other bytes".utf8).write(to: file) }
    func push() throws -> Outcome {
      var configuration = ReplicatorConfiguration(
        local, ReplicatorTarget(byBLIP ? pipeConnector(other) : LocalConnector(other)))
      configuration.direction = .push
      configuration.maximumRetries = 0
      return try run(configuration)
    }
    for _ in 0..<2 {
      let outcome = try push()
      expect(outcome.failed.keys.sorted(), equals: ["blob"])
      expect(outcome.documents.filter(\.isUndone).map(\.id), equals: ["blob"])
    }
    try? FileManager.default.removeItem(at: file)
    try bytes.write(to: file)
    try expect(push().failed.isEmpty)
    try expect(other.open(blob).length, equals: 10_000)
    try expect(other.document("blob") != nil && other.document("plain") != nil)
  }

  @Test("an error is a refusal only if it says something about the document") func refusals() {
    let refusals: [(ReplicationError.Domain, [Int])] = [
      (.http, [400, 401, 403, 404, 409, 413, 415]), (.blip, [404]), (.liteCore, [5, 15, 29]),
      (.touchstone, [400, 404, 409, 413]),
    ]
    let failures: [(ReplicationError.Domain, [Int])] = [
      (.http, [408, 429, 500, 503, 507]), (.blip, [13, 500]), (.liteCore, [11, 12, 13, 14, 16]),
      (.touchstone, [401, 403, 408, 499, 500, 503, 507, 590, 591]), (.posix, [28]), (.webSocket, [1011]),
    ]
    for (domain, codes) in refusals {
      for code in codes { expect(ReplicationError(domain, code, "").isRefusal, "\(domain) \(code)") }
    }
    for (domain, codes) in failures {
      for code in codes { expect(!ReplicationError(domain, code, "").isRefusal, "\(domain) \(code)") }
    }
  }

  // MARK: What couldn't be replicated

  private func failed(_ id: String, _ code: Int, isUndone: Bool) -> ReplicatedDocument {
    ReplicatedDocument(
      id: id, revisionID: "1-a", isDeleted: false, isPush: true, error: ReplicationError(.http, code, "no"),
      isUndone: isUndone)
  }

  @Test("what a later connection has mended doesn't count as failed") func mended() {
    var failures = ReplicationFailures()
    failures.note(ReplicatorStatus(activity: .connecting))
    let first = failures.add([
      failed("a", 503, isUndone: true), failed("b", 403, isUndone: false), failed("c", 503, isUndone: true),
      failed("d", 400, isUndone: true),
    ])
    expect(first.map(\.id) == ["b"] && failures.count == 4)
    failures.note(ReplicatorStatus(activity: .offline))
    failures.note(ReplicatorStatus(activity: .connecting))
    // One is there, which was found out without sending it; one comes; one fails again.
    let mended = ReplicatedDocument(id: "c", revisionID: "1-a", isDeleted: false, isPush: true, error: nil)
    expect(failures.add([mended, failed("d", 400, isUndone: true)]).isEmpty)
    expect(failures.count, equals: 3)
    failures.settle()
    expect(failures.count == 2 && failures.undone.map(\.id) == ["d"])
  }

  @Test("it names a bounded number of documents, and counts the others") func manyFailures() {
    var failures = ReplicationFailures()
    failures.note(ReplicatorStatus(activity: .connecting))
    for number in 0..<30_000 { _ = failures.add([failed("\(number)", 503, isUndone: true)]) }
    expect(failures.count == 30_000 && failures.undone.count == 10_000)
    failures.note(ReplicatorStatus(activity: .connecting))
    expect(failures.count, equals: 30_000)
    failures.note(ReplicatorStatus(activity: .idle))
    expect(failures.count, equals: 0)
  }
}

private final class EndOwner: Session.Owner {
  let ended = Lock<ReplicationError?>(nil)
  let wantsDocuments = false
  func sessionChanged(_ session: Session, isBusy: Bool, _ progress: ReplicatorStatus.Progress) {}
  func sessionReached(_ session: Session, _ reached: PushReached) {}
  func sessionReplicated(_ documents: [ReplicatedDocument]) {}
  func sessionEnded(_ session: Session, _ error: ReplicationError?) { ended.withLock { $0 = error } }
}

/// A peer that refuses one document, and doesn't say that this is for good. It may never answer about another one.
private final class RefusingPeer: Peer {
  private let inner: any Peer
  private let refused: String
  private let error: ReplicationError
  private let unanswered: String?
  private let count = Lock(0)
  var refusals: Int { count.withLock { $0 } }

  init(
    _ inner: any Peer, refused: String, _ error: ReplicationError = ReplicationError(.http, 400, "not now"),
    unanswered: String? = nil
  ) {
    self.inner = inner
    self.refused = refused
    self.error = error
    self.unanswered = unanswered
  }

  var revisionsInFlight: Int { 100 }
  func begin(_ owner: any PeerOwner) { inner.begin(owner) }
  func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    inner.checkpoint(id, done)
  }
  func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) { inner.setCheckpoint(id, json, basedOn: revision, done) }
  func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    inner.pull(request, into: sink, done)
  }
  func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
  ) { inner.fetchBlob(blob, of: documentID, into: writer, done) }
  func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) { inner.propose(changes, allowingConflicts: allowingConflicts, done) }
  func unavailable(_ revisions: [UnavailableRevision]) { inner.unavailable(revisions) }
  func close() { inner.close() }

  func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
    let places = revisions.indices.filter { ![refused, unanswered].contains(revisions[$0].revision.id) }
    let others = revisions.indices.filter { revisions[$0].revision.id == refused }
    count.withLock { $0 += others.count }
    if !others.isEmpty { answered(others.map { SendAnswer($0, error, isUndone: true) }) }
    guard !places.isEmpty else { return }
    inner.send(places.map { revisions[$0] }) { answers in
      answered(answers.map { SendAnswer(places[$0.index], $0.error, isUndone: $0.isUndone) })
    }
  }
}
