import Blobs
import Bytes
import CCrypto
import CZlib
import Documents
import Fleece
import Replication

/// A revision as it is sent: its text, and its attachments.
struct OutgoingDocument: Sendable {
  /// An attachment of the revision.
  struct Attachment: Sendable {
    let name: String
    let digest: BlobDigest
    let contentType: String
    /// Nil for one that stands for a blob which the other side has: it may have another one there.
    let revpos: UInt64?
    /// The length of the decoded bytes.
    let length: UInt64?
    let isCompressed: Bool
    /// Whether the other side has it with an ancestor.
    let isKnown: Bool
  }

  /// The place among the revisions that are sent together.
  let index: Int
  let id: String
  let revision: String
  /// The text without attachments.
  let text: [UInt8]
  /// In the order of their names.
  let attachments: [Attachment]

  /// `ancestors` are revisions that the other side has. `storedBody` reads one of them here.
  init(
    _ index: Int, _ revision: SyncRevision, _ ancestors: [String],
    storedBody: (_ id: String, _ revision: String) throws -> SyncBody?
  ) throws {
    self.index = index
    id = revision.id
    self.revision = revision.revision
    var json = JSONWriter(capacity: revision.body.byteCount * 2 + 256)
    try Self.append(head: revision.id, revision.history, isDeleted: revision.isDeleted, to: &json)
    guard revision.body.mightNameBlob else {
      attachments = []
      text = Self.whole(&json, try revision.body.json(canonical: false))
      return
    }
    var value = try revision.body.value()
    let blobs = WireBody.addStandIns(
      to: &value, generation: RevisionID(revision.revision)?.generation ?? 1)
    guard case .object(var members) = value,
      case .object(let entries)? = members.removeValue(forKey: WireBody.attachments)
    else {
      attachments = []
      text = Self.whole(&json, try revision.body.json(canonical: false))
      return
    }
    let ancestor = Self.knownAncestor(revision, ancestors)
    // What the other side has is what that ancestor has here: a merge may have taken attachments of another branch.
    let older = try ancestor.flatMap { try storedBody(revision.id, $0) }?.value()
    let knownBlobs = older.map { WireBody.standIns(of: $0) } ?? [:]
    let knownEntries = older?[WireBody.attachments].object ?? [:]
    var found: [Attachment] = []
    for name in entries.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
      guard let entry = entries[name], let digest = entry["digest"].string.flatMap({ BlobDigest($0) }) else {
        continue
      }
      let revpos = entry["revpos"].uint ?? RevisionID(revision.revision)?.generation ?? 1
      // What stood for a blob may be an attachment of its own now.
      let isKnownBlob =
        blobs[name] != nil && (knownBlobs[name].map { $0["digest"] == entry["digest"] } ?? false)
      let isKnown = knownEntries[name] == .some(entry)
      found.append(
        Attachment(
          name: name, digest: digest, contentType: entry["content_type"].string ?? "application/octet-stream",
          revpos: isKnownBlob ? nil : revpos, length: entry["length"].uint,
          isCompressed: entry["encoding"].string == "gzip",
          isKnown: isKnownBlob || isKnown))
    }
    attachments = found
    text = Self.whole(&json, try WireBody.text(.object(members)))
  }

  /// A tombstone that ends the branch of a revision, the same one whoever makes it. It is no answer's.
  init?(closing revision: String, of id: String) {
    guard let parsed = RevisionID(revision) else { return nil }
    let text = Array("\(id)\u{0}\(revision)".utf8)
    var digest = [UInt8](repeating: 0, count: 20)
    guard EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil) == 1 else { return nil }
    var tombstone = SyncRevision(
      id: id, history: ["\(parsed.generation + 1)-\(Hex.text(digest))", revision], isDeleted: true,
      body: .json(Array("{}".utf8)))
    tombstone.replaces = nil
    guard let made = try? OutgoingDocument(Self.unanswered, tombstone, [], storedBody: { _, _ in nil }) else {
      return nil
    }
    self = made
  }

  /// A document of another server without attachments, as that has it.
  init(_ index: Int, relaying document: WireDocument) throws {
    self.index = index
    id = document.id
    revision = document.revision
    attachments = []
    var json = JSONWriter(capacity: 256)
    try Self.append(
      head: document.id, document.history, isDeleted: document.isDeleted, to: &json)
    text = Self.whole(&json, try document.body(nil))
  }

  /// The place of what nobody waits for.
  static let unanswered = -1

  /// The newest ancestor that the other side has.
  private static func knownAncestor(_ revision: SyncRevision, _ ancestors: [String]) -> String? {
    revision.history.dropFirst().first { id in ancestors.contains { $0.hasSameBytes(as: id) } }
  }

  private static func append(
    head id: String, _ ids: [String], isDeleted: Bool, to json: inout JSONWriter
  ) throws {
    json.append(text: "{\"_id\":")
    json.append(string: id)
    json.append(text: ",\"_rev\":")
    json.append(string: ids.first ?? "")
    json.append(text: ",\"_revisions\":{\"start\":")
    let history = try ids.map { id in
      guard let parsed = RevisionID(id) else { throw ReplicationError.malformed("\(id) isn't a revision ID") }
      return parsed
    }
    json.append(history.first?.generation ?? 0)
    json.append(text: ",\"ids\":[")
    for (index, revision) in RevisionHistory.dense(history).enumerated() {
      if index > 0 { json.append(byte: UInt8(ascii: ",")) }
      json.append(string: revision.suffix)
    }
    json.append(text: "]}")
    if isDeleted { json.append(text: ",\"_deleted\":true") }
  }

  /// Appends the members of a body.
  private static func whole(_ json: inout JSONWriter, _ body: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    json.write(to: &text)
    let members = body.dropFirst().drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
    if members.first != UInt8(ascii: "}") { text.append(UInt8(ascii: ",")) }
    text.append(contentsOf: members)
    return text
  }

  // MARK: With attachments

  /// The text with what it says of the attachments. `content` appends the members that say where the bytes are.
  func text(_ content: (Attachment, inout JSONWriter) throws -> Void) rethrows -> [UInt8] {
    var json = JSONWriter(capacity: attachments.count * 160)
    json.append(text: ",\"_attachments\":{")
    for (index, attachment) in attachments.enumerated() {
      if index > 0 { json.append(byte: UInt8(ascii: ",")) }
      json.append(string: attachment.name)
      json.append(text: ":{\"content_type\":")
      json.append(string: attachment.contentType)
      if let revpos = attachment.revpos {
        json.append(text: ",\"revpos\":")
        json.append(revpos)
      }
      try content(attachment, &json)
      json.append(byte: UInt8(ascii: "}"))
    }
    json.append(text: "}}")
    var text = text
    text.removeLast()
    json.write(to: &text)
    return text
  }

  /// The text with all attachments inside, for a server that takes no multipart.
  func inlineText(sendsAll: Bool, _ openBlob: (BlobDigest) throws -> BlobReader) throws -> [UInt8] {
    var rest = DocumentOutbox.maximumInlineBytes
    return try text { attachment, json in
      guard sendsAll || !attachment.isKnown else { return json.append(text: ",\"stub\":true") }
      let reader = try openBlob(attachment.digest)
      let tooLong = ReplicationError(
        .http, 413, "the other side takes no multipart, and the attachments are too long")
      guard reader.length <= rest, attachment.length ?? 0 <= rest else { throw tooLong }
      var bytes = try reader.read(upTo: Int(reader.length))
      if attachment.isCompressed {
        guard let decoded = Self.decoded(bytes, Int(attachment.length ?? rest)) else {
          throw ReplicationError(.http, 400, "the attachment \(attachment.name) isn't gzip of its length")
        }
        bytes = decoded
      }
      rest -= min(rest, UInt64(bytes.count))
      json.append(text: ",\"data\":")
      bytes.withUnsafeBytes { json.append(base64: $0) }
    }
  }

  /// Decodes gzip of at most `limit` bytes, of one member or several (RFC 1952, 2.2); nil if it is longer, or none.
  private static func decoded(_ bytes: [UInt8], _ limit: Int) -> [UInt8]? {
    var stream = z_stream()
    guard inflateInit2_(&stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      return nil
    }
    defer { inflateEnd(&stream) }
    var (input, output) = (bytes, [UInt8](repeating: 0, count: limit + 1))
    let isWhole = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(clamping: input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(clamping: output.count)
        while inflate(&stream, Z_FINISH) == Z_STREAM_END {
          if stream.avail_in == 0 { return true }
          guard inflateReset(&stream) == Z_OK else { return false }
        }
        return false
      }
    }
    let count = output.count - Int(stream.avail_out)
    guard isWhole, count <= limit else { return nil }
    output.removeLast(output.count - count)
    return output
  }
}
