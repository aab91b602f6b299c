import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Gives the bytes of a stored blob, in pieces of any size, in constant memory.
///
/// What was changed on the disk is a `damaged` error and never wrong data: at once where the blob is encrypted;
/// otherwise with the last piece of a blob that is read from its beginning to its end. One thread at a time. The blob
/// can be read to its end also when a compaction removes it meanwhile.
public final class BlobReader {
  /// Which blob it is.
  public let digest: BlobDigest
  /// How many bytes it has.
  public let length: UInt64
  /// The offset of the next byte to be read.
  public private(set) var position: UInt64 = 0

  private let file: FileDescriptor
  private let source: Source
  /// Bytes before the end that were read so far in a row; nil when some were left out.
  private var hash: SHA1Stream?

  private enum Source {
    case plain
    case sealed(ChunkCipher, OpenChunk)
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

  /// Opens the file of a blob. With `digest` it has to be that blob's.
  init(path: String, digest expected: BlobDigest?, keys: BlobKeys?) throws {
    file = try FileDescriptor(path, O_RDONLY)
    let fileLength = try file.length()
    guard let keys else {
      guard let expected else { throw StorageError(.invalidArgument, "a blob needs a digest", path: path) }
      digest = expected
      length = fileLength
      source = .plain
      hash = try SHA1Stream()
      return
    }
    var header = [UInt8](repeating: 0, count: SealedFormat.headerBytes)
    let headerFile = file
    let count = try header.withUnsafeMutableBytes { try headerFile.read(into: $0, at: 0) }
    let magicCount = SealedFormat.magic.count
    guard count == header.count, header.starts(with: SealedFormat.magic.dropLast()) else {
      throw StorageError(.damaged, "this is no encrypted blob", path: path)
    }
    guard header[magicCount - 1] == SealedFormat.magic[magicCount - 1] else {
      throw StorageError(
        .unsupportedVersion,
        "the blob's file is of version \(header[magicCount - 1]); this release knows 1", path: path)
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
      throw StorageError(.damaged, "the blob's header was changed, or another key wrote it", path: path)
    }
    guard expected == nil || expected == found else {
      throw StorageError(.damaged, "the file holds another blob, \(found)", path: path)
    }
    digest = found
    length = contents[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    guard length <= SealedFormat.maximumLength, fileLength == SealedFormat.fileLength(length) else {
      throw StorageError(
        .damaged, "the blob has \(length) bytes, and its file of \(fileLength) was cut or added to",
        path: path)
    }
    source = .sealed(cipher, OpenChunk())
  }

  /// Reads the next bytes, as many as there are and `buffer` has room for, and says how many; 0 at the end.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = Int(min(UInt64(buffer.count), length - position))
    guard count > 0 else {
      if position == length { try checkDigest() }
      return 0
    }
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    switch source {
    case .plain:
      guard try file.read(into: target, at: position) == count else {
        throw StorageError(.damaged, "the blob's file was cut while it was read", path: file.path)
      }
      try hash?.update(UnsafeRawBufferPointer(target))
      position += UInt64(count)
      if position == length { try checkDigest() }
    case .sealed(let cipher, let chunk):
      var done = 0
      while done < count {
        let number = position / UInt64(SealedFormat.chunkBytes)
        if chunk.number != number { try open(number, in: chunk, cipher) }
        let start = Int(position % UInt64(SealedFormat.chunkBytes))
        let part = min(chunk.count - start, count - done)
        (target.baseAddress! + done).copyMemory(from: chunk.bytes + start, byteCount: part)
        done += part
        position += UInt64(part)
      }
    }
    return count
  }

  /// The next bytes, at most `count`; none at the end.
  public func read(upTo count: Int) throws -> [UInt8] {
    let count = Int(min(UInt64(max(count, 0)), length - position))
    guard count > 0 else {
      // The end of an empty blob is where its digest is known.
      _ = try read(into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      return []
    }
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = try read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  /// Goes to an offset, the end at most. A plain blob's digest isn't checked any more then, but for a return to
  /// the beginning.
  public func seek(to offset: UInt64) throws {
    guard offset <= length else {
      throw StorageError(
        .invalidArgument, "the blob has \(length) bytes: there is none at \(offset)", path: file.path)
    }
    guard offset != position else { return }
    position = offset
    if case .plain = source { hash = offset == 0 ? try SHA1Stream() : nil }
  }

  /// Reads all to the end and throws `damaged` when it isn't what was stored.
  public func verify() throws {
    try seek(to: 0)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    while try read(into: buffer) > 0 {}
    // The empty blob's only chunk has no byte to read, and a tag.
    if length == 0, case .sealed(let cipher, let chunk) = source { try open(0, in: chunk, cipher) }
  }

  private func checkDigest() throws {
    guard let finished = hash else { return }
    hash = nil
    guard try finished.finish() == digest else {
      throw StorageError(.damaged, "the blob was changed: its bytes have another digest", path: file.path)
    }
  }

  private func open(_ number: UInt64, in chunk: OpenChunk, _ cipher: ChunkCipher) throws {
    let isLast = number + 1 == SealedFormat.chunkCount(length)
    let count = isLast ? Int(length - number * UInt64(SealedFormat.chunkBytes)) : SealedFormat.chunkBytes
    let sealed = UnsafeMutableRawBufferPointer(rebasing: chunk.sealed[..<(count + SealedFormat.tagBytes)])
    let offset = UInt64(SealedFormat.headerBytes) + number * UInt64(SealedFormat.sealedChunkBytes)
    chunk.number = nil
    guard try file.read(into: sealed, at: offset) == sealed.count,
      try cipher.open(
        UnsafeRawBufferPointer(sealed), isLast ? .lastChunk : .chunk, number, into: chunk.bytes)
    else { throw StorageError(.damaged, "chunk \(number) of the blob was changed", path: file.path) }
    chunk.number = number
    chunk.count = count
  }
}
