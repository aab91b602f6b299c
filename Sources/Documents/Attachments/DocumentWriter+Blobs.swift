import Blobs
import Fleece
import Storage

/// Information about the blobs that the body being written refers to.
struct BodyBlobs {
  /// Whether the body may refer to blobs or has attachments.
  var mayBeNamed = false
  /// Whether the body comes from another database.
  var isForeign = false
  /// Whether the body is written even if a blob that it refers to isn't stored.
  var mayBeMissing = false
}

extension DocumentWriter {
  /// Determines whether the last encoded body may refer to blobs. Takes a few nanoseconds if it doesn't.
  func noteBlobs(isForeign: Bool) {
    let name = encoder.underscoredName
    bodyBlobs.isForeign = isForeign
    bodyBlobs.mayBeMissing = false
    // For a foreign body only the first reserved name is known.
    bodyBlobs.mayBeNamed =
      mayNameBlob(encoder.fleece) || (name != nil && (isForeign || name == Attachment.property))
  }

  /// Converts the attachments of the body to their stored form and puts new blobs in place. `generation` is
  /// the generation of the new revision, `ancestor` its parent in `tree`. Throws `missingBlob` when the body
  /// refers to a blob that isn't stored.
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
    // A text that looks like a digest may be something else.
    try forEachBlobReference(in: root, sharedKeys: keys.snapshot()) { reference in
      guard let digest = reference.digest, missing.contains(digest) else { return }
      throw DocumentError(
        .missingBlob,
        "the blob \(digest) at \(reference.path) isn't in the database; store the blob before the document",
        documentID: idText(id))
    }
  }
}
