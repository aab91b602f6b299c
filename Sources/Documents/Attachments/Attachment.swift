import Fleece
import Storage

/// A named attachment of a document: a blob in the shape of Couchbase Lite 1.x, under `_attachments`.
public struct Attachment: Sendable, Hashable {
  /// The reserved property that holds them.
  public static let property = "_attachments"

  /// Its bytes, as stored.
  public let blob: Blob
  /// The generation of the revision that added or changed it; 0 of one that isn't saved yet.
  public let revpos: UInt64
  /// How the stored bytes are encoded: `gzip`, or nil when they are as they are. Then the blob's length is that of
  /// the decoded bytes.
  public let encoding: String?

  /// The attachment that a member of `_attachments` stands for; nil when it can't be one.
  public init?(_ value: JSONValue) {
    guard let members = value.object, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
    else {
      return nil
    }
    blob = Blob(
      digest: digest, length: members["length"]?.uint ?? 0, contentType: members["content_type"]?.string)
    revpos = members["revpos"]?.uint ?? 0
    encoding = members["encoding"]?.string
  }

  /// What stands for a new attachment until it is saved: without `revpos`, which the save knows.
  static func unsaved(_ blob: Blob) -> JSONValue {
    var members: JSONObject = [
      "stub": true, "digest": .string(blob.digest.text), "length": JSONValue(blob.length),
    ]
    if let contentType = blob.contentType { members["content_type"] = .string(contentType) }
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
  /// The names of the document's attachments, in the order of their bytes.
  public var attachmentNames: [String] { attachments.keys.sorted().map(\.string) }

  /// The document's attachments by name: names are different when their bytes are.
  public var attachments: [ByteString: Attachment] {
    Attachment.all(in: try? self[Attachment.property].jsonValue())
  }

  /// The attachment of that name, or nil.
  public func attachment(_ name: String) -> Attachment? {
    (try? self[Attachment.property][name].jsonValue()).flatMap { Attachment($0) }
  }
}

extension MutableDocument {
  /// The names of the document's attachments, in the order of their bytes.
  public var attachmentNames: [String] { attachments.keys.sorted().map(\.string) }

  /// The document's attachments by name: names are different when their bytes are.
  public var attachments: [ByteString: Attachment] { Attachment.all(in: body.object?[Attachment.property]) }

  /// The attachment of that name, or nil.
  public func attachment(_ name: String) -> Attachment? {
    body.object?[Attachment.property]?.object?[name].flatMap { Attachment($0) }
  }

  /// Adds a blob as the attachment of that name, or puts it in the place of the one that is there.
  public mutating func setAttachment(_ name: String, _ blob: Blob) {
    body[Attachment.property][name] = Attachment.unsaved(blob)
  }

  /// Takes the attachment of that name away. Its bytes stay as long as a revision names them.
  public mutating func removeAttachment(_ name: String) {
    guard body.object?[Attachment.property] != nil else { return }
    body[Attachment.property].remove(name)
    if body[Attachment.property].count == 0 { body.remove(Attachment.property) }
  }
}
