import Blobs
import Documents
import Fleece
import Storage

/// Reads a source again and compares it with a store.
///
/// It compares every document, revision and body, attachments byte by byte, expirations, local documents and
/// the last sequence. The JSON parser and the reader of stored bodies compare bodies. The encoder isn't
/// involved.
final class UpgradeVerification {
  private let upgrade: Upgrade
  private let store: DocumentStore
  private let reader: any SourceReader
  private let attachments: SourceAttachments
  private let comparison = JSONComparison()
  private var plan = SourcePlan()
  private var compared = 0
  private var bodies = 0
  /// The highest sequence of a compared document. It may be above the last one of a damaged source.
  private var highestSequence = 0
  private var whole: Set<BlobDigest> = []
  private static let remembered = 200_000

  init(_ upgrade: Upgrade, _ store: DocumentStore) throws {
    self.upgrade = upgrade
    self.store = store
    reader = try upgrade.source.makeReader()
    attachments = try SourceAttachments(upgrade.source, store)
  }

  /// Compares everything. Returns the number of compared documents. Throws `differs` at the first difference.
  func run() throws -> Int {
    defer { reader.close() }
    let total = try reader.documentCount()
    var done = 0
    try store.read { snapshot in
      let stored = try StoredTree(snapshot)
      while try reader.next({ _ in }) {
        try compareDocument(stored, snapshot)
        done += 1
        if done % 512 == 0 { try upgrade.tell(.verifying, done, total) }
      }
      let counts = try stored.counts()
      guard counts.documents + counts.tombstones == compared else {
        throw differs(
          "the result has \(counts.documents + counts.tombstones) documents instead of \(compared)"
        )
      }
      guard counts.otherBodies == bodies - compared else {
        throw differs(
          "the result has \(counts.otherBodies) bodies of revisions that aren't current, and \(bodies - compared) were to "
            + "be carried over")
      }
    }
    if upgrade.options.carry == .full { try compareExtras() }
    try upgrade.tell(.verifying, done, total)
    return compared
  }

  private func differs(_ message: String) -> UpgradeError {
    UpgradeError(
      .differs, "the new database differs from the source, so it was removed: \(message)",
      path: upgrade.source.location.path)
  }

  // MARK: A document

  private func compareDocument(_ stored: StoredTree, _ snapshot: DocumentSnapshot) throws {
    guard DocumentID.isStorable(reader.documentID), !reader.revisions.rows.isEmpty,
      !upgrade.duplicates.contains(reader.number)
    else { return }
    if let sequences = upgrade.renumbered[reader.number] { reader.renumber(sequences) }
    try plan.decide(reader, upgrade.options.carry) { row in
      try reader.withBody(row) { whyUnreadable($0) }
    }
    guard plan.revisions > 0 else { return }
    guard try stored.load(reader.documentID) else {
      guard try isLeftOut() else { throw differs("the document '\(reader.documentName)' is missing") }
      return
    }
    compared += 1
    func check(_ isRight: Bool, _ row: Int?, _ message: @autoclosure () -> String) throws {
      guard !isRight else { return }
      let revision = row.map { ", revision \(reader.revisions.id($0))" } ?? ""
      throw differs("document '\(reader.documentName)'\(revision): \(message())")
    }
    try check(
      stored.count == plan.revisions, nil, "it has \(stored.count) revisions instead of \(plan.revisions)")
    let rows = reader.revisions.rows
    let winner = SourcePlan.winner(reader.revisions)
    var places = ContiguousArray(repeating: -1, count: rows.count)
    var guess = 0
    for (row, said) in rows.enumerated() where said.isCarried {
      let place = reader.revisions.withID(row) { stored.index(of: $0, guess: guess) }
      guard let place else { return try check(false, row, "it is missing") }
      places[row] = place
      guess = place + 1
    }
    var highest = 0
    for (row, said) in rows.enumerated() where said.isCarried {
      let node = stored.node(places[row])
      highest = max(highest, said.sequence)
      try check(node.isDeleted == said.isDeleted, row, "it is \(node.isDeleted ? "" : "not ")deleted")
      try check(node.isLeaf == said.isLeaf, row, "it is \(node.isLeaf ? "a" : "no") leaf")
      try check(
        node.sequence == UInt64(said.sequence), row, "its sequence is \(node.sequence), not \(said.sequence)")
      let parent = said.parent >= 0 && rows[said.parent].isCarried ? places[said.parent] : -1
      try check(node.parent == parent, row, "it has another parent")
      if row == winner { try check(places[row] == 0, row, "it isn't the current one") }
    }
    highestSequence = max(highestSequence, highest)
    try check(stored.sequence == UInt64(highest), nil, "its sequence is \(stored.sequence), not \(highest)")
    try check(
      stored.isDeleted == (winner.map { rows[$0].isDeleted } ?? false), nil,
      "it is stored as \(stored.isDeleted ? "deleted" : "live")")
    for (row, said) in rows.enumerated() where said.isCarried && (said.hasBody || said.isLeaf) {
      try compareBody(row, places[row], stored, check)
    }
    guard upgrade.options.carry == .full else { return }
    let expiration = try snapshot.expiration(ofBytes: reader.documentID.bytes)
    try check(expiration == reader.expiration.map { Int64($0) * 1_000 }, nil, "it expires at another time")
  }

