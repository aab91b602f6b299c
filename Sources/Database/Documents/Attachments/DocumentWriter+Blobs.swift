import Blobs
import Fleece
import Storage

extension DocumentWriter {
  /// Converts the attachments of the body to their stored form and puts new blobs in place. Returns the body
  /// to be stored. `generation` is the generation of the new revision, `ancestor` its parent in `tree`. Throws
  /// `missingBlob` when the body refers to a blob that isn't stored, unless the revision before refers to it too.
  func settleBlobs(
    _ body: EncodedBody, _ id: UnsafeRawBufferPointer, generation: UInt64, deleted: Bool, ancestor: Int,
    stored: Stored?
  ) throws -> EncodedBody {
    guard body.mayNameBlobs else { return body }
    let body = try settleAttachments(
      body, id, generation: generation, deleted: deleted, ancestor: ancestor, stored: stored)
    guard let blobs else { return body }
    let missing = try installBlobs(of: body.fleece, in: blobs, sources: body.value?.blobSources() ?? [:])
    guard !missing.isEmpty, !body.mayMissBlobs, let root = body.root else { return body }
    // A blob that was lost before keeps no other property from being changed.
    let lost = try digests(namedByLeaf: ancestor, stored)
    try forEachBlobReference(in: root, sharedKeys: keys.snapshot()) { reference in
      guard let digest = reference.digest, missing.contains(digest), !lost.contains(digest) else { return }
      throw DocumentError(
        .missingBlob,
        "the blob \(digest) at \(reference.path) isn't in the database, and its content isn't known; put a Blob"
          + " into the document that was made from the content or read from an open database, or store the"
          + " content with makeBlob first",
        documentID: idText(id))
    }
    return body
  }

  /// Puts the new blobs to which a body refers in place, each once. Takes a blob that is missing from
  /// `sources`, or asks `find` for it. Returns the digests of blobs that stay missing. A text that looks like a
  /// digest may be something else.
  func installBlobs(
    of body: UnsafeRawBufferPointer, in blobs: BlobStore, sources: [BlobDigest: BlobSource] = [:],
    find: (BlobDigest) throws -> Bool = { _ in false }
  ) throws -> Set<BlobDigest> {
    var digests: [BlobDigest] = []
    var known: Set<BlobDigest> = []
    forEachDigest(in: body) { if known.insert($0).inserted { digests.append($0) } }
    var missing: Set<BlobDigest> = []
    for digest in digests {
      let source = sources[digest]
      // The commit ends a claim. With content of its own, this document doesn't use up that of another.
      if source != nil, blobs.claim(digest) { claimedBlobs.append(digest) }
      var presence = try blobs.install(digest)
      if case .missing = presence, let source, try source.store(digest, in: blobs) {
        claimedBlobs.append(digest)
        presence = try blobs.install(digest)
      }
      if case .missing = presence, try find(digest) { presence = try blobs.install(digest) }
      switch presence {
      case .missing: missing.insert(digest)
      case .stored: break
      case .installed: installedBlobs.append(digest)
      }
    }
    return missing
  }
}
