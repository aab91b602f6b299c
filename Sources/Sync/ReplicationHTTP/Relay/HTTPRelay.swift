import Bytes
import Documents
import Fleece
import Replication
import Storage

/// Takes the revisions of a pull as they have come, in the place of its sink.
protocol ArrivalSink: AnyObject, Sendable {
  /// `done` is called with the bytes of revisions that aren't kept any more, until it was told of all of
  /// them.
  func arrived(_ revisions: [ArrivedRevision], _ done: @escaping @Sendable (_ bytes: Int) -> Void)
}

/// Sends what a pull brings to another server: what that lacks, as it is.
///
/// Documents without attachments go together. A document with attachments goes by itself (`AttachedRelay`),
/// with the bytes of those that the target doesn't have.
final class HTTPRelay: PullSink, ArrivalSink, @unchecked Sendable {
  /// The most requests with documents at a time, the most documents of one, and the bytes up to which they go
  /// together.
  static let postsInFlight = 3
  static let documentsTogether = 500
  static let bytesTogether = 1 << 20
  /// No history is longer.
  private static let maximumHistory = 1 << 20

  private struct Waiting: Sendable {
    let revision: ArrivedRevision
    let done: @Sendable (Int) -> Void
  }

  private struct State {
    var waiting: [Waiting] = []
    var posts = 0
  }

  private let target: HTTPPeer
  private let sink: any RelaySink
  private let attached: AttachedRelay
  private let state = Lock(State())
  private let lane = JobLane()

  init(from source: HTTPPeer, to target: HTTPPeer, _ sink: any RelaySink) {
    self.target = target
    self.sink = sink
    attached = AttachedRelay(from: source, to: target)
  }

  // MARK: Changes

  func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
    sink.offered(changes)
    let proposed = changes.map { change in
      ProposedChange(
        id: change.id, revision: change.revision, remoteRevision: nil, isDeleted: change.isDeleted)
    }
    target.propose(proposed, allowingConflicts: true) { [self] result in
      switch result {
      // Nothing goes on without this answer.
      case .failure(let error): target.fail(error)
      case .success(let proposal):
        let known = zip(changes, proposal.statuses).filter { $0.1 != .send }.map(\.0)
        if !known.isEmpty { sink.settled(known.map { RelayOutcome($0.id, $0.revision, .known) }) }
        answer(
          OfferAnswers(
            // The whole history goes: what the target has may be gone when it comes.
            proposal.statuses.map { $0 == .send ? .wanted(possibleAncestors: []) : .unwanted },
            maximumHistory: Self.maximumHistory))
      }
    }
  }

  func unavailable(_ revisions: [UnavailableRevision]) {
    sink.settled(revisions.map { RelayOutcome($0.id, $0.revision, .unavailable) })
  }

  func unreadable(_ documentID: String, _ revision: String, _ error: ReplicationError) {
    sink.settled([RelayOutcome(documentID, revision, .failed(error, isUndone: true))])
  }

  func caughtUp(at sequence: RemoteSequence?) { sink.caughtUp(at: sequence) }

  // It gets what comes by way of `arrived`.
  func received(
    _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
  ) { done(revisions.map { _ in .failure(.connectionEnded) }) }

  // MARK: Revisions

  func arrived(_ revisions: [ArrivedRevision], _ done: @escaping @Sendable (_ bytes: Int) -> Void) {
    var plain: [Waiting] = []
    for item in revisions {
      let change = item.wanted.change
      let ancestors = target.takeAncestors(of: change.id, change.revision)
      guard item.document.attachments != nil else {
        plain.append(Waiting(revision: item, done: done))
        continue
      }
      attached.send(item, ancestors) { [self] result in
        settle([(item, result)])
        done(item.bytes)
      }
    }
    guard !plain.isEmpty else { return }
    state.withLock { $0.waiting += plain }
    post()
  }

  private func settle(_ results: [(ArrivedRevision, RelayOutcome.Result)]) {
    sink.settled(
      results.map { item, result in
        RelayOutcome(
          item.wanted.change.id, item.wanted.change.revision, revision: item.document.revision,
          isDeleted: item.document.isDeleted, result)
      })
    // Without a connection the others won't fare better.
    for case .failed(let error, _) in results.lazy.map(\.1) where error.domain != .http && error.isTransient {
      return target.fail(error)
    }
  }

  /// Sends what waits, as much as may go at a time.
  private func post() {
    let parts = state.withLock { state -> [[Waiting]] in
      var parts: [[Waiting]] = []
      while state.posts < Self.postsInFlight, !state.waiting.isEmpty {
        var bytes = 0
        let count = state.waiting.prefix(Self.documentsTogether).prefix { item in
          defer { bytes += item.revision.bytes }
          return bytes == 0 || bytes + item.revision.bytes <= Self.bytesTogether
        }.count
        parts.append(Array(state.waiting[..<count]))
        state.waiting.removeFirst(count)
        state.posts += 1
      }
      return parts
    }
    for part in parts { lane.enqueue { [self] in send(part) } }
  }

  private func send(_ part: [Waiting]) {
    var documents: [OutgoingDocument] = []
    var unreadable: [(ArrivedRevision, RelayOutcome.Result)] = []
    for (index, item) in part.enumerated() {
      do { documents.append(try OutgoingDocument(index, relaying: item.revision.document)) } catch {
        unreadable.append((item.revision, .failed(ReplicationError(error), isUndone: true)))
        item.done(item.revision.bytes)
      }
    }
    if !unreadable.isEmpty { settle(unreadable) }
    let left = Lock(documents.count)
    guard !documents.isEmpty else { return posted() }
    target.store(documents) { [self] answers in
      settle(answers.map { (part[$0.index].revision, $0.outcome) })
      for answer in answers { part[answer.index].done(part[answer.index].revision.bytes) }
      let isLast = left.withLock { left in
        left -= answers.count
        return left == 0
      }
      if isLast { posted() }
    }
  }

  private func posted() {
    state.withLock { $0.posts -= 1 }
    post()
  }
}

extension SendAnswer {
  /// What the answer says of a revision that is relayed.
  var outcome: RelayOutcome.Result { error.map { .failed($0, isUndone: isUndone) } ?? .written }
}

extension HTTPPeer: RelayingPeer {
  package func localDocument(_ name: String, _ done: @escaping Completion<JSONObject?>) {
    checkpoints.readLocal(name, done)
  }

  package func saveLocalDocument(_ name: String, _ body: JSONObject, _ done: @escaping Completion<Void>) {
    checkpoints.saveLocal(name, body, done)
  }

  package func relay(
    _ request: PullRequest, to target: any Peer, into sink: any RelaySink, _ done: @escaping Completion<Void>
  ) {
    guard let target = target as? HTTPPeer else {
      return done(
        .failure(
          ReplicationError(
            .network, ReplicationError.NetworkCode.invalidURL.rawValue, "both sides have to speak HTTP")))
    }
    let relay = HTTPRelay(from: self, to: target, sink)
    pull(request, into: relay, arrivals: relay, done)
  }
}
