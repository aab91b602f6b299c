import Blobs
import Fleece
import Storage

/// Whether two databases hold the same, revision by revision, whatever their engines.
///
/// Both are read in one pass in the order of document IDs, from one snapshot each. What engines or the order of saves
/// make different is no difference: the numbers of shared keys, the layout of bodies, sequences unless they are asked
/// for. What was the same bytes isn't decoded.
final class DocumentComparison {
  private let left: ComparedDocuments
  private let right: ComparedDocuments
  private let comparesSequences: Bool
  private let report: (DocumentDifference) throws -> Void
  private let progress: (Int) throws -> Void
  /// Whether a name has the same number in both, as far as both know it: then equal bytes are equal bodies.
  private let haveSameKeys: Bool
  private var seenBlobs: Set<BlobDigest> = []
  private var compared = 0
  // Of bodies whose bytes differ.
  private var leftJSON: [UInt8] = []
  private var rightJSON: [UInt8] = []

  init(
    _ left: ComparedDocuments, _ right: ComparedDocuments, sequences: Bool,
    progress: @escaping (Int) throws -> Void, report: @escaping (DocumentDifference) throws -> Void
  ) {
    self.left = left
    self.right = right
    comparesSequences = sequences
    self.progress = progress
    self.report = report
    haveSameKeys = left.sharedKeys.agrees(with: right.sharedKeys)
  }

  /// Compares everything; says how many documents and tombstones were looked at.
  func run() throws -> Int {
    if comparesSequences {
      let (a, b) = (try left.lastSequence(), try right.lastSequence())
      if a != b { try differ("", .sequence, "last \(a)", "last \(b)") }
    }
    try left.start()
    try right.start()
    while true {
      switch (left.current, right.current) {
      case (nil, nil):
        try compareNamed(.local, "local")
        try compareNamed(.expiration, "expirations")
        try compareIndexes()
        return compared
      case (let a?, nil): try only(a, isLeft: true)
      case (nil, let b?): try only(b, isLeft: false)
      case (let a?, let b?):
        let order = compareBytes(a.id, b.id)
        if order < 0 {
          try only(a, isLeft: true)
        } else if order > 0 {
          try only(b, isLeft: false)
        } else {
          try compare(a, b)
          try left.advance()
          try right.advance()
        }
      }
      compared += 1
      if compared & 1023 == 0 { try progress(compared) }
    }
  }

  private func differ(_ id: String, _ kind: DocumentDifference.Kind, _ left: String, _ right: String) throws {
    try report(DocumentDifference(id, kind, left, right))
  }

  private func only(_ document: ComparedDocuments.Stored, isLeft: Bool) throws {
    let id = String(decoding: document.id, as: UTF8.self)
    let words = document.isDeleted ? "a tombstone" : "a document"
    try differ(id, .document, isLeft ? words : "none", isLeft ? "none" : words)
    try (isLeft ? left : right).advance()
  }

  // MARK: Documents

  private func compare(_ a: ComparedDocuments.Stored, _ b: ComparedDocuments.Stored) throws {
    if haveSameKeys, a.bytes.count == b.bytes.count, compareBytes(a.bytes, b.bytes) == 0 {
      // The same bytes; bodies of other revisions and blobs lie elsewhere.
      let record = try a.record()
      if record.hasSingleRevision {
        return try compareBlobs(record.body, a.id)
      }
    }
    let id = String(decoding: a.id, as: UTF8.self)
    do { try compareRecords(a, b, id) } catch let error as DocumentError where error.documentID == nil {
      throw DocumentError(error.code, error.message, documentID: id)
    }
  }

