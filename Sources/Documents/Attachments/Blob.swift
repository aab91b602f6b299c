// A blob as documents name it, in one of two shapes:
//
//   anywhere     {"@type":"blob","digest":"sha1-…","length":n,"content_type":"…"}
//   _attachments {name: {"stub":true,"digest":"sha1-…","length":n,"content_type":"…","revpos":g,
//                        "encoding":"gzip","encoded_length":n}}                       the last two when encoded

@_exported import Blobs
import Fleece

/// What a document says of a blob: where its bytes are found, how many there are, and what they are.
///
/// The bytes are in the database, under the digest: `DocumentStore.open(_:)` and `contents(of:)` give them.
public struct Blob: Sendable, Hashable {
  /// What property tells blobs from other objects, and its value.
  static let typeProperty = "@type"
  static let type = "blob"

  /// The SHA-1 of the bytes as they are stored.
  public let digest: BlobDigest
  /// How many bytes there are.
  public let length: UInt64
  /// Their MIME type, when it is known.
  public let contentType: String?

  /// A blob that is stored already, or will be when a document is saved with it.
  public init(digest: BlobDigest, length: UInt64, contentType: String? = nil) {
    self.digest = digest
    self.length = length
    self.contentType = contentType
  }

  /// The blob that a value of a document stands for; nil when it is no such object. An object without `@type`
  /// is one in the shape of an attachment: with `digest`, `length`, `revpos` and `stub`.
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

  /// The object that stands for the blob anywhere in a document.
  public var jsonValue: JSONValue {
    var members: JSONObject = [
      Blob.typeProperty: .string(Blob.type), "digest": .string(digest.text), "length": JSONValue(length),
    ]
    if let contentType { members["content_type"] = .string(contentType) }
    return .object(members)
  }
}
