import Bytes
import Documents
import Fleece
import Storage

/// What documents in lists have besides their properties.
package struct CouchDBDocumentOptions: Sendable, Hashable {
  /// The other live leaves: `_conflicts`.
  package var includesConflicts = false
  /// The data of attachments, in base64, instead of stubs.
  package var includesAttachments = false
  /// How attachments are encoded: `encoding` and `encoded_length`.
  package var includesEncodings = false

  package init() {}
}

/// Writes documents of a snapshot as CouchDB shows them in lists: the properties, `_id`, `_rev`, and `_deleted`, `_conflicts`
/// and `_attachments` where there are any. Used on one thread, while the snapshot lasts.
package struct CouchDBDocumentWriter {
  /// Reads the decoded bytes of an attachment, which is an object of `_attachments`.
  package typealias Contents = @Sendable (_ attachment: JSONValue) throws -> [UInt8]

  private let sharedKeys: SharedKeys
  private let options: CouchDBDocumentOptions
  private let contents: Contents?
  private let attachments: Key

  /// Makes a writer. Without `contents`, attachments are stubs.
  package init(
    _ snapshot: DocumentSnapshot, _ options: CouchDBDocumentOptions = .init(), contents: Contents? = nil
  ) throws {
    sharedKeys = try snapshot.sharedKeys
    self.options = options
    self.contents = options.includesAttachments ? contents : nil
    attachments = Key(Attachment.property, in: sharedKeys)
  }

  /// Appends a document or a tombstone with its current revision.
  package func append(_ document: DocumentView, to json: inout JSONWriter) throws {
    guard let body = document.body else { throw Self.damaged(document.idBytes) }
    Self.append("{\"_id\":", to: &json)
    document.idBytes.withUnsafeBytes { json.append(string: $0) }
    Self.append(",\"_rev\":\"", to: &json)
    try json.append { (text: inout ByteBuffer) throws in try document.appendRevisionID(to: &text) }
    json.append(byte: UInt8(ascii: "\""))
    try append(body, isDeleted: document.isDeleted, document.idBytes, to: &json)
    if options.includesConflicts, document.isConflicted {
      Self.append(",\"_conflicts\":[", to: &json)
      for (index, id) in try document.conflictingLeaves().live.enumerated() {
        if index > 0 { json.append(byte: UInt8(ascii: ",")) }
        json.append(string: id.description)
      }
      json.append(byte: UInt8(ascii: "]"))
    }
    json.append(byte: UInt8(ascii: "}"))
  }

  /// Appends a revision that isn't the current one.
  package func append(
    id: RawSpan, _ revisionID: RevisionID, isDeleted: Bool, _ body: Value, to json: inout JSONWriter
  ) throws {
    Self.append("{\"_id\":", to: &json)
    id.withUnsafeBytes { json.append(string: $0) }
    Self.append(",\"_rev\":", to: &json)
    json.append(string: revisionID.description)
    try append(body, isDeleted: isDeleted, id, to: &json)
    json.append(byte: UInt8(ascii: "}"))
  }

  private func append(_ body: Value, isDeleted: Bool, _ id: RawSpan, to json: inout JSONWriter) throws {
    do {
      if let attached = body[attachments], attached.type == .dict {
        try append(body, attached, to: &json)
      } else {
        try json.append(membersOf: body, sharedKeys: sharedKeys)
      }
    } catch let error as FleeceError {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)", documentID: String(copying: id))
    }
    if isDeleted { Self.append(",\"_deleted\":true", to: &json) }
  }

  /// Appends the members of a body with attachments.
  private func append(_ body: Value, _ attached: Value, to json: inout JSONWriter) throws {
    let property = Array(Attachment.property.utf8)
    try body.forEachEntry(sharedKeys) { name, value in
      if name.compare(property.span.bytes) == 0 { return true }
      json.append(byte: UInt8(ascii: ","))
      name.withUnsafeBytes { json.append(string: $0) }
      json.append(byte: UInt8(ascii: ":"))
      try json.append(value.unsafeValue, sharedKeys: sharedKeys)
      return true
    }
    Self.append(",\"_attachments\":", to: &json)
    guard case .object(let members) = try attached.jsonValue(sharedKeys: sharedKeys) else { return }
    json.append(byte: UInt8(ascii: "{"))
    for (index, name) in members.keys.sorted(by: Self.precedes).enumerated() {
      if index > 0 { json.append(byte: UInt8(ascii: ",")) }
      json.append(string: name)
      json.append(byte: UInt8(ascii: ":"))
      try append(attachment: members[name] ?? .null, to: &json)
    }
    json.append(byte: UInt8(ascii: "}"))
  }

  /// The members of attachments that come first, in CouchDB's order.
  private static let order = [
    "content_type", "revpos", "digest", "length", "stub", "data", "encoding", "encoded_length",
  ]

  /// Appends an attachment. The same one is always the same text.
  private func append(attachment value: JSONValue, to json: inout JSONWriter) throws {
    guard case .object(var members) = value else { return try json.append(value) }
    if !options.includesEncodings {
      members["encoding"] = nil
      members["encoded_length"] = nil
    }
    if let contents {
      members["stub"] = nil
      members["length"] = nil
      members["data"] = .data(try contents(value))
    }
    json.append(byte: UInt8(ascii: "{"))
    var isFirst = true
    let others = members.keys.filter { !Self.order.contains($0) }.sorted(by: Self.precedes)
    for name in Self.order + others {
      guard let member = members[name] else { continue }
      if !isFirst { json.append(byte: UInt8(ascii: ",")) }
      isFirst = false
      json.append(string: name)
      json.append(byte: UInt8(ascii: ":"))
      try json.append(member)
    }
    json.append(byte: UInt8(ascii: "}"))
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  private static func append(_ text: StaticString, to json: inout JSONWriter) {
    text.withUTF8Buffer { json.append(json: UnsafeRawBufferPointer($0)) }
  }

  private static func damaged(_ id: RawSpan) -> DocumentError {
    DocumentError(.damaged, "a stored document can't be read", documentID: String(copying: id))
  }
}
