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
  /// The current body where it is stored, until something else is read.
  private var currentBody: UnsafeRawBufferPointer?
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
    guard let record = try read() else {
      tree.removeAll()
      return false
    }
    try tree.decode(record.tree)
    sequence = record.sequence
    return true
  }

  private func read() throws -> DocumentRecord? {
    let (transaction, context) = try snapshot.open()
    var found = try transaction.get(id.bytes, in: context.keyspaces.docs)
    isLive = found != nil
    if found == nil { found = try transaction.get(id.bytes, in: context.keyspaces.deleted) }
    guard let found else { return nil }
    let record = try DocumentRecord(found)
    currentBody = record.body
    return record
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

  /// The body of a revision, nil when it isn't here; valid until the next one is asked for.
  public func body(_ index: Int) throws -> Value? {
    if index == 0 {
      if let currentBody { return FleeceReader.root(of: currentBody) }
      guard let record = try read() else { return nil }
      return FleeceReader.root(of: record.body)
    }
    let node = tree.nodes[index]
    guard node.flags.contains(.hasBody) else { return nil }
    let (transaction, context) = try snapshot.open()
    currentBody = nil
    let keyspace = node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
    return try withSequenceKey(node.sequence) { key in
      try transaction.get(key, in: keyspace).flatMap { FleeceReader.root(of: try BodyRecord($0).body) }
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
