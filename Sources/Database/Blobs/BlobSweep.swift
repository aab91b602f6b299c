import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Removes unreferenced blobs, while documents are being saved.
///
/// The removal has these steps:
///
/// 1. It begins with all files that exist.
/// 2. It receives every reference (`keep`) of a snapshot that is taken after the beginning. Writers continue
///    meanwhile.
/// 3. Inside a write transaction, when all earlier writes are committed, it receives the references of the
///    changes since that snapshot.
/// 4. Inside the same transaction, `finish()` removes the remaining files.
///
/// A file that was installed or marked since the beginning is always kept. So it still exists after a power
/// loss that reverts the commits after the snapshot. Use it on one thread at a time.
package final class BlobSweep {
  private let store: BlobStore
  private let plan: any BlobRemovalPlan
  private var candidates: Set<String>

  /// The result of a removal.
  package struct Result: Sendable, Equatable {
    /// The number of removed blobs.
    package var blobs = 0
    /// The number of bytes of their files.
    package var bytes: UInt64 = 0

    /// Creates a result of 0 blobs.
    package init() {}
  }

  init(_ store: BlobStore) throws {
    self.store = store
    plan = try store.home.beginRemoval(isBlob: store.isBlob)
    candidates = plan.names
  }

  /// Whether no candidates for removal remain.
  package var isEmpty: Bool { candidates.isEmpty }

  /// Keeps a blob that is referenced.
  package func keep(_ digest: BlobDigest) throws {
    candidates.remove(try store.fileName(of: digest))
  }

  /// Keeps every blob whose digest may occur in lent bytes.
  package func keepAll(in bytes: RawSpan) throws { try bytes.withUnsafeBytes { try keepAll(in: $0) } }

  /// Keeps every blob whose digest occurs as text in `bytes`. That covers all references of a stored body,
  /// whatever their form.
  package func keepAll(in bytes: UnsafeRawBufferPointer) throws {
    var failure: (any Error)?
    forEachDigest(in: bytes) { digest in
      do { try keep(digest) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Removes the remaining candidates, and the files of processes that have ended.
  package func finish() throws -> Result {
    var result = Result()
    (result.blobs, result.bytes) = try plan.remove(candidates)
    candidates = []
    return result
  }
}

extension BlobStore {
  /// Begins a removal of unreferenced blobs. Nil if the directory is empty. Throws `readOnly` if the store is
  /// read-only.
  package func beginSweep() throws -> BlobSweep? {
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the database is open for reading only", path: directory)
    }
    guard try !names().isEmpty else { return nil }
    return try BlobSweep(self)
  }
}

/// Calls `body` with each digest whose text occurs anywhere in lent bytes.
package func forEachDigest(in bytes: RawSpan, _ body: (BlobDigest) -> Void) {
  bytes.withUnsafeBytes { forEachDigest(in: $0, body) }
}

/// Returns whether lent bytes may contain the text of a digest.
package func mayNameBlob(_ bytes: RawSpan) -> Bool { bytes.withUnsafeBytes { mayNameBlob($0) } }

/// Calls `body` with each digest whose text occurs anywhere in `bytes`.
package func forEachDigest(in bytes: UnsafeRawBufferPointer, _ body: (BlobDigest) -> Void) {
  guard let base = bytes.baseAddress else { return }
  var position = 0
  while let found = nextPrefix(base, from: position, count: bytes.count) {
    if bytes.count - found >= BlobDigest.textCount,
      let digest = BlobDigest(text: UnsafeRawBufferPointer(start: base + found, count: BlobDigest.textCount))
    {
      body(digest)
      position = found + BlobDigest.textCount
    } else {
      position = found + BlobDigest.textPrefix.utf8.count
    }
  }
}

/// Returns whether `bytes` may contain the text of a digest. Fast for the many bodies without one.
package func mayNameBlob(_ bytes: UnsafeRawBufferPointer) -> Bool {
  guard let base = bytes.baseAddress, bytes.count >= BlobDigest.textCount else { return false }
  return nextPrefix(base, from: 0, count: bytes.count) != nil
}

/// Returns the offset of the next "sha1-". It searches for the hyphen, which is the rarest of these
/// characters in JSON.
private func nextPrefix(_ base: UnsafeRawPointer, from start: Int, count: Int) -> Int? {
  var position = start + 4
  while position < count, let hyphen = memchr(base + position, 0x2D, count - position) {
    position = UnsafeRawPointer(hyphen) - base
    if (base + position - 4).loadUnaligned(as: UInt32.self) == UInt32(littleEndian: 0x3161_6873) {
      return position - 4
    }
    position += 1
  }
  return nil
}
