import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// A line of `export --metadata` without its ID: a body and what is said of the revision.
struct ExportedDocument {
  private var body: JSONValue
  private let revision: RevisionID?
  private let isDeleted: Bool

  /// Nil when the JSON has none of the outermost properties `_rev`, `_sequence` and `_deleted`. Throws a
  /// `UsageError` when one of them isn't what it should be.
  init?(_ json: UnsafeRawBufferPointer) throws {
    // The common line has no such name and isn't parsed here.
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
      guard let revision = RevisionID(text) else { throw UsageError("_rev '\(text)' is no revision ID") }
      self.revision = revision
    default: throw UsageError("_rev is not a string")
    }
    switch self.body.remove("_deleted") {
    case nil: isDeleted = false
    case .bool(let value)?: isDeleted = value
    default: throw UsageError("_deleted is neither true nor false")
    }
    self.body.remove("_sequence")
  }

  /// Saves it: as the revision that it was when there is no such document, on top of what is there otherwise.
  func save(_ id: String, in database: Database) throws {
    let stored = try database.document(id, includeDeleted: true)
    if let revision {
      guard let stored else {
        try database.apply(
          PulledRevision(id: id, history: [revision.description], isDeleted: isDeleted, body: .value(body)))
        return
      }
      if stored.revisionID == revision { return }
    }
    if isDeleted {
      // A tombstone of what never was, or is one already, says nothing new.
      guard let stored, !stored.isDeleted else { return }
      try database.delete(id, keeping: .value(body))
    } else {
      try database.save(id, .value(body))
    }
  }

  /// Whether a quote and an underscore stand side by side anywhere.
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
