import Blobs
import Bytes
import Documents
import Fleece

/// An attachment as it is stored: the blob and what the document says of it (docs/blobs.md).
struct StoredAttachment: Sendable {
  /// The media type of an attachment for which none was given.
  static let defaultType = Attachment.defaultType

  /// The name.
  var name: String
  /// The digest of the stored bytes.
  var digest: BlobDigest
  /// The length of the decoded bytes.
  var length: UInt64
  /// The media type.
  var contentType: String
  /// The generation of the revision that added or changed it; nil before it is saved.
  var revpos: UInt64?
  /// Whether the stored bytes are gzip.
  var isCompressed: Bool
  /// The length of the stored bytes.
  var storedLength: UInt64
  /// Whether it stands for a blob of the document, and isn't stored among the attachments (`BlobsAsAttachments`).
  var isStandIn = false

  /// Appends the entry as it is stored: the name and a stub. `withEncoding`: with how its bytes are encoded.
  func append(to json: inout JSONWriter, withEncoding: Bool = true) {
    json.append(string: name)
    json.append(literal: ":{\"content_type\":")
    json.append(string: contentType)
    if let revpos {
      json.append(literal: ",\"revpos\":")
      json.append(revpos)
    }
    json.append(literal: ",\"digest\":")
    json.append(string: digest.text)
    json.append(literal: ",\"length\":")
    json.append(length)
    json.append(literal: ",\"stub\":true")
    if withEncoding { appendEncoding(to: &json) }
    json.append(literal: "}")
  }

  /// Appends how the stored bytes are encoded, behind other members.
  func appendEncoding(to json: inout JSONWriter) {
    guard isCompressed else { return }
    json.append(literal: ",\"encoding\":\"gzip\",\"encoded_length\":")
    json.append(storedLength)
  }

  /// The JSON of the object of these attachments, as it is stored.
  static func json(_ attachments: [StoredAttachment], withEncoding: Bool = true) -> [UInt8] {
    var json = JSONWriter(capacity: 256)
    json.append(literal: "{")
    for (index, attachment) in attachments.enumerated() {
      if index > 0 { json.append(literal: ",") }
      attachment.append(to: &json, withEncoding: withEncoding)
    }
    json.append(literal: "}")
    var text: [UInt8] = []
    json.write(to: &text)
    return text
  }

  /// The JSON of the object of these attachments as it is stored with their document; empty if there are none.
  static func stored(_ attachments: [StoredAttachment]) -> [UInt8] {
    let own = attachments.filter { !$0.isStandIn }
    return own.isEmpty ? [] : json(own)
  }

  /// The attachments of a body, and what stands for its blobs. Entries without a valid digest are left out.
  static func all(in body: borrowing Value, _ sharedKeys: SharedKeys) throws -> [StoredAttachment] {
    let standIns = BlobsAsAttachments.all(in: body.unsafeValue, sharedKeys)
    guard let entries = body.unsafeValue.value(of: Attachment.property, sharedKeys: sharedKeys) else {
      return standIns
    }
    var found: [StoredAttachment] = []
    for entry in entries.entries {
      guard let name = entry.name(in: sharedKeys),
        let value = try? entry.value.jsonValue(sharedKeys: sharedKeys),
        let attachment = StoredAttachment(name, value)
      else { continue }
      found.append(attachment)
    }
    let names = Set(found.map { ByteString($0.name) })
    return found + standIns.filter { !names.contains(ByteString($0.name)) }
  }

  private init?(_ name: String, _ value: JSONValue) {
    guard let members = value.object, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
    else {
      return nil
    }
    self.name = name
    self.digest = digest
    length = members["length"]?.uint ?? 0
    contentType = members["content_type"]?.string ?? Self.defaultType
    revpos = members["revpos"]?.uint
    isCompressed = members["encoding"]?.string == "gzip"
    storedLength = members["encoded_length"]?.uint ?? length
  }

  /// Creates one. See the properties.
  init(
    name: String, digest: BlobDigest, length: UInt64, contentType: String, revpos: UInt64?,
    isCompressed: Bool,
    storedLength: UInt64
  ) {
    self.name = name
    self.digest = digest
    self.length = length
    self.contentType = contentType
    self.revpos = revpos
    self.isCompressed = isCompressed
    self.storedLength = storedLength
  }

  /// The same in a revision that was made elsewhere, which may have the attachment and not the blob any more. `revpos` is what that says.
  func received(_ revpos: UInt64?) -> StoredAttachment {
    guard isStandIn else { return self }
    var received = self
    (received.isStandIn, received.revpos) = (false, revpos)
    return received
  }

  /// The same with the generation of its revision, if it stands for a blob.
  func placed(at generation: UInt64) -> StoredAttachment {
    guard isStandIn else { return self }
    var placed = self
    placed.revpos = generation
    return placed
  }

  /// The media type as the value of a header: without what would end it.
  var headerType: String {
    contentType.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && !contentType.isEmpty
      ? contentType : Self.defaultType
  }
}

extension JSONWriter {
  /// Appends JSON text as it is.
  mutating func append(literal text: StaticString) {
    text.withUTF8Buffer { append(json: UnsafeRawBufferPointer($0)) }
  }

  /// Appends JSON text as it is.
  mutating func append(json text: [UInt8]) { text.withUnsafeBytes { append(json: $0) } }
}
