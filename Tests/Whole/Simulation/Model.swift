/// An answer that isn't the model's.
package struct Mismatch: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// A database that is too simple to be wrong: arrays that are searched from their beginning.
///
/// It takes each operation with its answer, throws a `Mismatch` unless a right database may answer so, and follows.
/// What a database chooses, such as the digest in a revision's ID, is taken from the answer.
package struct Model {
  struct Document {
    var leaves: [Leaf]
    /// The sequence of its last change.
    var sequence: UInt64
    var expirationDay: Int?
    /// Which leaf was seen to be current, and the leaves then. Of several tombstones that depends on how their branches ended.
    var seen: (current: Leaf, leaves: Set<String>)?
    /// The tombstones with which branches ended that lost a conflict.
    var closed: Set<String> = []

    var winner: Leaf? {
      if let seen, seen.leaves == Set(leaves.map(\.revision)) { return seen.current }
      return Model.winner(leaves, closed: closed)
    }
  }

  var documents: [String: Document] = [:]
  private(set) var locals: [String: Int] = [:]
  private(set) var indexes: Set<String> = []
  var lastSequence: UInt64 = 0

  package init() {}

  // MARK: The rules

  /// The winner: live before deleted, then open before closed, then the highest generation, then the greatest bytes.
  static func winner(_ leaves: [Leaf], closed: Set<String> = []) -> Leaf? {
    leaves.max { left, right in
      if left.isDeleted != right.isDeleted { return left.isDeleted }
      let isClosed = closed.contains(left.revision)
      if isClosed != closed.contains(right.revision) { return isClosed }
      if generation(left.revision) != generation(right.revision) {
        return generation(left.revision) < generation(right.revision)
      }
      return Array(left.revision.utf8).lexicographicallyPrecedes(Array(right.revision.utf8))
    }
  }

  package static func generation(_ revision: String) -> Int { Int(revision.prefix { $0 != "-" }) ?? 0 }

  /// The current revision of a document; nil if there is none, not even a tombstone.
  package func current(_ id: String) -> Leaf? { documents[id]?.winner }

  /// Without design documents: views and selectors don't see them.
  private var live: [(id: String, content: Content)] {
    documents.keys.sorted().filter { !$0.hasPrefix("_design/") }.compactMap { id in
      current(id).flatMap { leaf in
        leaf.isDeleted ? nil : leaf.content.map { (id: id, content: $0) }
      }
    }
  }

  /// The live documents whose number lies in a range.
  func ids(_ from: Int, _ through: Int) -> [String] {
    live.filter { from...through ~= $0.content.number }.map(\.id)
  }

  /// The rows of `SimulatedDatabase.spilled`.
  private var spilled: [String] {
    let groups = Dictionary(grouping: live, by: \.content.number)
    let sorted = live.sorted { ($1.content.number, $0.id) < ($0.content.number, $1.id) }
    let numbered = groups.values.flatMap { $0.map(\.id).sorted(by: >).enumerated() }
    let different = groups.flatMap { number, documents in
      Set(documents.map { $0.id > "doc5" }).map { "4: \(number) \($0)" }
    }
    return sorted.map { "0: \($0.id) \($0.content.number) \($0.content.padding)" }
      + groups.map { "1: \($0) \($1.count) \($1.map(\.id).max() ?? "")" }.sorted()
      + numbered.map { "2: \($1) \($0 + 1)" }.sorted()
      + ["3: \(groups.values.reduce(0) { $0 + $1.count * $1.count })"] + different.sorted()
  }

  var hasFindIndex: Bool { current(SimulatedDatabase.findIndex).map { !$0.isDeleted } ?? false }

  // MARK: Operations with their answers

  /// Compares an answer with what is right, and follows the operation.
  package mutating func take(_ operation: Operation, _ answer: Answer, canWrite: Bool = true) throws {
    if !canWrite, operation.writes {
      // A server may say first that there is no such document.
      if case .overHTTP = operation, case .refused("notFound", _) = answer { return }
      guard case .refused("forbidden", _) = answer else { throw wrong(answer, "a refusal: forbidden") }
      return
    }
    switch operation {
    case .overHTTP(.saveOnTop(let id, let revision?, let content)) where documents[id] == nil:
      // A request that makes a document may name any revision, which is the parent of the first one.
      try takeSaved(id, content, on: Leaf(revision: revision, isDeleted: false, content: nil), answer)
    case .overHTTP(let operation): try take(operation, answer, canWrite: canWrite)
    case .save(let id, let content): try takeSaved(id, content, on: current(id), answer)
    case .saveOnTop(let id, let revision, let content):
      // Any leaf may be gone on from, also one that lost a conflict.
      let stored = revision == nil ? current(id) : documents[id]?.leaves.first { $0.revision == revision }
      guard revision == nil ? stored?.isDeleted ?? true : stored != nil else {
        return try expectRefusal("conflict", answer)
      }
      try takeSaved(id, content, on: stored, answer)
    case .saveAll(let contents):
      guard case .saved(let saved) = answer, saved.map(\.id) == contents.keys.sorted() else {
        throw wrong(answer, "a revision of each of \(contents.count) documents")
      }
      for saved in saved { try follow(saved, contents[saved.id], on: current(saved.id)) }
    case .delete(let id):
      guard let stored = current(id), !stored.isDeleted else {
        return try expectRefusal("notFound", answer)
      }
      try takeSaved(id, nil, on: stored, answer)
    case .purge(let id):
      guard documents[id] != nil else { return try expectRefusal("notFound", answer) }
      try expect(.done, answer)
      documents[id] = nil
    case .apply(let id, let history, let isDeleted, let content):
      let isKnown = documents[id]?.leaves.contains { $0.revision == history[0] } ?? false
      try expect(.count(isKnown ? 0 : 1), answer)
      guard !isKnown else { return }
      var document = documents[id] ?? Document(leaves: [], sequence: 0)
      document.leaves.removeAll { history.dropFirst().contains($0.revision) }
      document.leaves.append(
        Leaf(revision: history[0], isDeleted: isDeleted, content: isDeleted ? nil : content))
      lastSequence += 1
      document.sequence = lastSequence
      documents[id] = document
    case .resolve(let id, let revision): try takeResolved(id, revision, answer)
    case .increment(let id, let times):
      // The steps of one process; `World` adds up those of several.
      guard current(id).map({ !$0.isDeleted }) ?? false else {
        return try expectRefusal("notFound", answer)
      }
      try expect(.done, answer)
      throw Mismatch("an increment of \(times) has to be taken with takeIncrements")
    case .setExpiration(let id, let day):
      guard documents[id] != nil else { return try expectRefusal("notFound", answer) }
      try expect(.done, answer)
      documents[id]?.expirationDay = day
    case .purgeExpired(let day):
      let expired = documents.filter { $0.value.expirationDay.map { $0 <= day } ?? false }.keys
      try expect(.count(expired.count), answer)
      for id in expired { documents[id] = nil }
    case .saveLocal(let id, let number):
      try expect(.done, answer)
      locals[id] = number
    case .createIndex: try takeIndex(SimulatedDatabase.valueIndex, answer)
    case .createFullTextIndex: try takeIndex(SimulatedDatabase.textIndex, answer)
    case .deleteIndex(let name):
      try expect(.count(indexes.contains(name) ? 1 : 0), answer)
      indexes.remove(name)
    case .createFindIndex:
      guard !hasFindIndex else { return try expect(.count(0), answer) }
      try takeSaved(SimulatedDatabase.findIndex, .design, on: current(SimulatedDatabase.findIndex), answer)
    case .compact:
      // An engine may need the database for itself.
      if case .refused("busy", _) = answer { return }
      try expect(.done, answer)
    case .updateWhere(let from, let through, let adding):
      let changed = ids(from, through)
      var contents: [String: Content?] = [:]
      for id in changed {
        contents[id] = current(id)?.content.map {
          Content(number: $0.number + adding, words: $0.words, blob: $0.blob, padding: $0.padding)
        }
      }
      try takeStatement(contents, answer)
    case .deleteWhere(let from, let through):
      try takeStatement(ids(from, through).reduce(into: [:]) { $0[$1] = .some(nil) }, answer)
    case .tryDeleteWhere(let from, let through): try expect(.names(ids(from, through)), answer)
    case .insert(let id, let replaces, let number):
      guard replaces || current(id)?.isDeleted ?? true else { return try expectRefusal("conflict", answer) }
      try takeStatement([id: Content(number: number, words: [], blob: nil, padding: 0)], answer)
    case .document(let id): try expect(.document(self.answer(id)), answer)
    case .leaves(let id): try takeLeaves(id, answer)
    case .local(let id): try expect(.local(locals[id]), answer)
    case .all: try expect(.documents(documents.keys.reduce(into: [:]) { $0[$1] = self.answer($1) }), answer)
    case .changes:
      try expect(.names(documents.sorted { $0.value.sequence < $1.value.sequence }.map(\.key)), answer)
    case .query(let from, let through), .find(let from, let through):
      // The index may have to be brought up to date.
      if case .find = operation, !canWrite, hasFindIndex, case .refused("forbidden", _) = answer { return }
      try expect(.names(ids(from, through)), answer)
    case .spilled: try expect(.names(spilled), answer)
    case .viewRows(let from, let through):
      if !canWrite, case .refused("forbidden", _) = answer { return }
      try expect(.names(ids(from, through)), answer)
    case .match(let word):
      guard indexes.contains(SimulatedDatabase.textIndex) else {
        guard case .refused = answer else { throw wrong(answer, "a refusal: there is no index") }
        return
      }
      try expect(.names(live.filter { $0.content.words.contains(word) }.map(\.id)), answer)
    case .total, .viewTotal:
      if case .viewTotal = operation, !canWrite, case .refused("forbidden", _) = answer { return }
      try expect(.numbers([live.count, live.reduce(0) { $0 + $1.content.number }]), answer)
    case .check: try expect(.names([]), answer)
    case .replica: throw wrong(answer, "for ReplicaWorld to say")
    }
  }

  /// Takes increments of one document by several processes at the same time. No answer but `done` is right, and
  /// `after` is what is stored then.
  package mutating func takeIncrements(
    _ id: String, by times: Int, _ answers: [Answer], after: Answer
  ) throws {
    guard let document = documents[id], let before = current(id), !before.isDeleted,
      let content = before.content
    else {
      for answer in answers { try expectRefusal("notFound", answer) }
      return
    }
    for answer in answers { try expect(.done, answer) }
    guard case .document(let stored?) = after, stored.content?.number == content.number + times,
      Self.generation(stored.revision) == Self.generation(before.revision) + times
    else {
      throw wrong(after, "the number \(content.number + times) in \(times) generations after \(before)")
    }
    var leaves = document.leaves.filter { $0.revision != before.revision }
    leaves.append(Leaf(revision: stored.revision, isDeleted: false, content: stored.content))
    lastSequence += UInt64(times)
    documents[id]?.leaves = leaves
    documents[id]?.sequence = lastSequence
  }

  /// Takes batches that several processes saved at the same time, whose documents differ. Their sequences tell the
  /// order.
  package mutating func takeTogether(_ batches: [([String: Content], Answer)]) throws {
    var all: [(saved: Answer.Saved, content: Content?)] = []
    for (contents, answer) in batches {
      guard case .saved(let saved) = answer, saved.map(\.id) == contents.keys.sorted() else {
        throw wrong(answer, "a revision of each of \(contents.count) documents")
      }
      all += saved.map { ($0, contents[$0.id]) }
    }
    for (saved, content) in all.sorted(by: { $0.saved.sequence < $1.saved.sequence }) {
      try follow(saved, content, on: current(saved.id))
    }
  }

  /// What a killed process's save left: the document as it was, or as it was to be. `after` is what is stored.
  package mutating func takeUncertain(_ id: String, _ content: Content, after: Answer) throws {
    if case .document(let stored) = after, stored == answer(id) { return }
    guard case .document(let stored?) = after, stored.content == content else {
      throw wrong(after, "\(String(describing: answer(id))) or a revision with \(content)")
    }
    let saved = Answer.Saved(id: id, revision: stored.revision, sequence: lastSequence + 1)
    try follow(saved, content, on: current(id))
  }

  // MARK: Parts of them

  private mutating func takeSaved(
    _ id: String, _ content: Content?, on parent: Leaf?, _ answer: Answer
  ) throws {
    guard case .saved(let saved) = answer, saved.count == 1 else { throw wrong(answer, "a revision") }
    try follow(saved[0], content, on: parent)
  }

  /// Takes what a statement made of documents, nil for tombstones. It may change them in any order.
  private mutating func takeStatement(_ contents: [String: Content?], _ answer: Answer) throws {
    guard case .saved(let saved) = answer, saved.map(\.id).sorted() == contents.keys.sorted() else {
      throw wrong(answer, "a revision of each of \(contents.keys.sorted())")
    }
    for saved in saved { try follow(saved, contents[saved.id] ?? nil, on: current(saved.id)) }
  }

  private mutating func follow(_ saved: Answer.Saved, _ content: Content?, on parent: Leaf?) throws {
    let generation = parent.map { Self.generation($0.revision) } ?? 0
    guard saved.sequence == lastSequence + 1 else {
      throw Mismatch("\(saved) has a sequence that doesn't follow \(lastSequence)")
    }
    guard Self.generation(saved.revision) == generation + 1 else {
      throw Mismatch("\(saved) doesn't follow generation \(generation)")
    }
    lastSequence = saved.sequence
    var document = documents[saved.id] ?? Document(leaves: [], sequence: 0)
    if let parent { document.leaves.removeAll { $0.revision == parent.revision } }
    document.leaves.append(
      Leaf(revision: saved.revision, isDeleted: content == nil, content: content))
    document.sequence = saved.sequence
    documents[saved.id] = document
  }

  private mutating func takeResolved(_ id: String, _ revision: String, _ answer: Answer) throws {
    guard let document = documents[id] else { return try expectRefusal("notFound", answer) }
    guard case .leaves(let leaves) = answer else { throw wrong(answer, "leaves") }
    let kept = document.leaves.first { $0.revision == revision }
    guard leaves.filter({ !$0.isDeleted }) == [kept].compactMap({ $0 }).filter({ !$0.isDeleted }),
      leaves.count == document.leaves.count
    else { throw wrong(answer, "\(revision) as the only live one of \(document.leaves.count) leaves") }
    // The end of each branch takes a sequence.
    let losers = document.leaves.count { !$0.isDeleted } - 1
    if losers > 0 {
      lastSequence += UInt64(losers)
      documents[id]?.sequence = lastSequence
    }
    documents[id]?.leaves = leaves
    let before = Set(document.leaves.map(\.revision))
    documents[id]?.closed.formUnion(leaves.map(\.revision).filter { !before.contains($0) })
  }

  private mutating func takeIndex(_ name: String, _ answer: Answer) throws {
    try expect(.count(indexes.contains(name) ? 0 : 1), answer)
    indexes.insert(name)
  }

  private func takeLeaves(_ id: String, _ answer: Answer) throws {
    guard let document = documents[id] else {
      if case .leaves(let leaves) = answer, leaves.isEmpty { return }
      return try expectRefusal("notFound", answer)
    }
    guard case .leaves(let leaves) = answer, leaves.first == document.winner,
      leaves.sorted(by: { $0.revision < $1.revision })
        == document.leaves.sorted(by: { $0.revision < $1.revision })
    else { throw wrong(answer, "\(document.leaves)") }
  }

  func answer(_ id: String) -> Answer.Current? {
    guard let document = documents[id], let leaf = current(id) else { return nil }
    return Answer.Current(
      revision: leaf.revision, isDeleted: leaf.isDeleted,
      isConflicted: document.leaves.count { !$0.isDeleted } > 1, content: leaf.content)
  }

  // MARK: Comparing

  private func expect(_ right: Answer, _ answer: Answer) throws {
    guard answer == right else { throw wrong(answer, "\(right)") }
  }

  private func expectRefusal(_ code: String, _ answer: Answer) throws {
    guard case .refused(code, _) = answer else { throw wrong(answer, "a refusal: \(code)") }
  }

  private func wrong(_ answer: Answer, _ right: String) -> Mismatch {
    Mismatch("the answer is \(answer)\n  but right is \(right)")
  }
}

extension Operation {
  /// Whether it needs the right to write.
  package var writes: Bool {
    switch self {
    case .document, .leaves, .local, .all, .changes, .query, .spilled, .total, .viewRows, .viewTotal, .find,
      .match,
      .check:
      false
    case .overHTTP(let operation): operation.writes
    default: true
    }
  }
}
