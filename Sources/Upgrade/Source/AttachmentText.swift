import Blobs

/// Makes JSON text for parts of the property `_attachments`.
enum AttachmentText {
  /// Returns the text of a digest of 20 bytes. For another number of bytes, the text isn't a valid digest.
  static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
    BlobDigest(bytes)?.text ?? "sha1-"
  }
}
