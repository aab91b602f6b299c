import Blobs
import Fleece
import Storage

/// A named attachment of a document: a blob in the format of Couchbase Lite 1.x, under `_attachments`.
public struct Attachment: Sendable, Hashable {
  /// The reserved property that contains the attachments.
  public static let property = "_attachments"
  /// The media type of an attachment for which a client of CouchDB has given none.
  package static let defaultType = "application/octet-stream"

  /// The blob with the attachment's stored bytes.
  public let blob: Blob
  /// The generation of the revision that added or changed it. 0 if it isn't saved yet.
  public let revpos: UInt64
  /// The encoding of the stored bytes: `gzip`, or nil if they aren't encoded. If they are, the blob's length
  /// is the length of the decoded bytes.
  public let encoding: String?

  /// Parses a member of `_attachments`. Nil if it isn't a valid attachment.
  public init?(_ value: JSONValue) {
    guard let members = value.object, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
    else {
      return nil
    }
    blob = Blob(
      digest: digest, length: members["length"]?.uint ?? 0, contentType: members["content_type"]?.string,
      source: members.blobSource)
    revpos = members["revpos"]?.uint ?? 0
    encoding = members["encoding"]?.string
  }

  /// Returns the entry of a new attachment until it is saved. The save adds `revpos`.
  static func unsaved(_ blob: Blob) -> JSONValue {
    var members: JSONObject = [
      "stub": true, "digest": .string(blob.digest.text), "length": JSONValue(blob.length),
    ]
    if let contentType = blob.contentType { members["content_type"] = .string(contentType) }
    if let source = blob.source { members.setContentSource(source) }
    return .object(members)
  }

  static func all(in value: JSONValue?) -> [ByteString: Attachment] {
    var attachments: [ByteString: Attachment] = [:]
    guard let members = value?.object else { return attachments }
    for (name, value) in members {
      if let attachment = Attachment(value) { attachments[ByteString(name)] = attachment }
    }
    return attachments
  }
}

extension Document {
  /// The names of the document's attachments, ordered by their bytes.
  public var attachmentNames: [String] { attachments.keys.sorted().map(\.string) }

  /// The document's attachments by name. Names are compared by their bytes.
  public var attachments: [ByteString: Attachment] {
    Attachment.all(in: try? self[Attachment.property].jsonValue())
  }

  /// Returns the attachment with this name, or nil.
  public func attachment(_ name: String) -> Attachment? {
    (try? self[Attachment.property][name].jsonValue()).flatMap { Attachment($0) }
  }
}

extension MutableDocument {
  /// The names of the document's attachments, ordered by their bytes.
  public var attachmentNames: [String] { attachments.keys.sorted().map(\.string) }

  /// The document's attachments by name. Names are compared by their bytes.
  public var attachments: [ByteString: Attachment] { Attachment.all(in: body.object?[Attachment.property]) }

  /// Returns the attachment with this name, or nil.
  public func attachment(_ name: String) -> Attachment? {
    body.object?[Attachment.property]?.object?[name].flatMap { Attachment($0) }
  }

  /// Sets the attachment with this name, in place of an existing one.
  public mutating func setAttachment(_ name: String, _ blob: Blob) {
    body[Attachment.property][name] = Attachment.unsaved(blob)
  }

  /// Removes the attachment with this name. Its bytes are kept as long as a revision refers to them.
  public mutating func removeAttachment(_ name: String) {
    guard body.object?[Attachment.property] != nil else { return }
    body[Attachment.property].remove(name)
    if body[Attachment.property].count == 0 { body.remove(Attachment.property) }
  }
}
