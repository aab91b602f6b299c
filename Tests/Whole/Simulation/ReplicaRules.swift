/// What replications may do to replicas, said so simply that it can't be wrong: it doesn't replicate, it looks at what
/// both sides had and have.
struct ReplicaRules {
  /// A revision, as any replica has shown it. Its ID says all of it.
  private struct Known: Equatable {
    var isDeleted: Bool
    var content: Content?
  }

  /// What was shown of each document's revisions that were leaves.
  private var known: [String: [String: Known]] = [:]
  /// The revisions of each document that a replica has ever had: `[replica][document]`.
  private var had: [Int: [String: Set<String>]] = [:]

  // MARK: What is known

  /// The content of the first revision that was shown of a document.
  func firstContent(of id: String) -> Content? {
    known[id]?.filter { $0.value.content != nil }.min { $0.key < $1.key }?.value.content
  }

  /// Takes note of what a replica has. The same revision is the same everywhere.
  mutating func learn(_ state: ReplicaState, of replica: Int? = nil) throws {
    for (id, document) in state.documents {
      for branch in document.branches {
        let leaf = branch.leaf
        let new = Known(isDeleted: leaf.isDeleted, content: leaf.content)
        if let old = known[id]?[leaf.revision], old != new {
          throw Mismatch("\(id) \(leaf.revision) is \(new)\n  and was \(old)")
        }
        known[id, default: [:]][leaf.revision] = new
      }
      // Of tombstones one whose branch has lost comes last, whatever its ID.
      guard document.current.isDeleted || document.current == Model.winner(document.branches.map(\.leaf))
      else {
        throw Mismatch("\(id): \(document.current) isn't the winner of \(document.branches)")
      }
      if let replica { had[replica, default: [:]][id, default: []].formUnion(document.nodes) }
    }
  }

  // MARK: One replication

  /// Looks at what a replication has done. `outcome` is nil if it was cut.
  mutating func take(
    _ run: ReplicaRun, _ outcome: ReplicaOutcome?, before: (source: ReplicaState, target: ReplicaState),
    after: (source: ReplicaState, target: ReplicaState)
  ) throws {
    try learn(before.source, of: run.source)
    try learn(before.target, of: run.target)
    if run.direction == .push { try expectSame(before.source, after.source, "a push changes the source") }
    if run.direction == .pull { try expectSame(before.target, after.target, "a pull changes the target") }
    for (old, new) in [(before.source, after.source), (before.target, after.target)] {
      try checkNothingLost(old, new)
      try checkNothingInvented(new, before.source, before.target, run.resolver)
    }
    try learn(after.source, of: run.source)
    try learn(after.target, of: run.target)
    guard let outcome else { return }
    if let error = outcome.error { throw Mismatch("the replication has an error: \(error)") }
    if run.direction == .both, let failed = outcome.failed.first {
      throw Mismatch("\(failed.key) isn't replicated: \(failed.value)")
    }
    if run.direction != .pull {
      try checkArrived(after.source, after.target, at: run.target, outcome, isBoth: run.direction == .both)
    }
    if run.direction != .push {
      try checkArrived(after.target, after.source, at: run.source, outcome, isBoth: run.direction == .both)
    }
  }

  private func expectSame(_ before: ReplicaState, _ after: ReplicaState, _ what: String) throws {
    guard before != after else { return }
    let ids = Set(before.documents.keys).union(after.documents.keys)
    let different = ids.filter { before.documents[$0] != after.documents[$0] }.sorted()
    throw Mismatch("\(what): \(different)")
  }

  /// Each leaf is still there, or something is on top of it.
  private func checkNothingLost(_ before: ReplicaState, _ after: ReplicaState) throws {
    for (id, old) in before.documents {
      guard let new = after.documents[id] else { throw Mismatch("\(id) is lost") }
      let nodes = new.nodes
      for branch in old.branches where !nodes.contains(branch.leaf.revision) {
        // Its branch may be longer than what is kept of it.
        let generation = Model.generation(branch.leaf.revision)
        let isPruned = new.branches.contains { branch in
          branch.history.last.map { Model.generation($0) > generation } ?? false
        }
        if !isPruned { throw Mismatch("\(id): \(branch.leaf) is lost\n  in \(new.branches)") }
      }
    }
  }

