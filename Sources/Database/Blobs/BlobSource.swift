// Where the content of a blob is, for blobs that go from hand to hand: a new one that no database has yet, or one
// that was read from a database.

import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A place that has the content of one blob, or of all blobs of a database. May be used from any thread.
@usableFromInline package final class BlobSource: Sendable {
  private enum Place: Sendable {
    case bytes([UInt8])
    /// A file of the user, by its absolute path.
    case file(String)
    /// A file of `BlobSpool`, which this source has a claim on.
    case spooled(BlobStore, BlobDigest)
    /// The blobs of a database. Nil after it was closed.
    case database(Lock<BlobStore?>)
  }

  /// The length up to which the content of a stream or a file is kept in memory.
  package static let maximumBytesInMemory = 1 << 20

  private let place: Place

  private init(_ place: Place) { self.place = place }

  deinit { if case .spooled(let spool, let digest) = place { spool.discard(digest) } }

  // MARK: Making

  /// Creates the source of all blobs of a database.
  package convenience init(blobsOf store: BlobStore) { self.init(.database(Lock(store))) }

  /// Ends the use of a database's blobs, also of their keys.
  package func close() { if case .database(let store) = place { store.withLock { $0 = nil } } }

  /// Creates a blob of bytes.
  package static func make(_ bytes: [UInt8]) throws -> (blob: StoredBlob, source: BlobSource) {
    let hash = try BlobHash()
    try bytes.withUnsafeBytes { try hash.update($0) }
    return (try hash.finish(), BlobSource(.bytes(bytes)))
  }

  /// Creates a blob of the bytes that `next` delivers. `next` fills a buffer and returns the number of bytes, 0
  /// at the end.
  package static func make(
    reading next: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> (blob: StoredBlob, source: BlobSource) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    var spooled: BlobWriter?
    while true {
      let count = try next(buffer)
      guard count != 0 else { break }
      guard count > 0, count <= buffer.count else {
        throw StorageError(
          .invalidArgument, "the source of the blob returned \(count) bytes for a buffer of \(buffer.count)")
      }
      let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      if let spooled {
        try spooled.write(piece)
        continue
      }
      bytes.append(contentsOf: piece)
      guard bytes.count > maximumBytesInMemory else { continue }
      let writer = try BlobSpool.makeWriter()
      try writer.write(bytes)
      spooled = writer
      bytes = []
    }
    guard let spooled else { return try make(bytes) }
    let blob = try spooled.finish()
    return (blob, BlobSource(.spooled(spooled.store, blob.digest)))
  }

  /// Creates a blob of the bytes of a file. The bytes of a large file stay there.
  package static func make(contentsOfFile path: String) throws -> (blob: StoredBlob, source: BlobSource) {
    try StorageError.checkPath(path)
    let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { Glibc.close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    func next(_ buffer: UnsafeMutableRawBufferPointer) throws -> Int {
      while true {
        let count = read(file, buffer.baseAddress, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw StorageError.system(errno, "can't read", path) }
        return count
      }
    }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_size > maximumBytesInMemory,
      let absolute = realpath(path, nil)
    else { return try make(reading: next) }
    defer { free(absolute) }
    let hash = try BlobHash()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try next(buffer)
      guard count > 0 else { break }
      try hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    return (try hash.finish(), BlobSource(.file(String(cString: absolute))))
  }

  // MARK: Reading

  /// Opens the blob with this digest. Throws `notFound` if it isn't here, and `closed` if the database that it
  /// was read from is closed.
  package func open(_ digest: BlobDigest) throws -> BlobReader {
    switch place {
    case .bytes(let bytes): return BlobReader(bytes, digest: digest)
    case .file(let path): return try BlobReader(file: path, digest: digest)
    case .spooled(let spool, _): return try spool.open(digest)
    case .database(let store):
      guard let store = store.withLock({ $0 }) else {
        throw StorageError(
          .closed, "the database that the blob \(digest) was read from is closed, so it can't be read")
      }
      return try store.open(digest)
    }
  }

  /// Stores the content as a new blob of `target`, in constant memory. Returns false if it isn't here.
  package func store(_ digest: BlobDigest, in target: BlobStore) throws -> Bool {
    let reader: BlobReader
    if case .database(let store) = place {
      guard let store = store.withLock({ $0 }), store !== target else { return false }
      do { reader = try store.open(digest) } catch let error as StorageError where error.code == .notFound {
        return false
      }
    } else {
      reader = try open(digest)
    }
    let writer = try target.makeWriter()
    try writer.write(contentsOf: reader)
    let stored = try writer.finish()
    guard stored.digest == digest else {
      target.discard(stored)
      throw StorageError(
        .damaged, "the content of the blob \(digest) was changed: its digest is now \(stored.digest)")
    }
    return true
  }
}

/// Temporary files for the content of large blobs that no database has yet.
///
/// They are encrypted with a key that only this process has, in a directory of the user in the temporary
/// directory. The files of processes that ended are removed when the next process makes its first one.
enum BlobSpool {
  private static let current = Lock<BlobStore?>(nil)

  /// The files of this process, nil if there were none.
  static var store: BlobStore? { current.withLock { $0 } }

  static func makeWriter() throws -> BlobWriter {
    try current.withLock { current in
      if let spool = current {
        // Something may have cleaned the temporary directory.
        if let writer = try? spool.makeWriter() { return writer }
      }
      let files = BlobDirectory(try directory(), newAccess: { nil })
      try? files.removeAbandoned()
      let spool = try BlobStore(files, dataKey: try SecretBytes.random(count: 32), durability: .none)
      let writer = try spool.makeWriter()
      current = spool
      return writer
    }
  }

  /// A directory that belongs to this user.
  private static func directory() throws -> String {
    let temporary = getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    let path = "\(temporary)/touchstone-\(getuid())"
    var status = stat()
    if mkdir(path, 0o700) == 0 { return path }
    if errno == EEXIST, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
      status.st_uid == getuid(), status.st_mode & 0o077 == 0
    {
      return path
    }
    var template = Array("\(temporary)/touchstone-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw StorageError.system(errno, "can't make a directory for temporary files", temporary)
    }
    return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? path }
  }
}
