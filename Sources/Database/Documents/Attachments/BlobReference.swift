import Blobs
import Fleece

/// A reference to a blob in a body.
struct BlobReference {
  /// The path of the reference: `/photos/3`, `/_attachments/a.png`.
  var path: String
  /// The digest, nil if it isn't valid.
  var digest: BlobDigest?
  /// The expected length of the stored bytes, if the body gives it.
  var storedLength: UInt64?
  /// The media type, if the body gives it.
  var contentType: String?
}

/// Calls `body` with each blob reference in a stored body: objects of type blob at any depth, and the members
/// of `_attachments` at the top level.
func forEachBlobReference(
  in root: UnsafeValue, sharedKeys: SharedKeys, _ body: (BlobReference) throws -> Void
) throws {
  try BlobReferenceWalk(sharedKeys).visit(root, path: "", isAttachment: false, body)
}

/// Calls `body` with each blob reference in a lent body, in the same way.
func forEachBlobReference(
  in root: Value, sharedKeys: SharedKeys, _ body: (BlobReference) throws -> Void
) throws {
  // The walk ends before `root` becomes invalid.
  try forEachBlobReference(in: root.unsafeValue, sharedKeys: sharedKeys, body)
}

/// The resolved property names for a walk over a body.
private struct BlobReferenceWalk {
  let sharedKeys: SharedKeys
  let type, digest, length, encodedLength, contentType: Key

  init(_ sharedKeys: SharedKeys) {
    self.sharedKeys = sharedKeys
    type = Key(Blob.typeProperty, in: sharedKeys)
    digest = Key("digest", in: sharedKeys)
    length = Key("length", in: sharedKeys)
    encodedLength = Key("encoded_length", in: sharedKeys)
    contentType = Key("content_type", in: sharedKeys)
  }

  func visit(
    _ value: UnsafeValue, path: String, isAttachment: Bool, _ body: (BlobReference) throws -> Void
  ) throws {
    // Unvalidated bytes may be nested deeper than any valid body.
    guard path.utf8.count < 100_000 else { return }
    switch value.type {
    case .array:
      for (index, item) in value.items.enumerated() where item.type == .array || item.type == .dict {
        try visit(item, path: "\(path)/\(index)", isAttachment: false, body)
      }
    case .dict:
      if isAttachment || value[type]?.string == Blob.type, let text = value[digest]?.string {
        try body(
          BlobReference(
            path: path, digest: BlobDigest(text),
            storedLength: value[encodedLength]?.uint ?? value[length]?.uint,
            contentType: value[contentType]?.string))
      }
      for entry in value.entries where entry.value.type == .array || entry.value.type == .dict {
        let name = entry.name(in: sharedKeys) ?? "?"
        if path.isEmpty, name == Attachment.property {
          for attachment in entry.value.entries {
            try visit(
              attachment.value, path: "/\(name)/\(attachment.name(in: sharedKeys) ?? "?")",
              isAttachment: true,
              body)
          }
        } else {
          try visit(entry.value, path: "\(path)/\(name)", isAttachment: false, body)
        }
      }
    default: break
    }
  }
}
