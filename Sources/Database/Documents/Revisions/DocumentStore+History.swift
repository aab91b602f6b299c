import Blobs
import Bytes
import Fleece
import Storage

extension DocumentStore {
  /// Returns all known revisions of the document, or nil.
  package func revisions(of id: String, withBodies: Bool = true) throws -> [Revision]? {
    try reading { transaction, context in
      guard let history = try history(of: id, transaction, context) else { return nil }
      try history.loadOlder()
      return try history.tree.nodes.indices.map { try history.revision($0, withBody: withBodies) }
    }
  }

  /// Returns one revision with its body, or nil.
  package func revision(_ revision: RevisionID, of id: String) throws -> Revision? {
    try reading { transaction, context in
      guard let history = try history(of: id, transaction, context) else { return nil }
      return try history.index(of: revision).map { try history.revision($0, withBody: true) }
    }
  }

  /// Returns the leaf revisions with their bodies.
  package func leaves(of id: String, includeDeleted: Bool = false) throws -> [Revision] {
    try reading { transaction, context in
      guard let history = try history(of: id, transaction, context) else { return [] }
      return try history.leaves(includeDeleted: includeDeleted)
    }
  }

  /// Returns the newest common ancestor with its body, or nil.
  package func commonAncestor(of first: RevisionID, and second: RevisionID, in id: String) throws -> Revision?
  {
    try reading { transaction, context in
      guard let history = try history(of: id, transaction, context) else {
        throw DocumentError(.notFound, "there is no such document", documentID: id)
      }
      guard var left = try history.index(of: first), var right = try history.index(of: second) else {
        let unknown = try history.index(of: first) == nil ? first : second
        throw DocumentError(.notFound, "there is no revision \(unknown) of the document", documentID: id)
      }
      // Parents are older. So step up from the younger revision until both meet.
      let nodes = history.tree.nodes
      while left != right {
        if nodes[left].generation >= nodes[right].generation {
          guard nodes[left].parent >= 0 else { return nil }
          left = Int(nodes[left].parent)
        } else {
          guard nodes[right].parent >= 0 else { return nil }
          right = Int(nodes[right].parent)
        }
      }
      return try history.revision(left, withBody: true)
    }
  }

  /// A document and its tree in one transaction. Older revisions of a deep history are loaded on demand. That
  /// keeps the indices of the other revisions.
  final class History {
    let document: Document
    let tree = RevisionTree()
    private let store: DocumentStore
    private let transaction: any ReadTransaction
    private let context: Context
    /// The older revisions that `tree` doesn't contain yet, or nil.
    private var older: StoredHistory?

    init(
      _ document: Document, _ store: DocumentStore, _ transaction: any ReadTransaction, _ context: Context
    ) throws {
      self.document = document
      self.store = store
      self.transaction = transaction
      self.context = context
      older = try document.withRecord { record in
        try tree.decode(record.tree)
        return record.history
      }
    }

    /// Loads the older revisions, which makes the tree complete.
    func loadOlder() throws {
      guard let older else { return }
      var id = document.id
      try id.withUTF8 { try tree.addHistory(of: UnsafeRawBufferPointer($0), older, transaction) }
      self.older = nil
    }

    /// Returns the leaf revisions with their bodies, the current one first.
    func leaves(includeDeleted: Bool) throws -> [Revision] {
      let nodes = tree.nodes
      return try nodes.indices.filter { nodes[$0].isLeaf && (includeDeleted || !nodes[$0].isDeleted) }
        .map { try revision($0, withBody: true) }
    }

    func index(of revision: RevisionID) throws -> Int? {
      if let index = loadedIndex(of: revision) { return index }
      guard older != nil, revision.generation < tree.oldestGeneration else { return nil }
      try loadOlder()
      return loadedIndex(of: revision)
    }

    private func loadedIndex(of revision: RevisionID) -> Int? {
      var packed = ByteBuffer(capacity: 256)
      return tree.index(of: revision, &packed)
    }

    func revision(_ index: Int, withBody: Bool) throws -> Revision {
      // The parent of the last node is one of the older revisions.
      if index == tree.nodes.count - 1 { try loadOlder() }
      let node = tree.nodes[index]
      var body: JSONValue?
      var hasBody = node.flags.contains(.hasBody)
      if index == 0 {
        if withBody { body = try document.value() }
      } else if hasBody {
        let keyspace = node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
        if withBody {
          body = try store.body(of: node.sequence, in: keyspace, transaction, context)
          hasBody = body != nil
        } else {
          hasBody = try withSequenceKey(node.sequence) { try transaction.contains($0.bytes, in: keyspace) }
        }
      }
      return Revision(
        id: tree.revisionID(of: index),
        parent: node.parent < 0 ? nil : tree.revisionID(of: Int(node.parent)), isDeleted: node.isDeleted,
        isLeaf: node.isLeaf, isCurrent: index == 0, sequence: node.sequence, hasBody: hasBody, body: body)
    }
  }

  func history(of id: String, _ transaction: any ReadTransaction, _ context: Context) throws -> History? {
    guard let document = try self.document(id, includeDeleted: true, in: transaction, context) else {
      return nil
    }
    return try History(document, self, transaction, context)
  }

  func body(
    of sequence: UInt64, in keyspace: Keyspace, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> JSONValue? {
    try withSequenceKey(sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace) { bytes in
        let record = try BodyRecord(bytes)
        let keys = try sharedKeys(record.keyCount, transaction, context)
        guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
        do {
          let value = try root.jsonValue(sharedKeys: keys)
          return mayNameBlob(record.body) ? value.withContent(from: blobSource) : value
        } catch { throw DocumentError(.damaged, "a stored body can't be read: \(error)") }
      }
    }
  }
}
