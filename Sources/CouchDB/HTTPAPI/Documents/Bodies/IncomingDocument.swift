import Bytes
import Documents
import Fleece
import Views

/// A document that a client sends: what its members with an underscore say, and where the others are in the text.
struct IncomingDocument: Sendable {
  /// `_id`.
  var id: String?
  /// `_rev`.
  var revision: Revision?
  /// `_revisions`: the revision and its ancestors, the newest first.
  var history: [String] = []
  /// `_deleted`.
  var isDeleted = false
  /// Where the value of `_attachments` is, an object.
  var attachments: Range<Int>?
  /// Where the members without an underscore are, with the commas between them.
  private(set) var members: [Range<Int>] = []
  /// The length of the body without attachments and other members with an underscore, in bytes.
  var byteCount: Int { members.reduce(max(2, members.count + 1)) { $0 + $1.count } }
  /// Whether the attachments keep their `revpos`, as in a copy.
  var keepsGenerations = false
  /// The attachments as they are stored: the JSON of an object. Empty if there are none.
  var storedAttachments: [UInt8] = []
  /// Members that the server adds: JSON without braces. Empty if there are none.
  var addedMembers: [UInt8] = []
  /// The body without members with an underscore where it isn't that of the text: a JSON object.
  var replacedBody: [UInt8]?
  /// What becomes of it whatever its attachments are, of which some aren't known; nil if that isn't decided.
  var decided: SaveResult?

  /// `_rev`: the revision that a client has seen. The generation may be 0, of local documents.
  struct Revision: Sendable, Equatable {
    var text: String
    var generation: UInt64
    /// Nil for generation 0, and for what CouchDB takes and no database here has: a suffix that is too long or not of visible ASCII.
    var id: RevisionID?

    /// Throws 400 if the text isn't a number, a hyphen and a suffix.
    init(_ text: String) throws {
      self.text = text
      if let id = RevisionID(text) {
        self.id = id
        generation = id.generation
        return
      }
      let parts = text.utf8.split(
        separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy({ $0 &- 0x30 < 10 }) else {
        throw CouchDBError.invalidRevision
      }
      generation = UInt64(Substring(parts[0])) ?? .max
    }

    static func == (left: Revision, right: Revision) -> Bool { left.text.hasSameBytes(as: right.text) }
  }

  /// Reads the object that comes next. Throws 400, as CouchDB does, if it isn't one, or if a member with an underscore is wrong.
  init(_ scanner: inout JSONScanner, _ memory: RequestMemory?) throws {
    guard scanner.kind == UInt8(ascii: "{") else {
      _ = try JSONScanner.parse(scanner.value(), in: scanner.text, memory)
      throw CouchDBError(400, "bad_request", "Document must be a JSON object")
    }
    let text = scanner.text
    /// The last member was taken into the last range of `members`.
    var extends = false
    try scanner.object { scanner, member in
      let value = try scanner.value()
      let first = member.name.isEmpty ? 0 : text[member.name.lowerBound]
      guard first == UInt8(ascii: "_") || first == UInt8(ascii: "\\") else {
        keep(member.start..<value.upperBound, &extends)
        return
      }
      let name = try JSONScanner.name(member, in: text)
      guard name.utf8.first == UInt8(ascii: "_") else {
        keep(member.start..<value.upperBound, &extends)
        return
      }
      // What a replication says of itself is a member like others, as in CouchDB.
      guard !ReplicatorDocument.stateMembers.contains(where: { $0.hasSameBytes(as: name) }) else {
        keep(member.start..<value.upperBound, &extends)
        return
      }
      extends = false
      try memory?.hold(MemoryLayout<Range<Int>>.size * 3)
      try take(name, value, text, memory)
    }
  }

  private mutating func keep(_ member: Range<Int>, _ extends: inout Bool) {
    if extends {
      members[members.count - 1] = members[members.count - 1].lowerBound..<member.upperBound
    } else {
      members.append(member)
      extends = true
    }
  }

  private mutating func take(
    _ name: String, _ range: Range<Int>, _ text: UnsafeRawBufferPointer, _ memory: RequestMemory?
  ) throws {
    switch name {
    case "_attachments":
      guard text[range.lowerBound] == UInt8(ascii: "{") else { throw Self.badMember(name) }
      attachments = range
    case "_id":
      guard let id = try JSONScanner.parse(range, in: text, memory).string else {
        throw CouchDBError(400, "illegal_docid", "Document id must be a string")
      }
      self.id = id
    case "_rev":
      guard let revision = try JSONScanner.parse(range, in: text, memory).string else {
        throw CouchDBError.invalidRevision
      }
      self.revision = try Revision(revision)
    case "_deleted":
      guard let value = try JSONScanner.parse(range, in: text, memory).bool else {
        throw Self.badMember(name)
      }
      isDeleted = value
    case "_revisions": history = try Self.history(JSONScanner.parse(range, in: text, memory))
    case "_revs_info", "_local_seq", "_conflicts", "_deleted_conflicts":
      _ = try JSONScanner.parse(range, in: text, memory)
    default: throw Self.badMember(name)
    }
  }

