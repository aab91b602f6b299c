import Bytes
import Fleece
import Storage

/// Copies whole documents into a new store as another database has them: IDs, revision trees, all sequences
/// and the available bodies. `DocumentInserter` adds documents to a store that may have documents.
///
/// For each document, call `begin`, add its revisions and call `finish`, which requests their bodies one by
/// one. Nothing is recomputed or pruned. Use it on one thread, inside the closure that receives it.
package final class DocumentImport {
  private let writer: DocumentWriter
  private var id = ByteBuffer(capacity: 512)
  private var suffix = ByteBuffer(capacity: 512)
  private var currentBody = ByteBuffer()
  private var highest: UInt64 = 0

  init(_ writer: DocumentWriter) { self.writer = writer }

  // MARK: A document

  /// Begins a document. Throws `invalidDocumentID` when the ID can't be stored or isn't UTF-8.
  package func begin(_ id: UnsafeRawBufferPointer) throws {
    try DocumentID.checkStored(id)
    self.id.removeAll()
    self.id.append(id)
    writer.tree.removeAll()
    highest = 0
  }

  /// Adds a revision. Returns false, and adds nothing, if `sequence` is out of range or `revision` isn't a
  /// revision ID that can be stored.
  ///
  /// - Parameters:
  ///   - parent: the index of the parent among the added revisions, or -1. The parent may be added later. A
  ///     parent has a lower generation, and a revision is a leaf exactly if it isn't the parent of another.
  ///   - sequence: 1 or more; no other revision of the database has it.
  ///   - hasBody: whether there is a body. A leaf needs one.
  package func add(
    _ revision: UnsafeRawBufferPointer, parent: Int, sequence: UInt64, isDeleted: Bool, isLeaf: Bool,
    hasBody: Bool
  ) -> Bool {
    guard sequence > 0, sequence <= maximumSequence,
      let (generation, text) = RevisionID.parse(revision)
    else { return false }
    suffix.removeAll()
    let isText = suffix.append(suffix: text)
    var flags: RevisionFlags = isDeleted ? .deleted : []
    if isLeaf { flags.insert(.leaf) }
    if hasBody { flags.insert(.hasBody) }
    writer.tree.add(
      StoredRevisionID(generation: generation, suffix: StoredSuffix(bytes: suffix.bytes, isText: isText)),
      parent: parent, sequence: sequence, flags: flags)
    highest = max(highest, sequence)
    return true
  }

  /// Encodes a body. Throws `invalidBody` when it isn't a JSON object.
  package func encode(json: UnsafeRawBufferPointer) throws -> EncodedBody {
    try writer.encode(json: json, of: id.bytes, isForeign: true, hasRevisionID: true)
  }

  /// Encodes a body. Throws `invalidBody` when it isn't an object.
  package func encode(_ body: JSONValue) throws -> EncodedBody {
    try writer.encode(.value(body), of: id.bytes, isForeign: true, hasRevisionID: true)
  }

  /// The shared keys for reading encoded bodies.
  package var sharedKeys: SharedKeys { writer.contextOfNow?.sharedKeys ?? .empty }

  /// Stores the document. Calls `encodeBody` with the sequence of each revision that has a body, the current
  /// revision first. `encodeBody` returns that body, or nil if it isn't available. Returns false if a
  /// document with this ID exists already.
  ///
  /// An error for the current revision is thrown, and nothing of the document is stored. Any later error
  /// makes the whole transaction fail. Throws `invalidHistory` without a leaf, `invalidBody` when the current
  /// revision or a leaf has no body, and `damaged` when another revision has the same sequence.
  package func finish(_ encodeBody: (_ sequence: UInt64) throws -> EncodedBody?) throws -> Bool {
    try writer.checkWritable()
    let tree = writer.tree
    guard tree.nodes.contains(where: { $0.isLeaf }) else {
      throw DocumentError(
        .invalidHistory, "the document has no leaf revision", documentID: writer.idText(id.bytes))
    }
    if tree.nodes.count > 1 { _ = tree.sort(watching: 0) }
    let current = tree.nodes[0]
    if try writer.contains(id.bytes) { return false }
    guard let first = try encodeBody(current.sequence) else {
      throw DocumentError(
        .invalidBody, "the current revision has no body", documentID: writer.idText(id.bytes))
    }
    let keyCount = first.sharedKeyCount
    let isAlone = tree.nodes.count == 1
    if !isAlone {
      currentBody.removeAll()
      currentBody.append(first.fleece)
    }
    try writer.mutating {
      for index in tree.nodes.indices.dropFirst() {
        let node = tree.nodes[index]
        guard node.flags.contains(.hasBody) else { continue }
        guard let body = try encodeBody(node.sequence) else {
          guard node.isLeaf else { continue }
          throw DocumentError(
            .invalidBody, "a leaf revision has no body", documentID: writer.idText(id.bytes))
        }
        writer.other.removeAll()
        writer.other.append(varint: UInt64(body.sharedKeyCount))
        writer.other.append(body.fleece)
        try insert(node.sequence, in: node.isLeaf ? writer.keyspaces.conflicts : writer.keyspaces.bodies)
      }
      let flags = try writer.insertRecord(
        id.bytes, highest, keyCount: keyCount, body: isAlone ? first.fleece : currentBody.bytes)
      writer.other.removeAll()
      writer.other.append(flags.rawValue)
      writer.other.append(id.bytes)
      if highest > writer.lastSequence ?? 0 {
        try writer.appendChange(highest)
        writer.lastSequence = highest
      } else {
        writer.hasUnsequencedChanges = true
        try insert(highest, in: writer.keyspaces.changes)
      }
    }
    return true
  }

  /// Whether a document of the store has this sequence.
  package func isChange(_ sequence: UInt64) throws -> Bool {
    guard sequence <= writer.lastSequence ?? .max else { return false }
    return try isInUse(sequence, in: writer.keyspaces.changes)
  }

  /// Whether a body of a revision that isn't the current one of its document is stored under this sequence.
  package func isOfBody(_ sequence: UInt64) throws -> Bool {
    guard sequence <= writer.lastSequence ?? .max else { return false }
    return try isInUse(sequence, in: writer.keyspaces.conflicts)
      || isInUse(sequence, in: writer.keyspaces.bodies)
  }

  private func isInUse(_ sequence: UInt64, in keyspace: Keyspace) throws -> Bool {
    try withSequenceKey(sequence) { try writer.transaction.contains($0.bytes, in: keyspace) }
  }

  /// Inserts `writer.other` under a new sequence. Throws `damaged` if the sequence is in use.
  private func insert(_ sequence: UInt64, in keyspace: Keyspace) throws {
    let isNew = try withSequenceKey(sequence) {
      try writer.transaction.insert($0, writer.other.bytes, in: keyspace)
    }
    guard isNew else {
      throw DocumentError(
        .damaged, "two revisions have the sequence \(sequence)", documentID: writer.idText(id.bytes))
    }
  }

  // MARK: Other data

  /// Sets the expiration time of a stored document, in milliseconds since 1970. Returns false if there is no
  /// such document.
  package func setExpiration(_ id: UnsafeRawBufferPointer, milliseconds: Int64) throws -> Bool {
    try writer.setExpiration(id, milliseconds)
  }

  /// Stores a local document at its generation. Returns false, and changes nothing, if there is one with this
  /// ID. Throws `invalidDocumentID`, and `invalidBody` when the body isn't a JSON object.
  package func insertLocalDocument(_ id: String, generation: UInt64, json: UnsafeRawBufferPointer) throws
    -> Bool
  {
    try DocumentID.withValidated(id, isLocal: true) { key in
      let body = try writer.encode(json: json, of: key, isForeign: true)
      try writer.checkWritable()
      return try writer.mutating {
        let keyspace =
          try writer.transaction.keyspace(named: DocumentStore.localKeyspace)
          ?? writer.transaction.createKeyspace(DocumentStore.localKeyspace, shape: .entries)
        writer.other.removeAll()
        writer.other.append(LocalDocument.version)
        writer.other.append(varint: max(1, generation))
        writer.other.append(body.canonicalJSON)
        return try writer.transaction.insert(key, writer.other.bytes, in: keyspace)
      }
    }
  }

  /// Raises the last sequence to `sequence` if it is lower.
  package func raiseLastSequence(to sequence: UInt64) { writer.raiseLastSequence(to: sequence) }

  /// Gives the database the UUIDs of its source, 16 bytes each. They take effect when the database is next
  /// opened.
  package func setIdentity(publicUUID: [UInt8]?, privateUUID: [UInt8]?) throws {
    try writer.checkWritable()
    try writer.mutating {
      for (name, bytes) in [("publicUUID", publicUUID), ("privateUUID", privateUUID)] {
        guard let bytes, bytes.count == 16 else { continue }
        try writer.transaction.put(Array(name.utf8), bytes, in: writer.keyspaces.meta)
      }
    }
  }
}

extension DocumentStore {
  /// Runs `body` in one transaction, all or nothing, with an importer that is valid until `body` returns.
  /// `body` runs only once, because it reads from a source that can't be rewound.
  package func importing<Result>(_ body: (DocumentImport) throws -> Result) throws -> Result {
    try writing(attempts: 1) { writer in
      // The tree becomes that of the imported documents.
      try writer.writePending()
      writer.forgetWide()
      return try body(DocumentImport(writer))
    }
  }
}
