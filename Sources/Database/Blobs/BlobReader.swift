import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Reads the bytes of a stored blob, in pieces of any size, in constant memory.
///
/// A blob that was changed on the disk throws `damaged`. An encrypted blob throws it before wrong data is
/// returned. For a plain blob the digest is checked with the last piece, if the blob is read from its
/// beginning to its end.
///
/// Use it on one thread at a time. The blob can be read to its end even if a compaction removes it meanwhile.
public final class BlobReader {
  /// The digest of the blob.
  public let digest: BlobDigest
  /// The length of the blob in bytes.
  public let length: UInt64
  /// The offset of the next byte.
  public private(set) var position: UInt64 = 0

  private let path: String
  private let source: Source
  /// Hashes the bytes read so far. Nil for encrypted blobs, after the check, and after a seek to another
  /// offset than 0.
  private var hash: SHA1Stream?

  private enum Source {
    case memory([UInt8])
    case plain(any BlobBytes)
    case sealed(any BlobBytes, ChunkCipher, OpenChunk)
  }

  /// The chunk that was decrypted last.
  private final class OpenChunk {
    var number: UInt64?
    var count = 0
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    let sealed = UnsafeMutableRawBufferPointer.allocate(
      byteCount: SealedFormat.sealedChunkBytes, alignment: 16)
    deinit {
      bytes.deallocate()
      sealed.deallocate()
    }
  }

  /// Creates a reader of bytes that have this digest.
  package init(_ bytes: [UInt8], digest: BlobDigest) {
    self.digest = digest
    length = UInt64(bytes.count)
    path = "memory"
    source = .memory(bytes)
  }

  /// Opens a file outside of any database. Throws `damaged` when its bytes don't have this digest.
  package convenience init(file path: String, digest: BlobDigest) throws {
    let file = try FileDescriptor(path, O_RDONLY, follows: true)
    try self.init(file, at: path, digest: digest, keys: nil)
  }