  /// Each leaf comes from one of the two, or is what a resolver makes of such leaves.
  private func checkNothingInvented(
    _ after: ReplicaState, _ source: ReplicaState, _ target: ReplicaState, _ resolver: ReplicaOrder.Resolver
  ) throws {
    for (id, document) in after.documents {
      let both = [source.documents[id], target.documents[id]].compactMap { $0 }
      guard !both.isEmpty else { throw Mismatch("\(id) comes from nowhere") }
      let nodes = both.reduce(into: Set<String>()) { $0.formUnion($1.nodes) }
      let contents = both.flatMap(\.branches).compactMap(\.leaf.content)
      for branch in document.branches where !nodes.contains(branch.leaf.revision) {
        guard let content = branch.leaf.content else { continue }
        let isMerged =
          resolver == .merge
          && contents.contains { words in
            contents.contains { rest in
              var merged = rest
              merged.words = words.words
              return merged == content
            }
          }
        guard contents.contains(content) || isMerged else {
          throw Mismatch("\(id): \(branch.leaf) is neither side's")
        }
      }
    }
  }

  /// What one side has, the other one has, unless it has had and purged it, or the conflict was told.
  private func checkArrived(
    _ from: ReplicaState, _ to: ReplicaState, at replica: Int, _ outcome: ReplicaOutcome, isBoth: Bool
  ) throws {
    for (id, document) in from.documents where outcome.failed[id] == nil {
      let current = document.current
      let hasHad = had[replica]?[id]?.contains(current.revision) ?? false
      guard let other = to.documents[id] else {
        if hasHad { continue }
        throw Mismatch("\(id): replica \(replica) doesn't get \(current)")
      }
      if other.current == current || other.current.isDeleted && current.isDeleted { continue }
      // In one direction the other side may have gone on, or have made the document anew.
      if !isBoth, other.nodes.contains(current.revision) || hasHad { continue }
      throw Mismatch("\(id): replica \(replica) has \(other.current)\n  and not \(current), without a word")
    }
  }

  // MARK: The end

  /// All have the same documents. Of deletions that were made independently each may keep its own.
  func checkEqual(_ states: [ReplicaState]) throws {
    for state in states.dropFirst() {
      for id in Set(state.documents.keys).union(states[0].documents.keys).sorted() {
        guard let first = states[0].documents[id]?.current, let other = state.documents[id]?.current,
          first == other || first.isDeleted && other.isDeleted
        else {
          throw Mismatch(
            "\(id) is \(String(describing: states[0].documents[id]?.branches))\n  and \(String(describing: state.documents[id]?.branches))"
          )
        }
      }
    }
  }

  /// Without a conflict, a document ends as its only leaf was. With one, one of its leaves wins, also one that another replica has gone on
  /// from: two of them may decide before they hear of that.
  func checkEnd(_ before: [ReplicaState], _ end: ReplicaState) throws {
    for (id, document) in end.documents {
      let all = before.compactMap { $0.documents[id] }
      let inner = all.reduce(into: Set<String>()) { inner, document in
        for branch in document.branches { inner.formUnion(branch.history.dropFirst()) }
      }
      let leaves = all.flatMap(\.branches).map(\.leaf).filter { !inner.contains($0.revision) }
      guard let first = leaves.first else { throw Mismatch("\(id) comes from nowhere") }
      let current = document.current
      let isRight =
        leaves.allSatisfy { $0 == first }
        ? current == first
        : all.flatMap(\.branches).map(\.leaf).contains {
          $0.isDeleted == current.isDeleted && $0.content == current.content
        }
      guard isRight else { throw Mismatch("\(id) ends as \(current)\n  but its leaves were \(leaves)") }
    }
    let ids = Set(before.flatMap { $0.documents.keys })
    guard ids == Set(end.documents.keys) else {
      throw Mismatch("lost: \(ids.subtracting(end.documents.keys).sorted())")
    }
  }
}
