import Fleece
import Storage

/// Puts whole documents into a store as another database has them: IDs, trees, sequences and the bodies that there are.
///
/// A document is begun, gets its revisions, and is finished, which asks for their bodies one by one: no more than one
/// body is in memory. Nothing is computed anew or pruned. It is used inside the closure that it was handed to, by one
/// thread.
public final class DocumentImport {
  private let writer: DocumentWriter
  private var id = ByteBuffer(capacity: 512)
  private var suffix = ByteBuffer(capacity: 512)
  private var winner = ByteBuffer()
  private var highest: UInt64 = 0

  init(_ writer: DocumentWriter) { self.writer = writer }

  // MARK: A document

  /// Begins a document. Throws `invalidDocumentID` for an ID that can't be stored, and for bytes that aren't UTF-8.
  public func begin(_ id: UnsafeRawBufferPointer) throws {
    guard String(validating: id, as: UTF8.self) != nil else {
      throw DocumentError(.invalidDocumentID, "a document ID has to be UTF-8", documentID: writer.idText(id))
    }
    if let reason = id.withMemoryRebound(
      to: UInt8.self, { DocumentID.reasonAgainst($0, maximum: DocumentID.maximumStoredBytes) })
    {
      throw DocumentError(.invalidDocumentID, reason, documentID: writer.idText(id))
    }
    self.id.removeAll()
    self.id.append(id)
    writer.tree.removeAll()
    highest = 0
  }

  /// Adds a revision; false, and nothing added, when `revision` is no revision ID that can be stored.
  ///
  /// - Parameters:
  ///   - parent: the parent's number among those that are added, before or after this one, or -1. A parent has a lower
  ///     generation, and a revision is a leaf exactly when it is nobody's parent.
  ///   - sequence: 1 or more; no other revision of the database has it.
  ///   - hasBody: whether there is a body. A leaf needs one.
  public func add(
    _ revision: UnsafeRawBufferPointer, parent: Int, sequence: UInt64, isDeleted: Bool, isLeaf: Bool,
    hasBody: Bool
  ) -> Bool {
    guard sequence > 0, sequence <= maximumSequence,
      let (generation, isText) = RevisionID.parse(revision, into: &suffix)
    else { return false }
    var flags: RevisionFlags = isDeleted ? .deleted : []
    if isLeaf { flags.insert(.leaf) }
    if hasBody { flags.insert(.hasBody) }
    writer.tree.add(
      StoredRevisionID(generation: generation, suffix: StoredSuffix(bytes: suffix.bytes, isText: isText)),
      parent: parent, sequence: sequence, flags: flags)
    highest = max(highest, sequence)
    return true
  }

  /// Encodes a body. Throws `invalidBody` for what is no JSON object.
  public func encode(json: UnsafeRawBufferPointer) throws {
    try writer.encode(json: json, of: id.bytes, isForeign: true, hasRevisionID: true)
  }

  /// Encodes a body. Throws `invalidBody` for what is no object.
  public func encode(_ body: JSONValue) throws {
    try writer.encode(.value(body), of: id.bytes, isForeign: true, hasRevisionID: true)
  }

  /// Whether the body that was encoded last has attachments, or other names that begin with an underscore.
  public var bodyHasReservedNames: Bool { writer.encoder.underscoredName != nil }

  /// The body that was encoded last; valid until the next is.
  public var body: UnsafeValue? { FleeceReader.root(of: writer.encoder.fleece) }

  /// The names that it can be read with.
  public var sharedKeys: SharedKeys { writer.contextOfNow?.sharedKeys ?? .empty }

  /// Stores the document. `encodeBody` is called with the sequence of each revision that has a body, the winner first,
  /// and encodes it; false, or an error that is thrown of the winner, means that it can't be had. False when there is a
  /// document of that ID already.
  ///
  /// An error of `encodeBody` for the winner is rethrown, and nothing of the document is stored. Any later one makes the
  /// whole transaction fail. Throws `damaged` when a sequence is another revision's as well.
  public func finish(_ encodeBody: (_ sequence: UInt64) throws -> Bool) throws -> Bool {
    let (transaction, keyspaces) = try writer.open()
    let tree = writer.tree
    guard tree.nodes.contains(where: { $0.isLeaf }) else {
      throw DocumentError(
        .invalidHistory, "a document needs a leaf", documentID: writer.idText(id.bytes))
    }
    if tree.nodes.count > 1 { _ = tree.sort(watching: 0) }
    let current = tree.nodes[0]
    if try transaction.contains(id.bytes.bytes, in: keyspaces.docs) { return false }
    if writer.mayHaveTombstones, try transaction.contains(id.bytes.bytes, in: keyspaces.deleted) {
      return false
    }
    guard try encodeBody(current.sequence) else {
      throw DocumentError(
        .invalidBody, "the current revision has no body", documentID: writer.idText(id.bytes))
    }
    let encoder = writer.encoder
    let keyCount = encoder.sharedKeyCount
    let isAlone = tree.nodes.count == 1
    if !isAlone {
      winner.removeAll()
      winner.append(encoder.fleece)
    }
    try writer.mutating {
      for index in tree.nodes.indices.dropFirst() {
        let node = tree.nodes[index]
        guard node.flags.contains(.hasBody) else { continue }
        guard try encodeBody(node.sequence) else {
          guard node.isLeaf else { continue }
          throw DocumentError(.invalidBody, "a leaf has no body", documentID: writer.idText(id.bytes))
        }
        writer.other.removeAll()
        writer.other.append(varint: UInt64(encoder.sharedKeyCount))
        writer.other.append(encoder.fleece)
        try insert(node.sequence, in: node.isLeaf ? keyspaces.conflicts : keyspaces.bodies, transaction)
      }
      var flags: DocumentRecord.Flags = current.isDeleted ? .deleted : []
      if tree.isConflicted { flags.insert(.conflicted) }
      writer.treeBytes.removeAll()
      tree.encode(into: &writer.treeBytes)
      writer.compose(
        flags: flags, highest, keyCount: keyCount, body: isAlone ? encoder.fleece : winner.bytes)
      try transaction.put(
        id.bytes, writer.record.bytes, in: current.isDeleted ? keyspaces.deleted : keyspaces.docs)
      if current.isDeleted { writer.mayHaveTombstones = true }
      writer.other.removeAll()
      writer.other.append(flags.rawValue)
      writer.other.append(id.bytes)
      if highest > writer.lastSequence ?? 0 {
        try writer.appendChange(highest, transaction, keyspaces)
        writer.lastSequence = highest
      } else {
        writer.hasUnsequencedChanges = true
        try insert(highest, in: keyspaces.changes, transaction)
      }
      try writer.updateIndexes(
        id.bytes, old: nil, new: current.isDeleted ? nil : writer.bodyOfRecord, transaction)
    }
    return true
  }

