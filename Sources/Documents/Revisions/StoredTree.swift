import Fleece
import Storage

/// The documents of a snapshot with their whole trees, one at a time and in place: for who compares a store with what it
/// was made from. One thread at a time.
public final class StoredTree {
  private let snapshot: DocumentSnapshot
  private let tree = RevisionTree()
  private var suffix = ByteBuffer(capacity: 512)
  private var id = ByteBuffer(capacity: 512)
  private var isLive = false
  /// The sequence of the document's latest change.
  public private(set) var sequence: UInt64 = 0
  /// The names that bodies are read with.
  public let sharedKeys: SharedKeys

  /// A reader of the documents of `snapshot`, as long as that lives.
  public init(_ snapshot: DocumentSnapshot) throws {
    self.snapshot = snapshot
    sharedKeys = try snapshot.sharedKeys
  }

  /// One revision, as far as its tree tells.
  public struct Node: Sendable {
    /// The parent's number, or -1.
    public let parent: Int
    /// Of the change that brought it.
    public let sequence: UInt64
    /// Whether it is a tombstone.
    public let isDeleted: Bool
    /// Whether nothing came after it.
    public let isLeaf: Bool
  }

  /// Goes to the document of that ID, live or deleted; false when there is none.
  public func load(_ id: UnsafeRawBufferPointer) throws -> Bool {
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

  /// Revisions of the document, the current one first.
  public var count: Int { tree.nodes.count }

  /// Whether it is stored among the deleted ones.
  public var isDeleted: Bool { !isLive }

  /// A revision by its number.
  public func node(_ index: Int) -> Node {
    let node = tree.nodes[index]
    return Node(
      parent: Int(node.parent), sequence: node.sequence, isDeleted: node.isDeleted, isLeaf: node.isLeaf)
  }

  /// The number of the revision of that ID as text, nil when there is none. `guess` is looked at first.
  public func index(of revision: UnsafeRawBufferPointer, guess: Int) -> Int? {
    guard let (generation, isText) = RevisionID.parse(revision, into: &suffix) else { return nil }
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

  /// Lends the body of a revision; nil, and `body` isn't called, when it isn't here or can't be read.
  public func withBody<Result>(_ index: Int, _ body: (Value) throws -> Result) throws -> Result? {
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

  /// How many documents and tombstones the snapshot has, and bodies of revisions that aren't current. Constant time.
  public func counts() throws -> (documents: Int, tombstones: Int, otherBodies: Int) {
    let (transaction, context) = try snapshot.open()
    let keyspaces = context.keyspaces
    return (
      try transaction.count(of: keyspaces.docs), try transaction.count(of: keyspaces.deleted),
      try transaction.count(of: keyspaces.bodies) + transaction.count(of: keyspaces.conflicts)
    )
  }
}
