import Blobs
import Documents
import Fleece
import Storage

/// Copies a source into an empty store, in transactions of a limited size.
final class UpgradeCopy {
  let upgrade: Upgrade
  let store: DocumentStore
  let reader: any SourceReader
  private let attachments: SourceAttachments
  private var plan = SourcePlan()
  private var done = 0
  private var total = 0
  /// The attachment issues of the current document that were already reported.
  private var reported: Set<ByteString> = []
  private var documentBytes = 0
  /// The issue of the current document's new sequences.
  var renumbering: UpgradeIssue?

  /// The limits of a transaction: documents, and bytes of JSON. Each document can bring some pages of a
  /// mapped file into memory, 16 at a time.
  private static let batchDocuments = 1_000
  private static let batchBytes = 16 << 20

  init(_ upgrade: Upgrade, _ store: DocumentStore) throws {
    self.upgrade = upgrade
    self.store = store
    reader = try upgrade.source.makeReader()
    attachments = try SourceAttachments(upgrade.source, store)
  }

  /// Copies everything. Returns the number of attachment files that no revision names.
  func run() throws -> Int {
    defer { reader.close() }
    total = try reader.documentCount()
    var isMore = true
    while isMore {
      isMore = try store.importing { target in
        var bytes = 0
        for _ in 0..<Self.batchDocuments {
          guard try reader.next(noteSkipped) else { return false }
          documentBytes = 0
          try carryDocument(target)
          bytes += documentBytes
          done += 1
          if done % 512 == 0 { try upgrade.tell(.copying, done, total) }
          if bytes >= Self.batchBytes { break }
        }
        return true
      }
    }
    try carryExtras()
    upgrade.report.attachments = attachments.counts
    try upgrade.tell(.copying, done, total)
    return attachments.unusedFiles
  }

  private func noteSkipped(_ skipped: SkippedOfSource) throws {
    switch skipped {
    case .orphan(let sequence, let revisionID, let hasBody):
      upgrade.report.revisions.add(\.skipped)
      if hasBody { upgrade.report.bodies.add(\.skipped) }
      try upgrade.note(
        UpgradeIssue(
          .orphanRevision, revisionID: String(revisionID.prefix(300)),
          "its document doesn't exist (sequence \(sequence))"))
    case .damaged(let id, let reason):
      upgrade.report.documents.add(\.skipped)
      try upgrade.note(
        UpgradeIssue(
          .damagedRecord, documentID: id.map { String(decoding: $0.prefix(500), as: UTF8.self) },
          "it can't be read: \(reason)"))
    }
  }

  // MARK: A document

  private func carryDocument(_ target: DocumentImport) throws {
    if !reported.isEmpty { reported.removeAll() }
    renumbering = nil
    let isReserved =
      reader.documentID.first == UInt8(ascii: "_")
      && !reader.documentID.withMemoryRebound(to: UInt8.self) { DocumentID.isOfDesign($0) }
    if isReserved {
      return try skip(
        .reservedDocumentID, "an ID can't begin with an underscore, unless it is a design document's")
    }
    do { try target.begin(reader.documentID) } catch let error as DocumentError
      where error.code == .invalidDocumentID
    { return try skip(.invalidDocumentID, error.message) }
    guard !reader.revisions.rows.isEmpty else { return try skip(.noRevision, "it has no revision") }
    if !upgrade.source.hasUniqueSequences { try settleSequences(target) }
    try plan.decide(reader, upgrade.options.carry) { row in
      do { _ = try reader.withBody(row) { try encode($0, target) } } catch let error as DocumentError
        where error.code == .invalidBody
      { return error.message }
      return nil
    }
    guard plan.revisions > 0 else { return try skipUnreadable() }
    let rows = reader.revisions.rows
    for (index, row) in rows.enumerated() where row.isCarried {
      let parent = row.parent >= 0 && rows[row.parent].isCarried ? rows[row.parent].number : -1
      let isAdded = reader.revisions.withID(index) {
        target.add(
          $0, parent: parent, sequence: UInt64(row.sequence), isDeleted: row.isDeleted, isLeaf: row.isLeaf,
          hasBody: row.isLeaf || row.hasBody)
      }
      guard isAdded else {
        throw StorageError(.engineFailure, "the revision \(reader.revisions.id(index)) was refused")
      }
    }
    var carriedBodies = 0
    let isNew: Bool
    do {
      isNew = try target.finish { sequence in
        let body = try encode(Int(sequence), target)
        if body != nil { carriedBodies += 1 }
        return body
      }
    } catch let error as UnreadableLeaf {
      plan.refuse(reader, error.row, error.reason)
      return try skipUnreadable()
    }
    guard isNew else {
      upgrade.duplicates.insert(reader.number)
      return try skip(.duplicateDocument, "another document has this ID")
    }
    count(carriedBodies)
    for issue in plan.issues { try upgrade.note(issue) }
    if let renumbering { try upgrade.note(renumbering) }
    if upgrade.options.carry == .full {
      for (row, reason) in reader.damagedBodies where reader.revisions.rows[row].isCarried {
        try upgrade.note(
          UpgradeIssue(
            .unreadableOldBody, documentID: reader.documentName, revisionID: reader.revisions.id(row),
            "its body can't be read (\(reason)); only its ID is carried over"))
      }
    }
    try carryExpiration(target)
  }

