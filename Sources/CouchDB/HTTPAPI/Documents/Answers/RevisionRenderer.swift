import Blobs
import Bytes
import Documents
import Fleece
import Touchstone
import Views

/// Writes revisions as JSON, with what the options of a request ask for.
struct RevisionRenderer {
  /// What is written of attachments that are asked for.
  enum Mode {
    /// Their bytes as base64.
    case inline
    /// That they follow in other parts.
    case following
  }

  let blobs: BlobStore?
  let options: RevisionOptions
  let mode: Mode

  /// What was written besides the body.
  struct Written {
    /// Whether there is anything that isn't a part of the revision, so that its ID doesn't tag the answer.
    var hasMeta = false
    /// The attachments that follow.
    var following: [StoredAttachment] = []
  }

  init(_ database: Database, _ options: RevisionOptions, _ mode: Mode = .inline) throws {
    blobs = try database.replicating { $0.blobs }
    self.options = options
    self.mode = mode
  }

  /// Writes a revision. Nil, and nothing written, if its body isn't stored. `isCurrent`: it was asked for as the current one.
  func write(
    _ revisions: DocumentRevisions, _ index: Int, isCurrent: Bool, to pieces: inout AnswerPieces
  ) throws -> Written? {
    var written = Written()
    var json = JSONWriter(capacity: 1024)
    json.append(literal: "{\"_id\":")
    json.append(string: revisions.document.id)
    json.append(literal: ",\"_rev\":\"")
    json.append(raw: revisions.id(of: index).description)
    json.append(literal: "\"")
    let attachments = try revisions.withBody(index) { try Self.append(body: $0, $1, to: &json) }
    guard let attachments else { return nil }
    if revisions.isDeleted(index) { json.append(literal: ",\"_deleted\":true") }
    // What is behind a gap that is too long isn't told, so nothing counts as known for it.
    let history =
      options.revisions || options.attachmentsSince != nil ? try revisions.keptHistory(of: index) : []
    if options.revisions { append(history: history, to: &json) }
    if isCurrent { written.hasMeta = try append(meta: revisions, to: &json) }
    pieces.append(json)
    if !attachments.isEmpty {
      let generation = revisions.id(of: index).generation
      try append(
        attachments.map { $0.placed(at: generation) }, history, to: &pieces, &written)
    }
    pieces.append("}")
    return written
  }

  /// Appends the members of a body but for its attachments, which are returned.
  static func append(body: borrowing Value, _ sharedKeys: SharedKeys, to json: inout JSONWriter) throws
    -> [StoredAttachment]
  {
    do throws(FleeceError) {
      guard body.unsafeValue.value(of: Attachment.property, sharedKeys: sharedKeys) != nil else {
        let start = json.count
        try json.append(membersOf: body, sharedKeys: sharedKeys)
        // To look through a body takes longer than to write it, and few have blobs.
        let mayHaveBlobs = json.withBytes {
          BlobsAsAttachments.mayBe(in: UnsafeRawBufferPointer(rebasing: $0[start...]))
        }
        return mayHaveBlobs ? BlobsAsAttachments.all(in: body.unsafeValue, sharedKeys) : []
      }
      for entry in body.unsafeValue.entries {
        guard let name = entry.utf8(in: sharedKeys), !name.elementsEqual(Attachment.property.utf8) else {
          continue
        }
        json.append(literal: ",")
        json.append(string: name)
        json.append(literal: ":")
        try json.append(entry.value, sharedKeys: sharedKeys)
      }
    } catch { throw CouchDBError(500, "internal_server_error", "a stored document can't be read: \(error)") }
    return try StoredAttachment.all(in: body, sharedKeys)
  }

  private func append(history: [RevisionID], to json: inout JSONWriter) {
    guard let first = history.first else { return }
    json.append(literal: ",\"_revisions\":{\"start\":")
    json.append(first.generation)
    json.append(literal: ",\"ids\":[")
    for (position, revision) in history.enumerated() {
      if position > 0 { json.append(literal: ",") }
      json.append(string: revision.suffix)
    }
    json.append(literal: "]}")
  }

