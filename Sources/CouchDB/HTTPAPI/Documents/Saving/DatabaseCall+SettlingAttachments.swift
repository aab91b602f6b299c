import Blobs
import Bytes
import Documents
import Fleece
import Touchstone
import Views

extension DatabaseCall {
  /// Stores the attachments of a document that are inline in its text, takes stubs from the revision before, and brings all into the
  /// form in which they are stored. `received` are those that came in other parts of the body, in the order of the text.
  ///
  /// Throws 400 for data that can't be read, and 412 for a stub whose attachment isn't known, unless the document is refused or ignored
  /// anyway.
  func settleAttachments(
    of document: inout IncomingDocument, _ text: [UInt8], isForeign: Bool, received: [StoredAttachment] = [],
    _ new: inout NewAttachments
  ) throws {
    guard let range = document.attachments else { return }
    let incoming = try text.withUnsafeBytes { try IncomingAttachments($0, range, request.memory) }
    var known: [ByteString: StoredAttachment]?
    var received = received[...]
    var stored: [StoredAttachment] = []
    var changes: [BlobStandIn.Change] = []
    for entry in incoming.entries {
      var change = isForeign ? BlobStandIn.Change.received : .saved
      switch entry.content {
      case .inline(let data):
        let attachment = try text.withUnsafeBytes {
          try storeInline(entry, UnsafeRawBufferPointer(rebasing: $0[data]), isForeign: isForeign)
        }
        new.claim(attachment)
        stored.append(attachment)
      case .follows:
        guard let next = received.popFirst() else { throw IncomingAttachments.invalidData(entry.name) }
        stored.append(next)
      case .stub(let revpos):
        let before =
          try known
          ?? Dictionary(
            attachmentsBefore(document, isForeign: isForeign).map { (ByteString($0.name), $0) },
            uniquingKeysWith: { first, _ in first })
        known = before
        guard let found = before[ByteString(entry.name)],
          isForeign || revpos.matches(found.revpos)
        else {
          document.decided = try resultOfAnyAttachments(document, isForeign: isForeign)
          if document.decided != nil { return }
          throw CouchDBError(
            412, "missing_stub", "Invalid attachment stub in \(document.id ?? "") for \(entry.name)")
        }
        stored.append(isForeign ? found.received(entry.revpos) : found)
        if !isForeign { change = .none }
      }
      changes.append(change)
    }
    document.replacedBody = try settleStandIns(&stored, changes, body: document.body(text), &new)
    document.storedAttachments = StoredAttachment.stored(stored)
  }

  /// Puts attachments into the blobs for which they stand (`BlobsAsAttachments.settle`). Returns the body if it isn't the same any more.
  func settleStandIns(
    _ attachments: inout [StoredAttachment], _ changes: [BlobStandIn.Change],
    body: @autoclosure () -> [UInt8], _ new: inout NewAttachments
  ) throws -> [UInt8]? {
    let before = attachments
    let settled = try BlobsAsAttachments.settle(&attachments, changes, body: body(), request.memory) {
      try decoded($0, &new)
    }
    // Gzip that no attachment of the document has any more. Others may have the same bytes as the one that was decoded.
    let needed = Set(attachments.map(\.digest))
    for attachment in before where !needed.contains(attachment.digest) { new.release(attachment) }
    return settled
  }

  /// Stores the decoded bytes of a new attachment that came as gzip, whose own bytes stay claimed.
  private func decoded(_ attachment: StoredAttachment, _ new: inout NewAttachments) throws -> StoredAttachment
  {
    let writer = try AttachmentWriter(
      self, name: attachment.name, contentType: attachment.contentType, revpos: attachment.revpos,
      isForeign: true)
    try AttachmentReader(database, attachment).readDecoded { try writer.write($0) }
    let decoded = try writer.finish()
    new.claim(decoded)
    return decoded
  }

  /// What becomes of a document of which an attachment isn't known, if that doesn't matter: an edit conflicts, a revision that was made
  /// elsewhere is here already. Nil otherwise. CouchDB finds that out before it looks at stubs.
  private func resultOfAnyAttachments(_ document: IncomingDocument, isForeign: Bool) throws -> SaveResult? {
    guard let id = document.id else { return nil }
    return try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id) else { return nil }
      if isForeign {
        let revision = try document.foreignHistory()[0]
        let known = try RevisionID(revision).flatMap { try revisions.index(of: $0) }
        return known == nil ? nil : .success(revision)
      }
      guard let base = document.revision else {
        return revisions.document.isDeleted && !document.isDeleted ? nil : .failure(.updateConflict)
      }
      guard let index = try base.id.flatMap({ try revisions.index(of: $0) }), revisions.isLeaf(index) else {
        return .failure(.updateConflict)
      }
      return nil
    }
  }

  private func storeInline(
    _ entry: IncomingAttachments.Entry, _ data: UnsafeRawBufferPointer, isForeign: Bool
  )
    throws -> StoredAttachment
  {
    let writer = try AttachmentWriter(
      self, name: entry.name, contentType: entry.contentType, revpos: isForeign ? entry.revpos : nil,
      isForeign: isForeign)
    guard try Base64Decoder.decode(data, { try writer.write($0) }) else {
      throw IncomingAttachments.invalidData(entry.name)
    }
    return try writer.finish()
  }

  /// The attachments that stubs of a document may refer to: those of the revision that it replaces, or of the nearest of its ancestors
  /// whose body is stored.
  private func attachmentsBefore(_ document: IncomingDocument, isForeign: Bool) throws -> [StoredAttachment] {
    guard let id = document.id else { return [] }
    return try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id) else { return [] }
      let ancestors =
        isForeign
        ? try document.foreignHistory().compactMap { RevisionID($0) }
        : [document.revision?.id].compactMap { $0 }
      for ancestor in ancestors {
        guard let index = try revisions.index(of: ancestor) else { continue }
        let found = try revisions.withBody(index) { try StoredAttachment.all(in: $0, $1) }
        if let found { return found }
      }
      return []
    }
  }
}
