import Fleece
import Storage

/// What is known of the blobs that the body being written names.
struct BodyBlobs {
  /// Whether the body may name blobs, or has attachments.
  var mayBeNamed = false
  /// Whether it comes from another database.
  var isForeign = false
  /// Whether it is written even when a blob that it names isn't here.
  var mayBeMissing = false
}

extension DocumentWriter {
  /// Looks whether the body that was encoded last may name blobs: a few nanoseconds for those that don't.
  func noteBlobs(isForeign: Bool) {
    let name = encoder.underscoredName
    bodyBlobs.isForeign = isForeign
    bodyBlobs.mayBeMissing = false
    // Of a foreign body only the first reserved name is known.
    bodyBlobs.mayBeNamed =
      mayNameBlob(encoder.fleece) || (name != nil && (isForeign || name == Attachment.property))
  }

  /// Brings the attachments of the body into their stored form, and puts new blobs in place; for the new revision of
  /// that generation on top of a node of `tree`. Throws `missingBlob` when the body names one that isn't here.
  func settleBlobs(
    _ id: UnsafeRawBufferPointer, generation: UInt64, deleted: Bool, ancestor: Int, stored: Stored?
  ) throws {
    try settleAttachments(id, generation: generation, deleted: deleted, ancestor: ancestor, stored: stored)
    guard let blobs else { return }
    var missing: Set<BlobDigest> = []
    var failure: (any Error)?
    forEachDigest(in: encoder.fleece) { digest in
      do {
        switch try blobs.install(digest) {
        case .missing: missing.insert(digest)
        case .stored: break
        case .installed: installedBlobs.append(digest)
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    guard !missing.isEmpty, !bodyBlobs.mayBeMissing, let root = FleeceReader.root(of: encoder.fleece) else {
      return
    }
    // A text that looks like a digest needn't be one.
    try forEachBlobReference(in: root, sharedKeys: keys.snapshot()) { reference in
      guard let digest = reference.digest, missing.contains(digest) else { return }
      throw DocumentError(
        .missingBlob,
        "the blob \(digest) at \(reference.path) is not in the database: store it before the document",
        documentID: idText(id))
    }
  }
}
