import Blobs
import Fleece

/// A member of `_attachments`, with the properties that an upgrade needs.
struct AttachmentEntry {
  let name: String
  /// The digest and the encoding, or nil if the member has no SHA-1 digest.
  let stored: SourceAttachments.Stored?
  /// The maximum number of bytes after decoding.
  let limit: UInt64
  /// Whether the member can stay unchanged: it isn't compressed, and has everything that makes readers
  /// recognise a blob.
  let isAsStored: Bool

  static let property = "_attachments"

  /// Reads a member of an encoded body.
  init(_ name: String, _ value: UnsafeValue, _ keys: SharedKeys) {
    self.name = name
    let digest = value.value(of: "digest", sharedKeys: keys)?.string.flatMap { BlobDigest($0) }
    let isCompressed = value.value(of: "encoding", sharedKeys: keys)?.string == "gzip"
    let length = value.value(of: "length", sharedKeys: keys)?.uint
    stored = digest.map { SourceAttachments.Stored(digest: $0, isCompressed: isCompressed) }
    limit = isCompressed ? length ?? .max : .max
    isAsStored =
      !isCompressed && length != nil && (value.value(of: "revpos", sharedKeys: keys)?.uint ?? 0) > 0
      && value.value(of: "stub", sharedKeys: keys)?.bool == true
  }

  /// Reads a member of a body as a value.
  init(_ name: String, _ entry: JSONObject) {
    self.name = name
    let digest = entry["digest"]?.string.flatMap { BlobDigest($0) }
    let isCompressed = entry["encoding"]?.string == "gzip"
    let length = entry["length"]?.uint
    stored = digest.map { SourceAttachments.Stored(digest: $0, isCompressed: isCompressed) }
    limit = isCompressed ? length ?? .max : .max
    isAsStored =
      !isCompressed && length != nil && (entry["revpos"]?.uint ?? 0) > 0 && entry["stub"]?.bool == true
  }

  /// Returns a body whose decoded attachments name their new blobs. All attachments get the properties that
  /// make readers recognise a blob.
  static func settled(
    _ body: JSONValue, generation: UInt64, outcome: (AttachmentEntry) throws -> SourceAttachments.Outcome?
  ) rethrows -> JSONValue {
    guard let members = body.object?[property]?.object else { return body }
    var after = JSONObject()
    for (name, value) in members {
      guard var entry = value.object else {
        after[name] = value
        continue
      }
      let said = AttachmentEntry(name, entry)
      if said.stored != nil {
        switch try outcome(said) {
        case .decoded(let digest, let length):
          entry["digest"] = .string(digest.text)
          entry["length"] = JSONValue(length)
          entry.removeValue(forKey: "encoding")
          entry.removeValue(forKey: "encoded_length")
        case .carried(let length):
          if entry["length"]?.uint == nil { entry["length"] = JSONValue(length) }
        default: break
        }
        if entry["stub"]?.bool != true { entry["stub"] = true }
        if (entry["revpos"]?.uint ?? 0) < 1 { entry["revpos"] = JSONValue(generation) }
      }
      after[name] = .object(entry)
    }
    var settled = body
    settled[property] = .object(after)
    return settled
  }
}
