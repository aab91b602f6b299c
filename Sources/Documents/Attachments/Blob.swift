// A reference to a blob in a document, in one of two forms:
//
//   anywhere     {"@type":"blob","digest":"sha1-…","length":n,"content_type":"…"}
//   _attachments {name: {"stub":true,"digest":"sha1-…","length":n,"content_type":"…","revpos":g,
//                        "encoding":"gzip","encoded_length":n}}                       the last two when encoded

import Blobs
import Fleece

/// A document's reference to a blob: its digest, its length and its content type.
///
/// The bytes are in the database. `Database.open(_:)` and `Database.contents(of:limit:)` read them.
public struct Blob: Sendable, Hashable {
  /// The property that distinguishes blobs from other objects, and its value.
  static let typeProperty = "@type"
  static let type = "blob"

  /// The SHA-1 digest of the stored bytes.
  public let digest: BlobDigest
  /// The length in bytes.
  public let length: UInt64
  /// The MIME type, if known.
  public let contentType: String?

  /// Creates a reference to a blob that is stored already, or that will be stored when a document is saved
  /// with it.
  public init(digest: BlobDigest, length: UInt64, contentType: String? = nil) {
    self.digest = digest
    self.length = length
    self.contentType = contentType
  }

  /// Parses a blob reference in a document. Nil if the value isn't one. An object without `@type` is a
  /// reference if it has the form of an attachment: with `digest`, `length`, `revpos` and `stub`.
  public init?(_ value: JSONValue) {
    guard let members = value.object, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
    else {
      return nil
    }
    switch members[Blob.typeProperty] {
    case .string(Blob.type)?: break
    case nil:
      guard members["revpos"] != nil, members["stub"] != nil, members["length"] != nil else { return nil }
    default: return nil
    }
    self.init(
      digest: digest, length: members["length"]?.uint ?? 0, contentType: members["content_type"]?.string)
  }

  /// The object that refers to the blob anywhere in a document.
  public var jsonValue: JSONValue {
    var members: JSONObject = [
      Blob.typeProperty: .string(Blob.type), "digest": .string(digest.text), "length": JSONValue(length),
    ]
    if let contentType { members["content_type"] = .string(contentType) }
    return .object(members)
  }
}
