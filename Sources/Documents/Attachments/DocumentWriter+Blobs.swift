import Blobs
import Fleece
import Storage

extension DocumentWriter {
  /// Converts the attachments of the body to their stored form and puts new blobs in place. Returns the body
  /// to be stored. `generation` is the generation of the new revision, `ancestor` its parent in `tree`. Throws
  /// `missingBlob` when the body refers to a blob that isn't stored.
  func settleBlobs(
    _ body: EncodedBody, _ id: UnsafeRawBufferPointer, generation: UInt64, deleted: Bool, ancestor: Int,
    stored: Stored?
  ) throws -> EncodedBody {
    guard body.mayNameBlobs else { return body }
    let body = try settleAttachments(
      body, id, generation: generation, deleted: deleted, ancestor: ancestor, stored: stored)
    guard let blobs else { return body }
    var missing: Set<BlobDigest> = []
    let installedBefore = installedBlobs.count
    var failure: (any Error)?
    forEachDigest(in: body.fleece) { digest in
      do {
        switch try blobs.install(digest) {
        case .missing: missing.insert(digest)
        case .stored: break
        case .installed:
          if !installedBlobs[installedBefore...].contains(digest) { installedBlobs.append(digest) }
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    guard !missing.isEmpty, !body.mayMissBlobs, let root = body.root else { return body }
    // A text that looks like a digest may be something else.
    try forEachBlobReference(in: root, sharedKeys: keys.snapshot()) { reference in
      guard let digest = reference.digest, missing.contains(digest) else { return }
      throw DocumentError(
        .missingBlob,
        "the blob \(digest) at \(reference.path) isn't in the database; store the blob before the document",
        documentID: idText(id))
    }
    return body
  }
}
