import Blobs
import Bytes
import Fleece
import Storage

/// How much a comparison has compared.
package struct ComparedCounts {
  /// Documents and tombstones that one database or both have.
  package var documents = 0
  /// Revisions of the first database that belong to documents that both have.
  package var revisions = 0
}

/// Compares the contents of two databases, revision by revision, whatever their engines.
///
/// Both are read in one pass in the order of document IDs, each from one snapshot. Details that depend on the
/// engine or on the order of saves aren't differences: the numbers of shared keys, the layout of bodies, and
/// sequences unless they are compared. Records with equal bytes aren't decoded.
final class DocumentComparison {
  private let left: ComparedDocuments
  private let right: ComparedDocuments
  private let comparesSequences: Bool
  /// Whether only the current revision of each document is compared.
  private let onlyCurrent: Bool
  private let report: (DocumentDifference) throws -> Void
  private let progress: (Int) throws -> Void
  /// Whether each name known to both has the same number in both. Then equal bytes are equal bodies.
  private let haveSameKeys: Bool
  private var seenBlobs: Set<BlobDigest> = []
  private var counts = ComparedCounts()
  // Buffers for bodies whose bytes differ.
  private var leftJSON: [UInt8] = []
  private var rightJSON: [UInt8] = []

  init(
    _ left: ComparedDocuments, _ right: ComparedDocuments, sequences: Bool, onlyCurrent: Bool,
    progress: @escaping (Int) throws -> Void, report: @escaping (DocumentDifference) throws -> Void
  ) {
    self.left = left
    self.right = right
    comparesSequences = sequences
    self.onlyCurrent = onlyCurrent
    self.progress = progress
    self.report = report
    haveSameKeys = left.sharedKeys.agrees(with: right.sharedKeys)
  }

  /// Compares everything. Returns what was examined.
  func run() throws -> ComparedCounts {
    if comparesSequences {
      let (a, b) = (try left.lastSequence(), try right.lastSequence())
      if a != b { try differ("", .sequence, "last \(a)", "last \(b)") }
    }
    try left.start()
    try right.start()
    while left.hasCurrent || right.hasCurrent {
      let order = try order()
      if order < 0 {
        try only(isLeft: true)
      } else if order > 0 {
        try only(isLeft: false)
      } else {
        try left.withCurrent { a in try right.withCurrent { b in try compare(a, b) } }
        try left.advance()
        try right.advance()
      }
      counts.documents += 1
      if counts.documents & 1023 == 0 { try progress(counts.documents) }
    }
    if onlyCurrent { return counts }
    try compareNamed(.local, "local")
    try compareNamed(.expiration, "expirations")
    try compareIndexes()
    return counts
  }

  /// Returns which side's document comes first: negative for the left, 0 if both have the same ID.
  private func order() throws -> Int {
    guard left.hasCurrent, right.hasCurrent else { return left.hasCurrent ? -1 : 1 }
    return try left.withCurrent { a in try right.withCurrent { b in a.id.compare(b.id) } }
  }

  private func differ(_ id: String, _ kind: DocumentDifference.Kind, _ left: String, _ right: String) throws {
    try report(DocumentDifference(id, kind, left, right))
  }

  private func only(isLeft: Bool) throws {
    let side = isLeft ? left : right
    let (id, words) = try side.withCurrent {
      (String(copying: $0.id), $0.isDeleted ? "a tombstone" : "a document")
    }
    try differ(id, .document, isLeft ? words : "none", isLeft ? "none" : words)
    try side.advance()
  }

  // MARK: Documents

  private func compare(_ a: ComparedDocuments.Stored, _ b: ComparedDocuments.Stored) throws {
    if haveSameKeys, a.bytes.isEqual(to: b.bytes) {
      // The records are equal. Bodies of other revisions and blobs are stored elsewhere.
      let record = try DocumentRecord(a.bytes)
      if record.hasSingleRevision {
        counts.revisions += 1
        return try compareBlobs(record.body, a.id)
      }
    }
    let id = String(copying: a.id)
    do { try compareRecords(a, b, id) } catch let error as DocumentError where error.documentID == nil {
      throw DocumentError(error.code, error.message, documentID: id)
    }
  }