  /// Creates a reader of stored bytes, which are at `path` for errors. With `digest`, they must be that blob.
  init(_ file: any BlobBytes, at path: String, digest expected: BlobDigest?, keys: BlobKeys?) throws {
    self.path = path
    let fileLength = try file.length()
    guard let keys else {
      guard let expected else {
        throw StorageError(.invalidArgument, "the digest of the blob is missing", path: path)
      }
      digest = expected
      length = fileLength
      source = .plain(file)
      hash = try SHA1Stream()
      return
    }
    var header = [UInt8](repeating: 0, count: SealedFormat.headerBytes)
    let count = try header.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    let magicCount = SealedFormat.magic.count
    guard count == header.count, header.starts(with: SealedFormat.magic.dropLast()) else {
      throw StorageError(.damaged, "this file isn't an encrypted blob", path: path)
    }
    guard header[magicCount - 1] == SealedFormat.magic[magicCount - 1] else {
      throw StorageError(
        .unsupportedVersion,
        "the file of the blob has format version \(header[magicCount - 1]); this release reads version 1",
        path: path)
    }
    let authenticated = Array(header[..<(magicCount + SealedFormat.saltBytes)])
    let cipher = try ChunkCipher(
      key: try keys.fileKey(salt: Array(authenticated[magicCount...])), encrypts: false)
    var contents = [UInt8](repeating: 0, count: 8 + BlobDigest.byteCount)
    let isAuthentic = try header.withUnsafeBytes { header in
      try contents.withUnsafeMutableBytes {
        try cipher.open(
          UnsafeRawBufferPointer(rebasing: header[authenticated.count...]), .header, 0,
          additionalData: authenticated, into: $0.baseAddress!)
      }
    }
    guard isAuthentic, let found = contents.withUnsafeBytes({ BlobDigest(.init(rebasing: $0[8...])) }) else {
      throw StorageError(
        .damaged, "the header of the blob was changed, or the blob was encrypted with another key", path: path
      )
    }
    guard expected == nil || expected == found else {
      throw StorageError(.damaged, "the file contains another blob, \(found)", path: path)
    }
    digest = found
    length = contents[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    guard length <= SealedFormat.maximumLength, fileLength == SealedFormat.fileLength(length) else {
      throw StorageError(
        .damaged,
        "the blob has \(length) bytes, but its file has \(fileLength) bytes, so it was cut off or extended",
        path: path)
    }
    source = .sealed(file, cipher, OpenChunk())
  }

  /// Reads the next bytes and returns their number, at most the size of `buffer`; 0 at the end.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = Int(min(UInt64(buffer.count), length - position))
    guard count > 0 else {
      if position == length { try checkDigest() }
      return 0
    }
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    switch source {
    case .memory(let bytes):
      let start = Int(position)
      bytes.withUnsafeBytes {
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + count)]))
      }
      position += UInt64(count)
    case .plain(let file):
      guard try file.read(into: target, at: position) == count else {
        throw StorageError(.damaged, "the file of the blob became shorter while it was read", path: path)
      }
      try hash?.update(UnsafeRawBufferPointer(target))
      position += UInt64(count)
      if position == length { try checkDigest() }
    case .sealed(let file, let cipher, let chunk):
      var done = 0
      while done < count {
        let number = position / UInt64(SealedFormat.chunkBytes)
        if chunk.number != number { try open(number, in: chunk, cipher, file) }
        let start = Int(position % UInt64(SealedFormat.chunkBytes))
        let part = min(chunk.count - start, count - done)
        (target.baseAddress! + done).copyMemory(from: chunk.bytes + start, byteCount: part)
        done += part
        position += UInt64(part)
      }
    }
    return count
  }

  /// Reads the next bytes, at most `count`. Empty at the end.
  public func read(upTo count: Int) throws -> [UInt8] {
    let count = Int(min(UInt64(max(count, 0)), length - position))
    guard count > 0 else {
      // At the end of an empty blob its digest can be checked.
      _ = try read(into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      return []
    }
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = try read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  /// Moves to an offset, at most the length of the blob. Throws `invalidArgument` for a greater offset. After
  /// a seek, the digest of a plain blob is checked only if the reader has returned to the beginning.
  public func seek(to offset: UInt64) throws {
    guard offset <= length else {
      throw StorageError(
        .invalidArgument, "the offset \(offset) is past the end of the blob, which has \(length) bytes",
        path: path)
    }
    guard offset != position else { return }
    position = offset
    if case .plain = source { hash = offset == 0 ? try SHA1Stream() : nil }
  }

  /// Reads the blob to its end. Throws `damaged` when its bytes aren't those that were stored.
  public func verify() throws {
    try seek(to: 0)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    while try read(into: buffer) > 0 {}
    // The only chunk of an empty blob has no bytes to read, but it has a tag.
    if length == 0, case .sealed(let file, let cipher, let chunk) = source {
      try open(0, in: chunk, cipher, file)
    }
  }

  private func checkDigest() throws {
    guard let finished = hash else { return }
    hash = nil
    guard try finished.finish() == digest else {
      throw StorageError(.damaged, "the blob was changed: its bytes don't match its digest", path: path)
    }
  }

  private func open(_ number: UInt64, in chunk: OpenChunk, _ cipher: ChunkCipher, _ file: any BlobBytes)
    throws
  {
    let isLast = number + 1 == SealedFormat.chunkCount(length)
    let count = isLast ? Int(length - number * UInt64(SealedFormat.chunkBytes)) : SealedFormat.chunkBytes
    let sealed = UnsafeMutableRawBufferPointer(rebasing: chunk.sealed[..<(count + SealedFormat.tagBytes)])
    let offset = UInt64(SealedFormat.headerBytes) + number * UInt64(SealedFormat.sealedChunkBytes)
    chunk.number = nil
    guard try file.read(into: sealed, at: offset) == sealed.count,
      try cipher.open(
        UnsafeRawBufferPointer(sealed), isLast ? .lastChunk : .chunk, number, into: chunk.bytes)
    else { throw StorageError(.damaged, "chunk \(number) of the blob was changed", path: path) }
    chunk.number = number
    chunk.count = count
  }
}