  /// The body of the only leaf can't be read.
  private struct UnreadableLeaf: Error {
    let row: Int
    let reason: String
  }

  /// Encodes the body of a revision with its attachments. Returns nil if the body of a replaced revision
  /// can't be read.
  private func encode(_ sequence: Int, _ target: DocumentImport) throws -> EncodedBody? {
    guard let index = reader.revisions.find(sequence) else { return nil }
    let row = reader.revisions.rows[index]
    let body: EncodedBody
    do {
      body = try reader.withBody(index) { json in
        documentBytes += json.count
        return try encode(json, target)
      }
    } catch let error as DocumentError where error.code == .invalidBody {
      guard !row.isLeaf else { throw UnreadableLeaf(row: index, reason: error.message) }
      try upgrade.note(
        UpgradeIssue(
          .unreadableOldBody, documentID: reader.documentName, revisionID: reader.revisions.id(index),
          "its body can't be read (\(error.message)); only its ID is carried over"))
      return nil
    }
    return body.hasReservedNames ? try carryAttachments(of: body, row.generation, index, target) : body
  }

  private func encode(_ json: UnsafeRawBufferPointer, _ target: DocumentImport) throws -> EncodedBody {
    if let reason = upgrade.source.refusal(of: json) { throw DocumentError(.invalidBody, reason) }
    return try target.encode(json: json)
  }

  // MARK: Attachments

  /// Returns the body with its attachments in their stored form.
  private func carryAttachments(
    of encoded: EncodedBody, _ generation: UInt64, _ row: Int, _ target: DocumentImport
  ) throws -> EncodedBody {
    let keys = target.sharedKeys
    guard let root = encoded.root,
      let found = root.value(of: SourceAttachmentEntry.property, sharedKeys: keys)
    else { return encoded }
    guard found.type == .dict else {
      try note(.invalidAttachment, row, nil, "_attachments isn't an object; it is carried over unchanged")
      return encoded
    }
    var entries: [SourceAttachmentEntry] = []
    for entry in found.entries {
      entries.append(SourceAttachmentEntry(entry.name(in: keys) ?? "", entry.value, keys))
    }
    var isAsStored = true
    for entry in entries {
      guard let stored = entry.stored else {
        try note(.invalidAttachment, row, entry.name, "it has no SHA-1 digest; it is carried over unchanged")
        continue
      }
      let outcome = try attachments.carry(stored, limit: entry.limit)
      if !entry.isAsStored { isAsStored = false }
      switch outcome {
      case .missing:
        try note(.missingAttachment, row, entry.name, "its file is missing (\(stored.digest))")
      case .damaged(let reason):
        try note(.damagedAttachment, row, entry.name, "\(reason) (\(stored.digest))")
      default: break
      }
    }
    guard !isAsStored else { return encoded }
    let body: JSONValue
    do { body = try root.jsonValue(sharedKeys: keys) } catch {
      throw StorageError(.engineFailure, "a body that was just encoded can't be read: \(error)")
    }
    return try target.encode(
      SourceAttachmentEntry.settled(body, generation: generation) { entry in
        try entry.stored.map { try attachments.carry($0, limit: entry.limit) }
      })
  }

  /// Reports an issue of an attachment once per document, however many revisions have the attachment.
  private func note(
    _ kind: UpgradeIssue.Kind, _ row: Int, _ name: String?, _ message: String
  ) throws {
    guard reported.insert(ByteString("\(name ?? "")\u{0}\(message)")).inserted else { return }
    try upgrade.note(
      UpgradeIssue(
        kind, documentID: reader.documentName, revisionID: reader.revisions.id(row), attachment: name, message
      ))
  }

  // MARK: Counts

  private func count(_ carriedBodies: Int) {
    let rows = reader.revisions.rows
    let isFull = upgrade.options.carry == .full
    upgrade.report.documents.add(\.carried)
    if plan.liveLeaves == 0 { upgrade.report.tombstones.add(\.carried) }
    upgrade.report.revisions.add(\.carried, plan.revisions)
    upgrade.report.revisions.add(\.unwanted, plan.unwanted)
    upgrade.report.revisions.add(\.skipped, rows.count - plan.revisions - plan.unwanted)
    upgrade.report.bodyBytes += documentBytes
    if plan.sourceLiveLeaves > 1 { upgrade.report.conflicts.add(isFull ? \.carried : \.unwanted) }
    upgrade.report.bodies.add(\.carried, carriedBodies)
    // A leaf without a body gets an empty body.
    let left = max(0, plan.sourceBodies - carriedBodies)
    upgrade.report.bodies.add(isFull ? \.skipped : \.unwanted, left)
  }

  private func skipUnreadable() throws {
    for issue in plan.issues { try upgrade.note(issue) }
    try skip(.noRevision, "none of its revisions can be carried over")
  }

  private func skip(_ kind: UpgradeIssue.Kind, _ message: String) throws {
    let rows = reader.revisions.rows
    let isTombstone = !rows.isEmpty && !rows.contains { $0.isCurrent && !$0.isDeleted }
    upgrade.report.documents.add(\.skipped)
    if isTombstone { upgrade.report.tombstones.add(\.skipped) }
    upgrade.report.revisions.add(\.skipped, rows.count)
    upgrade.report.bodies.add(\.skipped, rows.count { $0.hasBody })
    try upgrade.note(UpgradeIssue(kind, documentID: reader.documentName, message))
  }
}
