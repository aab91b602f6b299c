import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// One line of `export --metadata`, without its ID: a body and the metadata of its revision.
struct ExportedDocument {
  private var body: JSONValue
  private let revision: RevisionID?
  private let isDeleted: Bool

  /// Parses a line. Nil if the JSON has none of the top-level properties `_rev`, `_sequence` and `_deleted`.
  /// Throws a `UsageError` if one of them is invalid.
  init?(_ json: UnsafeRawBufferPointer) throws {
    // Most lines have no such name and aren't parsed here.
    guard Self.mayHaveMetadata(json), let body = try? JSONValue(json: json), let members = body.object else {
      return nil
    }
    self.body = body
    guard members["_rev"] != nil || members["_sequence"] != nil || members["_deleted"] != nil else {
      return nil
    }
    switch self.body.remove("_rev") {
    case nil: revision = nil
    case .string(let text)?:
      guard let revision = RevisionID(text) else {
        throw UsageError("the value of _rev, '\(text)', isn't a revision ID")
      }
      self.revision = revision
    default: throw UsageError("the value of _rev isn't a string")
    }
    switch self.body.remove("_deleted") {
    case nil: isDeleted = false
    case .bool(let value)?: isDeleted = value
    default: throw UsageError("the value of _deleted is neither true nor false")
    }
    self.body.remove("_sequence")
  }

  /// Saves the document. If it doesn't exist yet, it gets the exported revision. Otherwise a new revision is
  /// added. Returns false if nothing changed.
  func save(_ id: String, in database: Database) throws -> Bool {
    let stored = try database.document(id, includeDeleted: true)
    if let revision {
      guard let stored else {
        var exported = PulledRevision(
          id: id, history: [revision.description], isDeleted: isDeleted, body: .value(body))
        exported.allowsMissingBlobs = true
        return try database.apply(exported)
      }
      if stored.revisionID == revision { return false }
    }
    if isDeleted {
      // A tombstone for a document that doesn't exist, or is already deleted, changes nothing.
      guard let stored, !stored.isDeleted else { return false }
      try database.delete(id, keeping: .value(body))
    } else {
      try database.save(id, .value(body))
    }
    return true
  }

  /// Whether a quote is followed by an underscore anywhere in the text.
  private static func mayHaveMetadata(_ json: UnsafeRawBufferPointer) -> Bool {
    guard let base = json.baseAddress else { return false }
    var position = 0
    while let found = memchr(base + position, 0x5F, json.count - position) {
      let index = UnsafeRawPointer(found) - base
      if index > 0, json[index - 1] == UInt8(ascii: "\"") { return true }
      position = index + 1
    }
    return false
  }
}
