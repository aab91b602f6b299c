import BLIP
import Blobs
import Documents
import Fleece
import Replication
import Storage

extension BLIPPeer {
  package func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) {
    let isLong = changes.map { $0.id.utf8.count > ReplicationProtocol.longestID }
    guard isLong.contains(true), !outbox.current.takesReplaces else {
      return ask(about: changes, allowingConflicts, done)
    }
    // Only a database of this library takes them. Whether the peer is one shows in its answer to the others, or to none.
    func changesThat(_ areLong: Bool) -> [ProposedChange] {
      zip(changes, isLong).filter { $1 == areLong }.map(\.0)
    }
    let long = changesThat(true)
    ask(about: changesThat(false), allowingConflicts) { [weak self] result in
      guard case .success(let first) = result, let self else { return done(result) }
      @Sendable func answer(_ second: ProposalAnswer) {
        var (short, long) = (first.statuses[...], second.statuses[...])
        let statuses = isLong.compactMap { $0 ? long.popFirst() : short.popFirst() }
        done(.success(ProposalAnswer(statuses, maximumHistory: first.maximumHistory)))
      }
      if self.outbox.current.takesReplaces {
        self.ask(about: long, allowingConflicts) { result in
          if case .success(let second) = result { answer(second) } else { done(result) }
        }
      } else {
        let refused = ReplicationError(
          .http, 400, "the other side takes no IDs of more than \(ReplicationProtocol.longestID) bytes")
        answer(ProposalAnswer(long.map { _ in .refused(refused) }, maximumHistory: 0))
      }
    }
  }

  private func ask(
    about changes: [ProposedChange], _ allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) {
    guard allowingConflicts, state.withLock({ $0.takesConflicts }) else { return propose(changes, done) }
    let offered = changes.map { change in
      OfferedChange(
        sequence: RemoteSequence(json: "\(change.sequence)"), id: change.id, revision: change.revision,
        isDeleted: change.isDeleted, bodyBytes: change.bodyBytes)
    }
    ask(list(Profile.changes, [:], ChangeLists.body(offered))) { [weak self] result in
      guard let self else { return done(.failure(.connectionEnded)) }
      if case .failure(let error) = result, error.code == 409, [.blip, .http].contains(error.domain) {
        // It wants to be asked whether there are conflicts.
        self.state.withLock { $0.takesConflicts = false }
        return self.propose(changes, done)
      }
      done(
        result.flatMap { reply in
          self.learn(reply, changes.count)
          do {
            let answers = try ChangeLists.offerAnswers(reply.body, count: changes.count)
            return .success(
              ProposalAnswer(OfferAnswers(answers, maximumHistory: Self.maximumHistory(reply))))
          } catch { return .failure(ReplicationError(error)) }
        })
    }
  }

  private func propose(_ changes: [ProposedChange], _ done: @escaping Completion<ProposalAnswer>) {
    ask(list(Profile.proposeChanges, ["conflictIncludesRev": "true"], ChangeLists.body(changes))) {
      [weak self] result in
      done(
        result.flatMap { reply in
          self?.learn(reply, changes.count)
          do {
            let statuses = try ChangeLists.statuses(reply.body, count: changes.count)
            return .success(ProposalAnswer(statuses, maximumHistory: Self.maximumHistory(reply)))
          } catch { return .failure(ReplicationError(error)) }
        })
    }
  }

  private func list(_ profile: String, _ properties: BLIPProperties, _ body: [UInt8]) -> BLIPRequest {
    var request = BLIPRequest(profile, properties, body: .bytes(body))
    request.isCompressed = true
    request.isUrgent = true
    return request
  }

  private static func maximumHistory(_ reply: BLIPMessage) -> Int {
    min(max(reply.properties["maxHistory"].flatMap { Int($0) } ?? 20, 1), 1_000)
  }

  /// Takes note of what the peer says of itself.
  private func learn(_ reply: BLIPMessage, _ count: Int) {
    let properties = reply.properties
    // The originals say nothing of themselves when they are asked about nothing.
    guard count > 0 || properties.isTrue("blobs") else { return }
    outbox.changeAbilities { abilities in
      abilities.takesBlobs = properties.isTrue("blobs")
      abilities.maximumHistory = Self.maximumHistory(reply)
      // It is said once in a connection.
      if properties.isTrue("deltas") { abilities.takesDeltas = true }
      if properties.isTrue("replaces") { abilities.takesReplaces = true }
    }
  }

  package func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
    let takesConflicts = state.withLock { $0.takesConflicts }
    let items = revisions.map { revision in
      RevisionOutbox.Item(
        revision: revision.revision, sequence: "\(revision.sequence)",
        allowsNoConflict: revision.allowsNoConflict || !takesConflicts,
        deltaSources: revision.revision.replaces.map { [$0] } ?? [])
    }
    outbox.send(items) { answered([SendAnswer($0, $1)]) }
  }

  package func unavailable(_ revisions: [UnavailableRevision]) {
    for revision in revisions {
      connection.send(.unavailable(revision, collection: collection)) { _ in }
    }
  }
}