  /// Puts `writer.other` under a sequence that nothing is under.
  private func insert(
    _ sequence: UInt64, in keyspace: Keyspace, _ transaction: any WriteTransaction
  ) throws {
    let isNew = try withSequenceKey(sequence) {
      try transaction.insert($0, writer.other.bytes, in: keyspace)
    }
    guard isNew else {
      throw DocumentError(
        .damaged, "the sequence \(sequence) is that of two revisions", documentID: writer.idText(id.bytes))
    }
  }

  // MARK: What else there is

  /// Sets when a document that is stored expires, in milliseconds since 1970. False when there is no such document.
  public func setExpiration(_ id: UnsafeRawBufferPointer, milliseconds: Int64) throws -> Bool {
    try writer.setExpiration(id, milliseconds)
  }

  /// Stores a local document at its generation. False, and nothing changed, when there is one of that ID. Throws
  /// `invalidDocumentID`, and `invalidBody` for what is no JSON object.
  public func insertLocalDocument(_ id: String, generation: UInt64, json: UnsafeRawBufferPointer) throws
    -> Bool
  {
    try DocumentID.withValidated(id) { key in
      try writer.encode(json: json, of: key, isForeign: true)
      let (transaction, _) = try writer.open()
      return try writer.mutating {
        let keyspace =
          try transaction.keyspace(named: DocumentStore.localKeyspace)
          ?? transaction.createKeyspace(DocumentStore.localKeyspace, shape: .entries)
        writer.other.removeAll()
        writer.other.append(LocalDocument.version)
        writer.other.append(varint: max(1, generation))
        writer.other.append(writer.encoder.canonicalJSON)
        return try transaction.insert(key, writer.other.bytes, in: keyspace)
      }
    }
  }

  /// Makes `sequence` the last one, when the highest so far is below it.
  public func raiseLastSequence(to sequence: UInt64) {
    guard sequence <= maximumSequence, sequence > writer.lastSequence ?? 0 else { return }
    writer.lastSequence = sequence
  }

  /// Gives the database the UUIDs of the one that it is made from, 16 bytes each; they hold from the next opening on.
  public func setIdentity(publicUUID: [UInt8]?, privateUUID: [UInt8]?) throws {
    let (transaction, keyspaces) = try writer.open()
    try writer.mutating {
      for (name, bytes) in [("publicUUID", publicUUID), ("privateUUID", privateUUID)] {
        guard let bytes, bytes.count == 16 else { continue }
        try transaction.put(Array(name.utf8), bytes, in: keyspaces.meta)
      }
    }
  }
}

extension DocumentStore {
  /// Runs `body` in one transaction, all or nothing, with what puts whole documents into the store. What it is handed
  /// ends when it returns. It is run once: it takes from a source that goes on.
  public func importing<Result>(_ body: (DocumentImport) throws -> Result) throws -> Result {
    try writing(attempts: 1) { writer in try body(DocumentImport(writer)) }
  }
}

extension RevisionID {
  /// Reads the text form: the generation, and the suffix as it is stored, into `suffix`. Nil when it is no revision ID
  /// that can be stored.
  static func parse(
    _ text: UnsafeRawBufferPointer, into suffix: inout ByteBuffer
  ) -> (generation: UInt64, isText: Bool)? {
    var generation: UInt64 = 0
    var index = 0
    while index < text.count, text[index] != UInt8(ascii: "-") {
      let digit = text[index] &- 0x30
      // 19 digits are less than 2^64.
      guard digit < 10, index < 19, index > 0 || digit > 0 else { return nil }
      generation = generation * 10 + UInt64(digit)
      index += 1
    }
    guard index > 0, index < text.count, generation <= RevisionID.maximumGeneration else { return nil }
    let rest = UnsafeRawBufferPointer(rebasing: text[(index + 1)...])
    guard RevisionID.isValid(suffix: rest) else { return nil }
    suffix.removeAll()
    if suffix.append(hex: rest) { return (generation, false) }
    suffix.append(rest)
    return (generation, true)
  }
}

extension DocumentID {
  /// Whether bytes can be the ID of a stored document: UTF-8 of at most 480 bytes without control characters that doesn't
  /// begin with an underscore.
  public static func isStorable(_ id: UnsafeRawBufferPointer) -> Bool {
    String(validating: id, as: UTF8.self) != nil
      && id.withMemoryRebound(to: UInt8.self) { reasonAgainst($0, maximum: maximumStoredBytes) } == nil
  }
}
