import Documents
import Fleece
import Replication

/// A document as a server of the CouchDB family sends it: what its members with an underscore say, and the others.
struct WireDocument: Sendable {
  var id = ""
  /// The revision and its ancestors, the newest first. Not empty.
  var history: [String] = []
  var isDeleted = false
  var attachments: JSONObject?
  /// The members without an underscore, with the brace before them and commas between them.
  private(set) var members: [UInt8] = []

  var revision: String { history.first ?? "" }

  /// Reads an object. Throws if it isn't one, or has no ID or revision.
  init(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) throws {
    var scanner = JSONScanner(text, range, invalid: Self.invalid)
    var revision: String?
    members.reserveCapacity(range.count)
    members.append(UInt8(ascii: "{"))
    var start: Int?
    var end = 0
    // Members that follow each other are copied at once.
    func flush(_ members: inout [UInt8]) {
      guard let first = start else { return }
      if members.count > 1 { members.append(UInt8(ascii: ",")) }
      members.append(contentsOf: text[first..<end])
      start = nil
    }
    try scanner.object { scanner, member in
      let value = try scanner.value()
      let first = member.name.isEmpty ? 0 : text[member.name.lowerBound]
      var name: String?
      if first == UInt8(ascii: "_") || member.isEscaped {
        name = try Self.string(member.name.lowerBound - 1..<member.name.upperBound + 1, text)
      }
      guard let name, name.utf8.first == UInt8(ascii: "_") else {
        if start == nil { start = member.start }
        end = value.upperBound
        return
      }
      flush(&members)
      switch name {
      case "_id": id = try Self.string(value, text)
      case "_rev": revision = try Self.string(value, text)
      case "_deleted": isDeleted = text[value.lowerBound] == UInt8(ascii: "t")
      case "_revisions": history = try Self.history(Self.value(value, text))
      case "_attachments":
        guard let object = try Self.value(value, text).object else { throw Self.invalid }
        attachments = object.isEmpty ? nil : object
      // What belongs to the protocol, now or later.
      default: break
      }
    }
    try scanner.finish()
    flush(&members)
    if let revision, history.first.map({ !$0.hasSameBytes(as: revision) }) ?? true { history = [revision] }
    guard !id.isEmpty, let first = history.first, RevisionID(first) != nil else { throw Self.invalid }
  }

  static let invalid = ReplicationError.malformed("a document of an answer can't be read")

  static func value(_ range: Range<Int>, _ text: UnsafeRawBufferPointer) throws -> JSONValue {
    do throws(FleeceError) { return try JSONValue(json: UnsafeRawBufferPointer(rebasing: text[range])) } catch
    {
      throw invalid
    }
  }

  static func string(_ range: Range<Int>, _ text: UnsafeRawBufferPointer) throws -> String {
    guard let string = try value(range, text).string else { throw invalid }
    return string
  }

  private static func history(_ value: JSONValue) throws -> [String] {
    guard let start = value["start"].uint, let ids = value["ids"].array, start > 0,
      start <= UInt64(Int64.max),
      UInt64(ids.count) <= start
    else { throw invalid }
    return try ids.enumerated().map { index, id in
      guard let suffix = id.string else { throw invalid }
      return "\(start - UInt64(index))-\(suffix)"
    }
  }

  /// The history as far as it is needed: up to a revision that is known here, or with so many ancestors.
  func shortHistory(_ known: [String], _ maximum: Int) -> [String] {
    if let place = history.firstIndex(where: { revision in known.contains { $0.hasSameBytes(as: revision) } })
    {
      return Array(history[...place].prefix(maximum)) + (place >= maximum ? [history[place]] : [])
    }
    return history.count > maximum + 1 ? Array(history.prefix(maximum + 1)) : history
  }

  /// The body as it is stored, with these attachments.
  func body(_ attachments: JSONObject?) throws -> [UInt8] {
    var body = members
    if let attachments, !attachments.isEmpty {
      if body.count > 1 { body.append(UInt8(ascii: ",")) }
      body.append(contentsOf: "\"_attachments\":".utf8)
      body += try WireBody.text(.object(attachments))
    }
    body.append(UInt8(ascii: "}"))
    return body
  }
}
