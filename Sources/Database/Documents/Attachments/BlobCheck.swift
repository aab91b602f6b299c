import Blobs
import Storage

/// Checks that the blobs that bodies refer to exist and are intact.
final class BlobCheck {
  /// The place where a body is stored.
  struct Place {
    let keyspace: Keyspace
    let key: [UInt8]
  }

  private let blobs: BlobStore
  private let check: IntegrityCheck
  /// The lengths of the stored bytes by digest, nil for missing blobs.
  private var lengths: [BlobDigest: UInt64?] = [:]
  /// Whether blobs have the bytes of their digests, of those that were read.
  private var intact: [BlobDigest: Bool] = [:]
  private var missing: [(subject: String, reference: BlobReference, digest: BlobDigest, place: Place)] = []

  init(_ blobs: BlobStore, _ check: IntegrityCheck) {
    self.blobs = blobs
    self.check = check
  }

  func look(at reference: BlobReference, _ subject: String, _ place: Place) throws {
    // Without a digest it names no blob: other databases hold such documents too.
    guard let digest = reference.digest else { return }
    let length: UInt64?
    if let known = lengths[digest] {
      length = known
    } else {
      length = try blobs.length(of: digest)
      lengths[digest] = .some(length)
    }
    guard let length else {
      missing.append((subject, reference, digest, place))
      return
    }
    // The author of a document may have been wrong about the length. The digest decides.
    if let expected = reference.storedLength, expected != length, try !isIntact(digest) {
      try check.report(
        subject, "the blob \(digest) at \(reference.path) has \(length) bytes instead of \(expected)")
    }
  }

  private func isIntact(_ digest: BlobDigest) throws -> Bool {
    if let known = intact[digest] { return known }
    var isIntact = true
    do { _ = try blobs.verify(fileName: blobs.fileName(of: digest)) } catch let error as StorageError {
      // A compaction may have removed the file.
      isIntact = error.code == .notFound
    }
    intact[digest] = isIntact
    return isIntact
  }

  /// Reports missing blobs and checks the blob files.
  func finish(_ store: DocumentStore) throws {
    for (subject, reference, digest, place) in missing {
      // The document may have been purged, and the blob removed, since the snapshot began.
      guard try isStillNamed(digest, place, store), try !blobs.contains(digest) else { continue }
      try check.report(subject, "the blob \(digest) at \(reference.path) is missing")
    }
    for name in try blobs.names().sorted() {
      try check.step()
      if blobs.isEncrypted, name.hasSuffix(".blob") {
        try check.report("blob file \(name)", "it isn't encrypted, but the database is")
      }
      guard check.isDeep, blobs.isBlob(fileName: name) else { continue }
      do { _ = try blobs.verify(fileName: name) } catch let error as StorageError {
        // A compaction may have removed the file.
        guard error.code != .notFound else { continue }
        let reason = error.engineMessage.map { " (\($0))" } ?? ""
        try check.report("blob file \(name)", error.message + reason)
      }
    }
  }

  private func isStillNamed(_ digest: BlobDigest, _ place: Place, _ store: DocumentStore) throws -> Bool {
    try store.withSnapshot { transaction, _ in
      var isNamed = false
      _ = try transaction.read(place.key.span.bytes, in: place.keyspace) { body in
        forEachDigest(in: body) { if $0 == digest { isNamed = true } }
      }
      return isNamed
    }
  }
}
