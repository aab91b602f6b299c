import Blobs
import Fleece

/// A member of `_attachments`, with the properties that an upgrade needs.
struct SourceAttachmentEntry {
  let name: String
  /// The digest and the encoding, or nil if the member has no SHA-1 digest.
  let stored: SourceAttachments.Stored?
  /// The maximum number of bytes after decoding.
  let limit: UInt64
  /// Whether the member can stay unchanged: it isn't compressed, and has everything that makes readers
  /// recognise a blob.
  let isAsStored: Bool

  static let property = "_attachments"

  private init(
    _ name: String, digest: String?, encoding: String?, length: UInt64?, revpos: UInt64?, isStub: Bool?
  ) {
    self.name = name
    let isCompressed = encoding == "gzip"
    stored = digest.flatMap { BlobDigest($0) }.map { .init(digest: $0, isCompressed: isCompressed) }
    limit = isCompressed ? length ?? .max : .max
    isAsStored = !isCompressed && length != nil && (revpos ?? 0) > 0 && isStub == true
  }

  /// Reads a member of an encoded body.
  init(_ name: String, _ value: UnsafeValue, _ keys: SharedKeys) {
    func property(_ name: String) -> UnsafeValue? { value.value(of: name, sharedKeys: keys) }
    self.init(
      name, digest: property("digest")?.string, encoding: property("encoding")?.string,
      length: property("length")?.uint, revpos: property("revpos")?.uint, isStub: property("stub")?.bool)
  }

  /// Reads a member of a body as a value.
  init(_ name: String, _ entry: JSONObject) {
    self.init(
      name, digest: entry["digest"]?.string, encoding: entry["encoding"]?.string,
      length: entry["length"]?.uint, revpos: entry["revpos"]?.uint, isStub: entry["stub"]?.bool)
  }

  /// Returns a body whose decoded attachments name their new blobs. All attachments get the properties that
  /// make readers recognise a blob.
  static func settled(
    _ body: JSONValue, generation: UInt64,
    outcome: (SourceAttachmentEntry) throws -> SourceAttachments.Outcome?
  ) rethrows -> JSONValue {
    guard let members = body.object?[property]?.object else { return body }
    var after = JSONObject()
    for (name, value) in members {
      guard var entry = value.object else {
        after[name] = value
        continue
      }
      let said = SourceAttachmentEntry(name, entry)
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