  /// Appends what is asked for about the document. Returns whether there is any.
  private func append(meta revisions: DocumentRevisions, to json: inout JSONWriter) throws -> Bool {
    var hasMeta = false
    if options.revisionsInfo {
      json.append(literal: ",\"_revs_info\":[")
      for (position, index) in try revisions.keptAncestry(of: 0).enumerated() {
        if position > 0 { json.append(literal: ",") }
        json.append(literal: "{\"rev\":\"")
        json.append(raw: revisions.id(of: index).description)
        let status =
          revisions.isDeleted(index) ? "deleted" : try revisions.hasBody(index) ? "available" : "missing"
        json.append(literal: "\",\"status\":\"")
        json.append(raw: status)
        json.append(literal: "\"}")
      }
      json.append(literal: "]")
      hasMeta = true
    }
    for (isWanted, name, isDeleted) in [
      (options.conflicts, "_conflicts", false), (options.deletedConflicts, "_deleted_conflicts", true),
    ] where isWanted {
      let others = revisions.leaves.dropFirst().filter { revisions.isDeleted($0) == isDeleted }
      guard !others.isEmpty else { continue }
      json.append(literal: ",\"")
      json.append(raw: name)
      json.append(literal: "\":[")
      for (position, index) in others.enumerated() {
        if position > 0 { json.append(literal: ",") }
        json.append(string: revisions.id(of: index).description)
      }
      json.append(literal: "]")
      hasMeta = true
    }
    if options.localSequence {
      json.append(literal: ",\"_local_seq\":")
      json.append(revisions.document.sequence)
      hasMeta = true
    }
    return hasMeta
  }

  // MARK: Attachments

  private func append(
    _ attachments: [StoredAttachment], _ history: [RevisionID], to pieces: inout AnswerPieces,
    _ written: inout Written
  ) throws {
    // The client has the attachments of this generation and those before.
    var known: UInt64 = 0
    if let since = options.attachmentsSince {
      known = history.first { id in since.contains { $0.hasSameBytes(as: id.description) } }?.generation ?? 0
    }
    pieces.append(",\"_attachments\":{")
    for (position, attachment) in attachments.enumerated() {
      var attachment = attachment
      var json = JSONWriter()
      if position > 0 { json.append(literal: ",") }
      json.append(string: attachment.name)
      json.append(literal: ":{\"content_type\":")
      json.append(string: attachment.contentType)
      json.append(literal: ",\"revpos\":")
      json.append(attachment.revpos ?? 1)
      json.append(literal: ",\"digest\":")
      json.append(string: attachment.digest.text)
      // One whose bytes are missing stays a stub.
      let length = options.attachments ? try blobs?.length(of: attachment.digest) : nil
      guard let length, options.attachmentsSince == nil || (attachment.revpos ?? UInt64.max) > known else {
        json.append(literal: ",\"length\":")
        json.append(attachment.length)
        json.append(literal: ",\"stub\":true")
        // Who gets encoded bytes is told of all encodings.
        if options.encodingInfo || mode == .following { attachment.appendEncoding(to: &json) }
        json.append(literal: "}")
        pieces.append(json)
        continue
      }
      attachment.storedLength = length
      switch mode {
      case .inline:
        json.append(literal: ",\"data\":\"")
        pieces.append(json)
        pieces.append(.base64(attachment))
        json.removeAll()
        json.append(literal: "\"")
        if options.encodingInfo { attachment.appendEncoding(to: &json) }
      case .following:
        json.append(literal: ",\"length\":")
        json.append(attachment.length)
        json.append(literal: ",\"follows\":true")
        attachment.appendEncoding(to: &json)
        written.following.append(attachment)
      }
      json.append(literal: "}")
      pieces.append(json)
    }
    pieces.append("}")
  }
}

extension JSONWriter {
  /// Appends text as it is.
  mutating func append(raw text: String) {
    var text = text
    text.withUTF8 { append(json: UnsafeRawBufferPointer($0)) }
  }
}
