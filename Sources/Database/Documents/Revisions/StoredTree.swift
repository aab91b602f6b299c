import Bytes
import Fleece
import Storage

/// Reads the documents of a snapshot with their revision trees, one at a time and in place. Used to compare a
/// store with its source. Use it on one thread at a time.
package final class StoredTree {
  private let snapshot: DocumentSnapshot
  private let tree = RevisionTree()
  private var suffix = ByteBuffer(capacity: 512)
  private var id = ByteBuffer(capacity: 512)
  private var isLive = false
  /// The sequence of the document's latest change.
  package private(set) var sequence: UInt64 = 0
  /// The shared keys of the bodies.
  package let sharedKeys: SharedKeys

  /// Creates a reader of the documents of `snapshot`. It is valid while the snapshot lasts.
  package init(_ snapshot: DocumentSnapshot) throws {
    self.snapshot = snapshot
    sharedKeys = try snapshot.sharedKeys
  }

  /// One revision, as its tree describes it.
  package struct Node: Sendable {
    /// The index of the parent, or -1.
    package let parent: Int
    /// The sequence of the change that added it.
    package let sequence: UInt64
    /// Whether it is a tombstone.
    package let isDeleted: Bool
    /// Whether it is the last revision of its branch.
    package let isLeaf: Bool
  }

  /// Moves to the document with this ID, live or deleted. Returns false if there is none.
  package func load(_ id: UnsafeRawBufferPointer) throws -> Bool {
    self.id.removeAll()
    self.id.append(id)
    let found: Void? = try withRecord { record in
      try tree.decode(record.tree)
      sequence = record.sequence
    }
    guard found != nil else {
      tree.removeAll()
      return false
    }
    return true
  }

  private func withRecord<Result>(_ body: (DocumentRecord) throws -> Result) throws -> Result? {
    let (transaction, context) = try snapshot.open()
    let key = id.bytes
    let live = try transaction.withValue(at: key.bytes, in: context.keyspaces.docs) {
      try body(DocumentRecord($0))
    }
    isLive = live != nil
    if let live { return live }
    return try transaction.withValue(at: key.bytes, in: context.keyspaces.deleted) {
      try body(DocumentRecord($0))
    }
  }

  /// The number of revisions of the document in its record.
  package var count: Int { tree.nodes.count }

  /// Whether the document is stored as a tombstone.
  package var isDeleted: Bool { !isLive }

  /// Returns the revision at an index. Index 0 is the current revision.
  package func node(_ index: Int) -> Node {
    let node = tree.nodes[index]
    return Node(
      parent: Int(node.parent), sequence: node.sequence, isDeleted: node.isDeleted, isLeaf: node.isLeaf)
  }

  /// Returns the index of the revision with this ID as text, nil if there is none. It examines `guess` first.
  package func index(of revision: UnsafeRawBufferPointer, guess: Int) -> Int? {
    guard let (generation, text) = RevisionID.parse(revision) else { return nil }
    suffix.removeAll()
    let isText = suffix.append(suffix: text)
    let wanted = StoredRevisionID(
      generation: generation, suffix: StoredSuffix(bytes: suffix.bytes, isText: isText))
    if tree.nodes.indices.contains(guess) {
      let node = tree.nodes[guess]
      if node.generation == generation, node.isText == isText,
        compareBytes(tree.suffix(of: node).bytes, suffix.bytes) == 0
      {
        return guess
      }
    }
    return tree.index(of: wanted)
  }

  /// Lends the body of a revision. Returns nil without calling `body` if the body isn't stored or can't be
  /// read.
  package func withBody<Result>(_ index: Int, _ body: (Value) throws -> Result) throws -> Result? {
    func take(_ bytes: RawSpan) throws -> Result? {
      guard let root = Value(rootOf: bytes) else { return nil }
      return try body(root)
    }
    if index == 0 { return try withRecord { try take($0.body) } ?? nil }
    let node = tree.nodes[index]
    guard node.flags.contains(.hasBody) else { return nil }
    let (transaction, context) = try snapshot.open()
    let keyspace = node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
    return try withSequenceKey(node.sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace) { try take(BodyRecord($0).body) } ?? nil
    }
  }

  /// Returns the numbers of documents, of tombstones and of bodies of non-current revisions in the snapshot.
  /// Constant time.
  package func counts() throws -> (documents: Int, tombstones: Int, otherBodies: Int) {
    let (transaction, context) = try snapshot.open()
    let keyspaces = context.keyspaces
    return (
      try transaction.count(of: keyspaces.docs), try transaction.count(of: keyspaces.deleted),
      try transaction.count(of: keyspaces.bodies) + transaction.count(of: keyspaces.conflicts)
    )
  }
}