  private func compareRecords(_ a: ComparedDocuments.Stored, _ b: ComparedDocuments.Stored, _ id: String)
    throws
  {
    let recordA = try DocumentRecord(a.bytes)
    let recordB = try DocumentRecord(b.bytes)
    try left.loadTree(of: a.id, recordA)
    try right.loadTree(of: b.id, recordB)
    if comparesSequences, recordA.sequence != recordB.sequence {
      try differ(id, .sequence, "\(recordA.sequence)", "\(recordB.sequence)")
    }
    counts.revisions += onlyCurrent ? 1 : left.tree.nodes.count
    if onlyCurrent { return try compareCurrent(recordA, recordB, a.id, id) }
    // Trees are ordered by priority, so equal trees have their revisions at the same indices.
    var placesOfB: [RevisionID: Int]?
    if !left.tree.hasSameRevisions(as: right.tree) {
      var places: [RevisionID: Int] = [:]
      for index in right.tree.nodes.indices { places[right.tree.revisionID(of: index)] = index }
      placesOfB = places
      let (currentA, currentB) = (left.tree.revisionID(of: 0), right.tree.revisionID(of: 0))
      if currentA != currentB { try differ(id, .current, "\(currentA)", "\(currentB)") }
    }
    for index in left.tree.nodes.indices {
      var other = index
      if placesOfB != nil {
        let revision = left.tree.revisionID(of: index)
        guard let place = placesOfB?.removeValue(forKey: revision) else {
          try differ(id, .revision, "\(revision)", "none")
          continue
        }
        other = place
      }
      try compareRevision(index, other, recordA, recordB, a.id, id)
    }
    for (revision, _) in (placesOfB ?? [:]).sorted(by: { $0.value < $1.value }) {
      try differ(id, .revision, "none", "\(revision)")
    }
  }

  /// Compares the current revisions, and nothing that is known of others.
  private func compareCurrent(
    _ recordA: DocumentRecord, _ recordB: DocumentRecord, _ idBytes: RawSpan, _ id: String
  )
    throws
  {
    let (currentA, currentB) = (left.tree.revisionID(of: 0), right.tree.revisionID(of: 0))
    guard currentA == currentB else { return try differ(id, .current, "\(currentA)", "\(currentB)") }
    let (flagsA, flagsB) = (left.tree.nodes[0].flags, right.tree.nodes[0].flags)
    if flagsA.contains(.deleted) != flagsB.contains(.deleted) {
      try differ(id, .flags, "\(currentA) \(flagsA.words)", "\(currentB) \(flagsB.words)")
    }
    try left.withBody(of: 0, recordA) { a in
      try right.withBody(of: 0, recordB) { b in try compareBodies(a, b, id, idBytes) { currentA } }
    }
  }

  private func compareRevision(
    _ index: Int, _ other: Int, _ recordA: DocumentRecord, _ recordB: DocumentRecord,
    _ idBytes: RawSpan, _ id: String
  ) throws {
    let (nodeA, nodeB) = (left.tree.nodes[index], right.tree.nodes[other])
    func revision() -> RevisionID { left.tree.revisionID(of: index) }
    let mask: RevisionFlags = [.deleted, .closed]
    if nodeA.flags.intersection(mask) != nodeB.flags.intersection(mask) {
      try differ(id, .flags, "\(revision()) \(nodeA.flags.words)", "\(revision()) \(nodeB.flags.words)")
    }
    let parentA = nodeA.parent < 0 ? nil : left.tree.revisionID(of: Int(nodeA.parent))
    let parentB = nodeB.parent < 0 ? nil : right.tree.revisionID(of: Int(nodeB.parent))
    if parentA != parentB {
      try differ(
        id, .parent, "\(revision()) on \(parentA?.description ?? "none")",
        "\(revision()) on \(parentB?.description ?? "none")")
    }
    if comparesSequences, nodeA.sequence != nodeB.sequence {
      try differ(id, .sequence, "\(revision()) \(nodeA.sequence)", "\(revision()) \(nodeB.sequence)")
    }
    try left.withBody(of: index, recordA) { a in
      try right.withBody(of: other, recordB) { b in try compareBodies(a, b, id, idBytes, revision) }
    }
  }