  private static func badMember(_ name: String) -> CouchDBError {
    CouchDBError(400, "doc_validation", "Bad special document member: \(name)")
  }

  private static func history(_ value: JSONValue) throws -> [String] {
    guard value.object != nil else { throw badMember("_revisions") }
    guard let start = value.object?["start"]?.uint else {
      throw CouchDBError(400, "doc_validation", "_revisions.start isn't an integer.")
    }
    guard let ids = value.object?["ids"]?.array else {
      throw CouchDBError(400, "doc_validation", "_revisions.ids isn't a array.")
    }
    // CouchDB's replicator sends that of local documents.
    guard start > 0 else { return [] }
    // More of them than generations, and suffixes that can't be stored, refuse their document when it is stored.
    return try ids.enumerated().map { index, id in
      guard let suffix = id.string else { throw CouchDBError(400, "doc_validation", "RevId isn't a string") }
      return "\(start - min(UInt64(index), start))-\(suffix)"
    }
  }

  /// Appends the body as it is stored: the members without an underscore, and the attachments.
  func appendBody(_ text: [UInt8], to body: inout [UInt8]) {
    body.append(UInt8(ascii: "{"))
    if let replacedBody {
      body.append(contentsOf: replacedBody.dropFirst().dropLast())
    } else {
      for (index, range) in members.enumerated() {
        if index > 0 { body.append(UInt8(ascii: ",")) }
        body.append(contentsOf: text[range])
      }
    }
    if !addedMembers.isEmpty {
      if !members.isEmpty { body.append(UInt8(ascii: ",")) }
      body.append(contentsOf: addedMembers)
    }
    if !storedAttachments.isEmpty {
      if !members.isEmpty || !addedMembers.isEmpty { body.append(UInt8(ascii: ",")) }
      body.append(contentsOf: "\"_attachments\":".utf8)
      body.append(contentsOf: storedAttachments)
    }
    body.append(UInt8(ascii: "}"))
  }

  /// The body as it is stored.
  func body(_ text: [UInt8]) -> [UInt8] {
    var body: [UInt8] = []
    appendBody(text, to: &body)
    return body
  }

  /// The revisions of a document that was made elsewhere, the newest first. Throws 400 if it names none. Where `_rev` and `_revisions`
  /// disagree, the latter counts.
  func foreignHistory() throws -> [String] {
    if !history.isEmpty { return history }
    guard let revision, revision.generation > 0 else {
      throw CouchDBError(
        400, "bad_request", "When `new_edits: false`, the document needs `_rev` or `_revisions` specified")
    }
    return [revision.text]
  }
}

extension CouchDBError {
  static let invalidRevision = CouchDBError(400, "bad_request", "Invalid rev format")
  static let updateConflict = CouchDBError(409, "conflict", "Document update conflict.")
  static let missing = CouchDBError(404, "not_found", "missing")
  static let deleted = CouchDBError(404, "not_found", "deleted")
}

/// What CouchDB demands of a document's ID.
enum IncomingID {
  static let localPrefix = "_local/"
  static let designPrefix = "_design/"

  /// Throws 400 if a document can't be saved under that ID.
  static func check(_ id: String) throws {
    func illegal(_ reason: String) -> CouchDBError { CouchDBError(400, "illegal_docid", reason) }
    guard !id.utf8.isEmpty else { throw illegal("Document id must not be empty") }
    guard id.utf8.first == UInt8(ascii: "_") else { return }
    for prefix in [designPrefix, localPrefix] where id.utf8.starts(with: prefix.utf8) {
      guard id.utf8.count > prefix.utf8.count else { throw illegal("Illegal document id `\(prefix)`") }
      return
    }
    throw illegal("Only reserved document ids may start with underscore.")
  }

  /// Whether it is the ID of a local document.
  static func isLocal(_ id: String) -> Bool { id.utf8.starts(with: localPrefix.utf8) }

  /// Whether it is the ID of a design document.
  static func isDesign(_ id: String) -> Bool { id.utf8.starts(with: designPrefix.utf8) }
}
