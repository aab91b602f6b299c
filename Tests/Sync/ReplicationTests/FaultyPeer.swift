// A peer that loses connections and answers.

import Blobs
import Documents
import Foundation
import Storage
import TestSupport

@testable import Replication

/// Decides at random what goes wrong. Shared by the connections of a test.
final class Faults: Sendable {
  struct Rates: Sendable {
    /// One of this many calls loses the connection: before the work, or after it and before the answer. 0: none.
    var cut = 0
    var lostAnswer = 0
    var duplicate = 0
    var delay = 0
    var refusedConnection = 0
  }

  private let random: Lock<SeededGenerator>
  let rates: Rates
  let count = Lock(0)

  init(seed: UInt64, _ rates: Rates) {
    random = Lock(SeededGenerator(seed: seed))
    self.rates = rates
  }

  func happens(_ rate: Int) -> Bool {
    guard rate > 0, random.withLock({ $0.once(in: rate) }) else { return false }
    count.withLock { $0 += 1 }
    return true
  }
}

struct FaultyConnector: PeerConnector {
  let inner: any PeerConnector
  let faults: Faults
  var remoteID: String { inner.remoteID }
  var name: String { inner.name }

  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    if faults.happens(faults.rates.refusedConnection) {
      return done(.failure(ReplicationError(.posix, Int(ECONNREFUSED), "Connection refused")))
    }
    let faults = faults
    inner.connect(options) { done($0.map { FaultyPeer($0, faults) }) }
  }
}

final class FaultyPeer: Peer {
  private struct State {
    weak var owner: (any PeerOwner)?
    var isCut = false
  }
  private let inner: any Peer
  private let faults: Faults
  private let state = Lock(State())
  private let delays = Workers(maximum: 4)
  static let lost = ReplicationError(.webSocket, 1006, "the connection was lost")

  init(_ inner: any Peer, _ faults: Faults) {
    self.inner = inner
    self.faults = faults
  }

  var canPullAgain: Bool { inner.canPullAgain }
  var exchangesLeaves: Bool { inner.exchangesLeaves }
  var revisionsInFlight: Int { inner.revisionsInFlight }

  func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames) { inner.nameCheckpoint(id, names) }

  func begin(_ owner: any PeerOwner) {
    state.withLock { $0.owner = owner }
    inner.begin(owner)
  }

  fileprivate var isCut: Bool { state.withLock { $0.isCut } }

  func cut(_ error: ReplicationError = FaultyPeer.lost) {
    let owner = state.withLock { state in
      defer { state.isCut = true }
      return state.isCut ? nil : state.owner
    }
    inner.close()
    owner?.connectionEnded(error)
  }

  /// Lets a call through, or loses it or its answer.
  private func call<Value: Sendable>(
    _ done: @escaping Completion<Value>, _ body: (@escaping Completion<Value>) -> Void
  ) {
    if isCut { return done(.failure(Self.lost)) }
    if faults.happens(faults.rates.cut) {
      cut()
      return done(.failure(Self.lost))
    }
    body { [self] result in
      if isCut { return done(.failure(Self.lost)) }
      if faults.happens(faults.rates.lostAnswer) {
        cut()
        return done(.failure(Self.lost))
      }
      later { done(result) }
    }
  }

  fileprivate func later(_ body: @escaping @Sendable () -> Void) {
    guard faults.happens(faults.rates.delay) else { return body() }
    delays.enqueue {
      usleep(500)
      body()
    }
  }

  func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    call(done) { inner.checkpoint(id, $0) }
  }
  func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) {
    call(done) { inner.setCheckpoint(id, json, basedOn: revision, $0) }
  }
  func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    let faulty = FaultySink(sink, self, faults)
    call(done) { inner.pull(request, into: faulty, $0) }
  }
  func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
  ) {
    call(done) { inner.fetchBlob(blob, of: documentID, into: writer, $0) }
  }
  func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) {
    call(done) { inner.propose(changes, allowingConflicts: allowingConflicts, $0) }
  }
  func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
    func fail() { answered(revisions.indices.map { SendAnswer($0, Self.lost) }) }
    if isCut { return fail() }
    if faults.happens(faults.rates.cut) {
      cut()
      return fail()
    }
    if faults.happens(faults.rates.duplicate) { inner.send(revisions) { _ in } }
    inner.send(revisions) { [self] answers in
      if isCut || faults.happens(faults.rates.lostAnswer) {
        cut()
        return answered(answers.map { SendAnswer($0.index, Self.lost) })
      }
      later { answered(answers) }
    }
  }
  func unavailable(_ revisions: [UnavailableRevision]) { inner.unavailable(revisions) }
  func close() {
    state.withLock { $0.isCut = true }
    inner.close()
  }
}

private final class FaultySink: PullSink {
  private let inner: any PullSink
  private let peer: FaultyPeer
  private let faults: Faults

  init(_ inner: any PullSink, _ peer: FaultyPeer, _ faults: Faults) {
    self.inner = inner
    self.peer = peer
    self.faults = faults
  }

  private func goesOn() -> Bool {
    if peer.isCut { return false }
    guard faults.happens(faults.rates.cut) else { return true }
    peer.cut()
    return false
  }

  func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
    guard goesOn() else { return }
    inner.offered(changes) { [peer, faults] answers in
      if peer.isCut || faults.happens(faults.rates.lostAnswer) { return peer.cut() }
      peer.later { answer(answers) }
    }
  }
  func received(
    _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
  ) {
    guard goesOn() else { return }
    if faults.happens(faults.rates.duplicate) { inner.received(revisions) { _ in } }
    inner.received(revisions) { [peer, faults] results in
      if peer.isCut || faults.happens(faults.rates.lostAnswer) { return peer.cut() }
      peer.later { done(results) }
    }
  }
  func unavailable(_ revisions: [UnavailableRevision]) { if goesOn() { inner.unavailable(revisions) } }
  func caughtUp(at sequence: RemoteSequence?) { if goesOn() { inner.caughtUp(at: sequence) } }
}
