import Blobs

/// Parts of the property `_attachments` as JSON text.
enum AttachmentText {
  /// The text of a digest's 20 bytes; of another number, what is no digest.
  static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
    BlobDigest(bytes)?.text ?? "sha1-"
  }
}
