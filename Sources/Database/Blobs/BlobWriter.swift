import CCrypto
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The digest and the length of a complete blob.
public struct StoredBlob: Hashable, Sendable {
  /// The SHA-1 digest of its bytes.
  public let digest: BlobDigest
  /// The length in bytes.
  public let length: UInt64

  /// Creates a description of a blob.
  package init(digest: BlobDigest, length: UInt64) {
    self.digest = digest
    self.length = length
  }
}

/// Writes a new blob, in pieces of any size, in constant memory.
///
/// The bytes go to a file with a temporary name. `finish()` syncs the file. It gets its final name when a
/// document that refers to the blob is saved. A writer that is released without `finish()` removes its file.
/// Use it on one thread at a time.
public final class BlobWriter {
  let store: BlobStore
  private let number: UInt64
  private var file: FileDescriptor?
  private let path: String
  private let digest: SHA1Stream
  private let cipher: ChunkCipher?
  private let salt: [UInt8]
  private let buffer: UnsafeMutableRawPointer
  /// The destination for encrypting a full buffer.
  private let sealed: UnsafeMutableRawPointer?
  private var buffered = 0
  private var length: UInt64 = 0
  private var offset: UInt64
  private var chunk: UInt64 = 0

  init(_ store: BlobStore, keys: BlobKeys?, number: UInt64, path: String) throws {
    self.store = store
    self.number = number
    self.path = path
    digest = try SHA1Stream()
    if let keys {
      var salt = [UInt8](repeating: 0, count: SealedFormat.saltBytes)
      guard RAND_bytes(&salt, Int32(salt.count)) == 1 else {
        throw StorageError(.engineFailure, "the random generator of the system failed")
      }
      self.salt = salt
      cipher = try ChunkCipher(key: try keys.fileKey(salt: salt), encrypts: true)
      sealed = .allocate(byteCount: SealedFormat.sealedChunkBytes, alignment: 16)
      offset = UInt64(SealedFormat.headerBytes)
    } else {
      salt = []
      cipher = nil
      sealed = nil
      offset = 0
    }
    buffer = .allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    // Blobs are immutable, so the permissions prevent opening the file for writing again.
    let access = store.newAccess()?.limited(to: 0o444)
    let isPrivate = keys != nil || access != nil
    let created = try FileDescriptor(path, O_RDWR | O_CREAT | O_EXCL, isPrivate ? 0o400 : 0o444)
    file = created
    if let access { try created.set(access) }
  }

  deinit {
    if file != nil { unlink(path) }
    buffer.deallocate()
    sealed?.deallocate()
  }

  /// Adds bytes. After an error, such as `diskFull`, the writer can't be used any more.
  public func write(_ bytes: UnsafeRawBufferPointer) throws {
    guard let file else {
      throw StorageError(.closed, "the blob is already complete, so no bytes can be added", path: path)
    }
    try digest.update(bytes)
    length += UInt64(bytes.count)
    var rest = bytes
    while !rest.isEmpty {
      // A full chunk is written only when more bytes follow, because the last chunk has another kind.
      if buffered == SealedFormat.chunkBytes { try flush(to: file, isLast: false) }
      if buffered == 0, cipher == nil, rest.count >= SealedFormat.chunkBytes {
        try file.write(rest, at: offset)
        offset += UInt64(rest.count)
        return
      }
      let count = min(SealedFormat.chunkBytes - buffered, rest.count)
      (buffer + buffered).copyMemory(from: rest.baseAddress!, byteCount: count)
      buffered += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Adds bytes.
  public func write(_ bytes: some Sequence<UInt8>) throws {
    if try bytes.withContiguousStorageIfAvailable({ try write(UnsafeRawBufferPointer($0)) }) != nil { return }
    try Array(bytes).withUnsafeBytes { try write($0) }
  }

  private func flush(to file: FileDescriptor, isLast: Bool) throws {
    let bytes = UnsafeRawBufferPointer(start: buffer, count: buffered)
    if let cipher, let sealed {
      try cipher.seal(bytes, isLast ? .lastChunk : .chunk, chunk, into: sealed)
      let count = buffered + SealedFormat.tagBytes
      try file.write(UnsafeRawBufferPointer(start: sealed, count: count), at: offset)
      offset += UInt64(count)
      chunk += 1
    } else {
      try file.write(bytes, at: offset)
      offset += UInt64(buffered)
    }
    buffered = 0
  }

  /// Ends the blob. All its bytes are written, and synced if the durability requires it. A document that
  /// refers to it can be saved.
  ///
  /// The blob is kept until it is saved or the database is closed.
  public func finish() throws -> StoredBlob {
    guard let file else {
      throw StorageError(.closed, "the blob is already complete, so no bytes can be added", path: path)
    }
    if cipher != nil || buffered > 0 { try flush(to: file, isLast: true) }
    let blob = StoredBlob(digest: try digest.finish(), length: length)
    if let cipher {
      var header = SealedFormat.magic + salt
      let additionalData = header
      var contents = (0..<8).map { UInt8(truncatingIfNeeded: length >> UInt64(56 - 8 * $0)) }
      contents += blob.digest.bytes
      header += [UInt8](repeating: 0, count: SealedFormat.sealedBytes)
      try header.withUnsafeMutableBytes { header in
        try contents.withUnsafeBytes {
          try cipher.seal(
            $0, .header, 0, additionalData: additionalData,
            into: header.baseAddress! + additionalData.count)
        }
        try file.write(UnsafeRawBufferPointer(header), at: 0)
      }
    }
    if store.syncs { try file.sync() }
    self.file = nil
    store.keep(blob, number: number, path: path)
    return blob
  }
}