  private func compareRecords(_ a: ComparedDocuments.Stored, _ b: ComparedDocuments.Stored, _ id: String)
    throws
  {
    let (recordA, recordB) = (try a.record(), try b.record())
    try left.loadTree(of: a, recordA)
    try right.loadTree(of: b, recordB)
    if comparesSequences, recordA.sequence != recordB.sequence {
      try differ(id, .sequence, "\(recordA.sequence)", "\(recordB.sequence)")
    }
    // In order of priority, equal trees have their revisions in the same places.
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
      try compareRevision(index, other, recordA, recordB, a, b, id)
    }
    for (revision, _) in (placesOfB ?? [:]).sorted(by: { $0.value < $1.value }) {
      try differ(id, .revision, "none", "\(revision)")
    }
  }

  private func compareRevision(
    _ index: Int, _ other: Int, _ recordA: DocumentRecord, _ recordB: DocumentRecord,
    _ a: ComparedDocuments.Stored, _ b: ComparedDocuments.Stored, _ id: String
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
    try compareBodies(
      try body(of: index, recordA, left), try body(of: other, recordB, right), id, a.id, revision)
  }

  /// The body of a revision: in the record for the current one, else under its sequence. It ends with the next.
  private func body(of index: Int, _ record: DocumentRecord, _ documents: ComparedDocuments) throws
    -> UnsafeRawBufferPointer?
  {
    let node = documents.tree.nodes[index]
    guard index > 0 else { return record.body }
    return node.flags.contains(.hasBody) ? try documents.body(node.sequence, isLeaf: node.isLeaf) : nil
  }

  private func compareBodies(
    _ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?, _ id: String,
    _ idBytes: UnsafeRawBufferPointer,
    _ revision: () -> RevisionID
  ) throws {
    switch (a, b) {
    case (nil, nil): return
    case (_?, nil): try differ(id, .body, "\(revision()) here", "\(revision()) not here")
    case (nil, _?): try differ(id, .body, "\(revision()) not here", "\(revision()) here")
    case (let a?, let b?):
      if haveSameKeys, a.count == b.count, compareBytes(a, b) == 0 { return try compareBlobs(a, idBytes) }
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
  }

  /// What the JSON of two bodies has from a little before where they part.
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

  /// Looks at the blobs that an equal body names, each digest once: are the bytes in both, and are they right?
  private func compareBlobs(_ body: UnsafeRawBufferPointer, _ id: UnsafeRawBufferPointer) throws {
    guard mayNameBlob(body), let root = FleeceReader.root(of: body) else { return }
    try forEachBlobReference(in: root, sharedKeys: left.sharedKeys) { reference in
      guard let digest = reference.digest, seenBlobs.insert(digest).inserted else { return }
      let (a, b) = (try left.state(of: digest), try right.state(of: digest))
      if a != b {
        try differ(String(decoding: id, as: UTF8.self), .blob, "\(digest) \(a)", "\(digest) \(b)")
      }
    }
  }

  // MARK: What lies under names

  /// Compares a keyspace of small records under names, which say the same when they are the same bytes.
  private func compareNamed(_ kind: DocumentDifference.Kind, _ keyspace: String) throws {
    let (a, b) = (try left.cursor(over: keyspace), try right.cursor(over: keyspace))
    var (entryA, entryB) = (try a?.next(), try b?.next())
    func words(_ entry: Entry?) throws -> String {
      try entry.map { try ComparedDocuments.words($0, kind) } ?? "none"
    }
    while entryA != nil || entryB != nil {
      let order: Int
      if let entryA, let entryB {
        order = compareBytes(entryA.key, entryB.key)
      } else {
        order = entryA == nil ? 1 : -1
      }
      let first = order <= 0 ? entryA : nil
      let second = order >= 0 ? entryB : nil
      guard let name = (first ?? second)?.key else { return }
      let isEqual = order == 0 && compareBytes(first?.value ?? name, second?.value ?? name) == 0
      if !isEqual {
        try differ(String(decoding: name, as: UTF8.self), kind, try words(first), try words(second))
      }
      if order <= 0 { entryA = try a?.next() }
      if order >= 0 { entryB = try b?.next() }
    }
  }

  /// Compares which indexes there are. Whether each is right is the business of a check.
  private func compareIndexes() throws {
    let (a, b) = (try left.indexes(), try right.indexes())
    for name in Set(a.keys).union(b.keys).sorted() where a[name] != b[name] {
      try differ(name, .index, a[name] ?? "none", b[name] ?? "none")
    }
  }
}

extension RevisionFlags {
  /// For people.
  fileprivate var words: String {
    (contains(.deleted) ? "deleted" : "live") + (contains(.closed) ? ", closed" : "")
  }
}

extension DocumentRecord {
  /// Whether there is no revision but the current one.
  fileprivate var hasSingleRevision: Bool { history == nil && tree.first == 1 }
}

extension RevisionTree {
  /// Whether both have the same revisions in the same places.
  fileprivate func hasSameRevisions(as other: RevisionTree) -> Bool {
    guard nodes.count == other.nodes.count else { return false }
    return nodes.indices.allSatisfy { index in
      let (a, b) = (nodes[index], other.nodes[index])
      return a.generation == b.generation && a.isText == b.isText
        && compareBytes(suffix(of: a).bytes, other.suffix(of: b).bytes) == 0
    }
  }
}
