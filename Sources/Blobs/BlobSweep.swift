import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The removal of blobs that no document names, beside others that save documents.
///
/// In three steps: it begins with all files that are there; then every reference is told to it (`keep`), first of a
/// snapshot taken after the beginning, beside writers; then, inside a write transaction in which all that was
/// written is committed, of what changed since that snapshot; and then, still in there, `finish()` removes the rest.
/// A file that was put in place or wanted again since the beginning stays in any case, so a power loss that takes back
/// commits after the snapshot finds it. One thread at a time.
public final class BlobSweep {
  private let store: BlobStore
  private var candidates: Set<String>
  private let begun: timespec

  /// What a removal gave back.
  public struct Result: Sendable, Equatable {
    /// How many blobs.
    public var blobs = 0
    /// How many bytes their files had.
    public var bytes: UInt64 = 0

    /// Nothing.
    public init() {}
  }

  init(_ store: BlobStore) throws {
    self.store = store
    // Files are stamped by a clock of coarse steps, which lags, or by the precise one: once the coarse one has passed
    // this moment, whatever was done before it has an earlier stamp. That takes some milliseconds; it is not
    // waited for longer should the clock be set back.
    var first = timespec()
    clock_gettime(CLOCK_REALTIME, &first)
    var now = timespec()
    for _ in 0..<1_000 {
      clock_gettime(CLOCK_REALTIME_COARSE, &now)
      if (now.tv_sec, now.tv_nsec) > (first.tv_sec, first.tv_nsec) { break }
      usleep(200)
    }
    begun = now
    candidates = Set(try store.names().filter(store.isBlob))
  }

  /// Whether no file is left that could go.
  public var isEmpty: Bool { candidates.isEmpty }

  /// Takes note of a blob that is named.
  public func keep(_ digest: BlobDigest) throws {
    candidates.remove(try store.fileName(of: digest))
  }

  /// `keepAll` of lent bytes.
  public func keepAll(in bytes: RawSpan) throws { try bytes.withUnsafeBytes { try keepAll(in: $0) } }

  /// Takes note of every text in `bytes` that could be a digest: all that a stored body can name, in whatever
  /// shape it does.
  public func keepAll(in bytes: UnsafeRawBufferPointer) throws {
    var failure: (any Error)?
    forEachDigest(in: bytes) { digest in
      do { try keep(digest) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Removes what nothing named, and what processes left behind that are gone.
  public func finish() throws -> Result {
    var result = Result()
    for name in candidates {
      let path = store.directory + "/" + name
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      let changed = status.st_ctim
      guard (changed.tv_sec, changed.tv_nsec) < (begun.tv_sec, begun.tv_nsec) else { continue }
      guard unlink(path) == 0 else {
        if errno == ENOENT { continue }
        throw StorageError.system(errno, "can't remove a blob", path)
      }
      result.blobs += 1
      result.bytes += UInt64(status.st_size)
    }
    candidates = []
    try store.removeAbandoned()
    return result
  }
}

extension BlobStore {
  /// Begins the removal of blobs that no document names; nil when there is nothing that could be removed.
  public func beginSweep() throws -> BlobSweep? {
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the database is open for reading only", path: directory)
    }
    guard try !names().isEmpty else { return nil }
    return try BlobSweep(self)
  }
}

/// `forEachDigest` of lent bytes.
public func forEachDigest(in bytes: RawSpan, _ body: (BlobDigest) -> Void) {
  bytes.withUnsafeBytes { forEachDigest(in: $0, body) }
}

/// `mayNameBlob` of lent bytes.
public func mayNameBlob(_ bytes: RawSpan) -> Bool { bytes.withUnsafeBytes { mayNameBlob($0) } }

/// Calls `body` with each digest whose text stands anywhere in `bytes`.
public func forEachDigest(in bytes: UnsafeRawBufferPointer, _ body: (BlobDigest) -> Void) {
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

/// Whether the text of a digest may stand in `bytes`: fast, for all those bodies where none does.
public func mayNameBlob(_ bytes: UnsafeRawBufferPointer) -> Bool {
  guard let base = bytes.baseAddress, bytes.count >= BlobDigest.textCount else { return false }
  return nextPrefix(base, from: 0, count: bytes.count) != nil
}

/// Where "sha1-" stands next: its hyphen is the rarest of these in JSON.
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
