import CCrypto
import Encryption
import Storage

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
/// The bytes are stored without a name. `finish()` makes them durable. They get their name when a
/// document that refers to the blob is saved. A writer that is released without `finish()` removes them.
/// Use it on one thread at a time.
public final class BlobWriter {
  let store: BlobStore
  private let new: any NewBlobBytes
  private var isOpen = true
  private var path: String { new.place }
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

  init(_ store: BlobStore, keys: BlobKeys?, _ new: any NewBlobBytes) throws {
    self.store = store
    self.new = new
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
  }

  deinit {
    if isOpen { new.discard() }
    buffer.deallocate()
    sealed?.deallocate()
  }

  /// Adds bytes. After an error, such as `diskFull`, the writer can't be used any more.
  public func write(_ bytes: UnsafeRawBufferPointer) throws {
    try checkOpen()
    try digest.update(bytes)
    length += UInt64(bytes.count)
    var rest = bytes
    while !rest.isEmpty {
      // A full chunk is written only when more bytes follow, because the last chunk has another kind.
      if buffered == SealedFormat.chunkBytes { try flush(isLast: false) }
      if buffered == 0, cipher == nil, rest.count >= SealedFormat.chunkBytes {
        try new.write(rest, at: offset)
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

  private func checkOpen() throws {
    guard isOpen else {
      throw StorageError(.closed, "the blob is already complete, so no bytes can be added", path: path)
    }
  }

  private func flush(isLast: Bool) throws {
    let bytes = UnsafeRawBufferPointer(start: buffer, count: buffered)
    if let cipher, let sealed {
      try cipher.seal(bytes, isLast ? .lastChunk : .chunk, chunk, into: sealed)
      let count = buffered + SealedFormat.tagBytes
      try new.write(UnsafeRawBufferPointer(start: sealed, count: count), at: offset)
      offset += UInt64(count)
      chunk += 1
    } else {
      try new.write(bytes, at: offset)
      offset += UInt64(buffered)
    }
    buffered = 0
  }

  /// Ends the blob. All its bytes are written, and synced if the durability requires it. A document that
  /// refers to it can be saved.
  ///
  /// The blob is kept until it is saved or the database is closed.
  public func finish() throws -> StoredBlob {
    try checkOpen()
    if cipher != nil || buffered > 0 { try flush(isLast: true) }
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
        try new.write(UnsafeRawBufferPointer(header), at: 0)
      }
    }
    try new.finish()
    isOpen = false
    store.keep(blob, new)
    return blob
  }
}
