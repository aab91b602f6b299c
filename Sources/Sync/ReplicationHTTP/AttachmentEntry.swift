import Blobs
import Documents
import Fleece
import Replication

/// What a document says of an attachment: a member of `_attachments`.
struct AttachmentEntry: Sendable {
  /// The most bytes of an attachment whose length no document says.
  static let maximumBytes: UInt64 = 1 << 32

  var members: JSONObject

  init(_ members: JSONObject) { self.members = members }

  /// Nil if it isn't an object.
  init?(_ value: JSONValue) {
    guard let members = value.object else { return nil }
    self.members = members
  }

  var digest: String? { members["digest"]?.string }
  var revpos: UInt64? { members["revpos"]?.uint }
  var isCompressed: Bool { members["encoding"]?.string == "gzip" }
  /// Whether its bytes follow the document.
  var follows: Bool { members["follows"]?.bool ?? false }
  /// Its decoded bytes in base64, if they are in the document.
  var data: String? { members["data"]?.string }
  /// The length of what is stored there, if it is known.
  var storedLength: UInt64? { members[isCompressed ? "encoded_length" : "length"]?.uint }
  /// The lengths that its bytes may have, as they are stored and decoded.
  var lengths: [UInt64] { [storedLength ?? Self.maximumBytes] + [members["length"]?.uint].compactMap(\.self) }
  /// The MD5 of what is stored there, in base64.
  var md5: String? { digest.flatMap { $0.hasPrefix("md5-") ? String($0.dropFirst(4)) : nil } }

  /// Whether its digest tells which bytes it means.
  var isVerifiable: Bool { md5 != nil || digest.flatMap { BlobDigest($0) } != nil }

  /// Whether these may be the bytes that it means. `md5` is theirs.
  func means(_ blob: StoredBlob, md5: String) -> Bool {
    if let length = storedLength, length != blob.length { return false }
    if let own = self.md5 { return own == md5 }
    return digest.flatMap { BlobDigest($0) }.map { $0 == blob.digest } ?? true
  }

  /// What a document here says of it, whose bytes are that blob.
  func stored(_ blob: StoredBlob, isCompressed: Bool) -> JSONObject {
    var entry: JSONObject = ["digest": .string(blob.digest.text), "stub": true]
    for name in ["content_type", "revpos"] { entry[name] = members[name] }
    entry["length"] = isCompressed ? members["length"] ?? JSONValue(blob.length) : JSONValue(blob.length)
    if isCompressed {
      entry["encoding"] = "gzip"
      entry["encoded_length"] = JSONValue(blob.length)
    }
    return entry
  }

  /// The members without those that say where the bytes are in an answer.
  var asStub: JSONObject {
    var entry = members
    for name in ["data", "follows"] { entry[name] = nil }
    entry["stub"] = true
    return entry
  }
}
