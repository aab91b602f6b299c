import Bytes
import Documents
import Fleece
import HTTP
import Views

/// The options of requests that read documents.
struct RevisionOptions: Sendable {
  /// Which revisions are asked for.
  enum Choice: Sendable {
    /// The current one.
    case current
    /// One.
    case one(IncomingDocument.Revision)
    /// All leaves.
    case leaves
    /// Several.
    case some([IncomingDocument.Revision])
  }

  var choice = Choice.current
  var revisions = false
  var revisionsInfo = false
  var conflicts = false
  var deletedConflicts = false
  var localSequence = false
  var attachments = false
  /// Revisions that the client has: it wants the attachments that were added since. Nil: all of them.
  var attachmentsSince: [String]?
  var encodingInfo = false
  var latest = false

  init() {}

  /// Throws 400 for a revision or a list that can't be read. Flags are on for `true` only.
  init(_ query: APIQuery) throws {
    let meta = query["meta"] == "true"
    revisions = query["revs"] == "true"
    revisionsInfo = meta || query["revs_info"] == "true"
    conflicts = meta || query["conflicts"] == "true"
    deletedConflicts = meta || query["deleted_conflicts"] == "true"
    localSequence = query["local_seq"] == "true"
    attachments = query["attachments"] == "true"
    encodingInfo = query["att_encoding_info"] == "true"
    latest = query["latest"] == "true"
    if let revision = query["rev"] { choice = .one(try IncomingDocument.Revision(revision)) }
    if query["open_revs"] == "all" {
      choice = .leaves
    } else if let list = try query.json("open_revs") {
      let some = try Self.list(list).map { try IncomingDocument.Revision($0) }
      if !some.isEmpty { choice = .some(some) }
    }
    if let list = try query.json("atts_since") {
      // A client that has no revision wants all attachments.
      attachments = true
      try setAttachmentsSince(list)
    }
  }

  /// Asks for the attachments since the revisions of a list. An empty one changes nothing.
  mutating func setAttachmentsSince(_ list: JSONValue) throws {
    let since = try Self.list(list).map { try IncomingDocument.Revision($0).text }
    guard !since.isEmpty else { return }
    attachmentsSince = since
    attachments = true
  }

  private static func list(_ value: JSONValue) throws -> [String] {
    guard let items = value.array else {
      throw CouchDBError(400, "bad_request", "Invalid list of revisions")
    }
    return try items.map {
      guard let text = $0.string else { throw CouchDBError.invalidRevision }
      return text
    }
  }
}
