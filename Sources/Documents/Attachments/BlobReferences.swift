import Fleece

/// A place in a body that names a blob.
struct BlobReference {
  /// Where it stands: `/photos/3`, `/_attachments/a.png`.
  var path: String
  /// What stands there for a digest.
  var digestText: String
  /// Nil when that can't be one.
  var digest: BlobDigest?
  /// How long the stored bytes have to be, as far as the body says it.
  var storedLength: UInt64?
}

/// Calls `body` with each blob that a stored body names: objects that say they are one, at any depth, and the members
/// of `_attachments` at the top.
func forEachBlobReference(
  in root: UnsafeValue, sharedKeys: SharedKeys, _ body: (BlobReference) throws -> Void
) throws {
  try BlobReferenceWalk(sharedKeys).visit(root, path: "", isAttachment: false, body)
}

/// The same of a lent body.
func forEachBlobReference(
  in root: Value, sharedKeys: SharedKeys, _ body: (BlobReference) throws -> Void
) throws {
  // The walk ends before the root does.
  try forEachBlobReference(in: root.unsafeValue, sharedKeys: sharedKeys, body)
}

/// Names resolved once for a walk over a body.
private struct BlobReferenceWalk {
  let sharedKeys: SharedKeys
  let type, digest, length, encodedLength: Key

  init(_ sharedKeys: SharedKeys) {
    self.sharedKeys = sharedKeys
    type = Key(Blob.typeProperty, in: sharedKeys)
    digest = Key("digest", in: sharedKeys)
    length = Key("length", in: sharedKeys)
    encodedLength = Key("encoded_length", in: sharedKeys)
  }

  func visit(
    _ value: UnsafeValue, path: String, isAttachment: Bool, _ body: (BlobReference) throws -> Void
  ) throws {
    // Bytes that nobody checked may be deeper than any body.
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
            path: path, digestText: text, digest: BlobDigest(text),
            storedLength: value[encodedLength]?.uint ?? value[length]?.uint))
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