  /// Whether the reader's current document was to be left out.
  private func isLeftOut() throws -> Bool {
    for row in reader.revisions.rows.indices where reader.revisions.rows[row].isLeaf {
      if try reader.withBody(row, { whyUnreadable($0) }) == nil { return false }
    }
    return true
  }

  private func whyUnreadable(_ json: UnsafeRawBufferPointer) -> String? {
    if let reason = upgrade.source.refusal(of: json) { return reason }
    do { return try JSONValue(json: json).object == nil ? "it isn't a JSON object" : nil } catch {
      return error.description
    }
  }

  private func compareBody(
    _ row: Int, _ place: Int, _ stored: StoredTree,
    _ check: (Bool, Int?, @autoclosure () -> String) throws -> Void
  ) throws {
    let said = reader.revisions.rows[row]
    try reader.withBody(row) { json in
      let isHere: Void? = try stored.withBody(place) {
        try compareBody($0, stored.sharedKeys, json, said, row, check)
      }
      if isHere == nil {
        // The copy has reported unreadable bodies of replaced revisions.
        try check(!said.isLeaf && whyUnreadable(json) != nil, row, "its body is missing")
      }
    }
  }

  private func compareBody(
    _ body: Value, _ sharedKeys: SharedKeys, _ json: UnsafeRawBufferPointer, _ said: SourceRevisions.Row,
    _ row: Int,
    _ check: (Bool, Int?, @autoclosure () -> String) throws -> Void
  ) throws {
    bodies += 1
    var isEqual = false
    do { isEqual = try comparison.isEqual(json: json, body.unsafeValue, sharedKeys: sharedKeys) } catch {
      return try check(false, row, "the source's body can't be read: \(error)")
    }
    if !isEqual {
      try check(isSettled(json, body, sharedKeys, said.generation), row, "its body differs")
    }
    if let found = body.value(of: SourceAttachmentEntry.property, sharedKeys: sharedKeys) {
      try compareAttachments(found.unsafeValue, row, sharedKeys, check)
    }
  }

  /// Whether a body equals the source's body after its attachments were changed as the upgrade does it.
  private func isSettled(
    _ json: UnsafeRawBufferPointer, _ body: Value, _ keys: SharedKeys, _ generation: UInt64
  ) throws -> Bool {
    guard let expected = try? JSONValue(json: json), let found = try? body.jsonValue(sharedKeys: keys) else {
      return false
    }
    return try SourceAttachmentEntry.settled(expected, generation: generation) { entry in
      try entry.stored.map { try attachments.expected($0, limit: entry.limit) }
    } == found
  }

  private func compareAttachments(
    _ found: UnsafeValue, _ row: Int, _ keys: SharedKeys,
    _ check: (Bool, Int?, @autoclosure () -> String) throws -> Void
  ) throws {
    for entry in found.entries {
      let entry = SourceAttachmentEntry(entry.name(in: keys) ?? "", entry.value, keys)
      guard let said = entry.stored, !whole.contains(said.digest) else { continue }
      // The digest of decoded bytes doesn't name a file of the source. It was compared with the body.
      let length: UInt64
      switch said.isCompressed ? nil : try attachments.expected(said, limit: .max) {
      case .carried(let bytes)?: length = bytes
      case .decoded(_, let bytes)?: length = bytes
      default:
        guard let stored = try store.blobs?.length(of: said.digest) else { continue }
        length = stored
      }
      try check(
        attachments.isWhole(said.digest, length: length), row,
        "the blob of its attachment '\(entry.name)' differs from that of the source")
      if whole.count >= Self.remembered { whole.removeAll(keepingCapacity: true) }
      whole.insert(said.digest)
    }
  }

  // MARK: Other contents

  private func compareExtras() throws {
    let source = upgrade.source
    // Of several local documents with the same ID, the first is carried over.
    var names: Set<ByteString> = []
    try source.forEachLocalDocument(
      { id, generation, json in
        let name = SourceText.localName(id)
        guard let expected = try? JSONValue(json: json), expected.object != nil,
          let found = try? store.localDocument(name)
        else { return }
        guard names.insert(ByteString(name)).inserted else { return }
        guard found.body == expected, found.generation == max(1, generation) else {
          throw differs("the local document '\(id)' differs")
        }
      }, skipped: { _, _ in })
    let stored = try store.localDocumentIDs().count
    guard stored == names.count, stored == upgrade.report.localDocuments.carried else {
      throw differs(
        "the result has \(stored) local documents instead of \(upgrade.report.localDocuments.carried)"
      )
    }
    let last = max(try upgrade.lastSequence(), highestSequence)
    let found = try store.lastSequence
    guard found == UInt64(last) else {
      throw differs("the last sequence is \(found), but that of the source is \(last)")
    }
  }
}