  private func compareBodies(
    _ a: RawSpan?, _ b: RawSpan?, _ id: String, _ idBytes: RawSpan,
    _ revision: () -> RevisionID
  ) throws {
    guard let a else {
      if b != nil { try differ(id, .body, "\(revision()) not here", "\(revision()) here") }
      return
    }
    guard let b else { return try differ(id, .body, "\(revision()) here", "\(revision()) not here") }
    if haveSameKeys, a.isEqual(to: b) { return try compareBlobs(a, idBytes) }
    leftJSON.removeAll(keepingCapacity: true)
    rightJSON.removeAll(keepingCapacity: true)
    try left.writeJSON(a, into: &leftJSON)
    try right.writeJSON(b, into: &rightJSON)
    guard leftJSON == rightJSON else {
      let difference = firstDifference()
      return try differ(
        id, .body, "\(revision()) …\(difference.left)", "\(revision()) …\(difference.right)")
    }
    try compareBlobs(a, idBytes)
  }

  /// Returns excerpts of the JSON of two bodies around their first difference.
  private func firstDifference() -> (left: String, right: String) {
    var index = 0
    while index < leftJSON.count, index < rightJSON.count, leftJSON[index] == rightJSON[index] { index += 1 }
    let start = max(0, index - 20)
    func excerpt(_ json: [UInt8]) -> String {
      String(decoding: json[start..<min(json.count, index + 40)], as: UTF8.self)
    }
    return (excerpt(leftJSON), excerpt(rightJSON))
  }

  // MARK: Blobs

  /// Compares the blobs that an equal body refers to, each digest once: whether both have the bytes, and
  /// whether the bytes are right.
  private func compareBlobs(_ body: RawSpan, _ id: RawSpan) throws {
    guard mayNameBlob(body), let root = Value(rootOf: body) else { return }
    try forEachBlobReference(in: root, sharedKeys: left.sharedKeys) { reference in
      guard let digest = reference.digest, seenBlobs.insert(digest).inserted else { return }
      let (a, b) = (try left.state(of: digest), try right.state(of: digest))
      if a != b {
        try differ(String(copying: id), .blob, "\(digest) \(a)", "\(digest) \(b)")
      }
    }
  }

  // MARK: Named records

  /// Compares a keyspace of small records by name. Records are equal if their bytes are equal.
  private func compareNamed(_ kind: DocumentDifference.Kind, _ keyspace: String) throws {
    let (a, b) = (try left.cursor(over: keyspace), try right.cursor(over: keyspace))
    var (hasA, hasB) = (try a?.next() ?? false, try b?.next() ?? false)
    func words(_ cursor: (any Cursor)?) throws -> String {
      try cursor?.withEntry { try ComparedDocuments.words($0, $1, kind) } ?? "none"
    }
    while hasA || hasB {
      var order = hasA ? -1 : 1
      var isEqual = false
      if hasA, hasB, let a, let b {
        try a.withEntry { keyA, valueA in
          try b.withEntry { keyB, valueB in
            order = keyA.compare(keyB)
            isEqual = order == 0 && valueA.isEqual(to: valueB)
          }
        }
      }
      let (first, second) = (order <= 0 ? a : nil, order >= 0 ? b : nil)
      if !isEqual, let named = first ?? second {
        let name = try named.withEntry { key, _ in String(copying: key) }
        try differ(name, kind, try words(first), try words(second))
      }
      if order <= 0 { hasA = try a?.next() ?? false }
      if order >= 0 { hasB = try b?.next() ?? false }
    }
  }

  /// Compares the sets of indexes and their definitions. An integrity check verifies their contents.
  private func compareIndexes() throws {
    let (a, b) = (try left.indexes(), try right.indexes())
    for name in Set(a.keys).union(b.keys).sorted() where a[name] != b[name] {
      try differ(name.string, .index, a[name] ?? "none", b[name] ?? "none")
    }
  }
}

extension RevisionFlags {
  /// A description for people.
  fileprivate var words: String {
    (contains(.deleted) ? "deleted" : "live") + (contains(.closed) ? ", closed" : "")
  }
}

extension DocumentRecord {
  /// Whether the current revision is the only one.
  fileprivate var hasSingleRevision: Bool {
    history == nil && tree.byteCount > 0 && tree.unsafeLoad(as: UInt8.self) == 1
  }
}

extension RevisionTree {
  /// Returns whether both have the same revisions at the same indices.
  fileprivate func hasSameRevisions(as other: RevisionTree) -> Bool {
    guard nodes.count == other.nodes.count else { return false }
    return nodes.indices.allSatisfy { index in
      let (a, b) = (nodes[index], other.nodes[index])
      return a.generation == b.generation && a.isText == b.isText
        && compareBytes(suffix(of: a).bytes, other.suffix(of: b).bytes) == 0
    }
  }
}
