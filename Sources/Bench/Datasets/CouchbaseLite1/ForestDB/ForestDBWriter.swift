// Writes the blocks and records of a ForestDB file (docs/forestdb.md), as its library does where a reader can tell.

import Bytes
import CCrypto
import CISAL
import CSnappy

#if canImport(Glibc)
  import Glibc
#endif

/// Writes a ForestDB file: records in blocks of their stores, headers, superblocks, and blocks that are used again.
final class ForestDBWriter {
  /// The format: 1 only grows; 2 has superblocks and chains of blocks.
  let version: Int
  private let descriptor: Int32
  private let key: [UInt8]?
  /// The number of blocks of the file.
  private(set) var count = 0
  /// Blocks that are taken before the file grows, the lowest first.
  private(set) var free: [Int] = []
  private(set) var bitmapRevision: UInt64 = 0
  private var open: [UInt64: OpenBlock] = [:]
  private var superblockRevision: UInt64 = 0
  private var headerRevision: UInt64 = 0
  private(set) var lastHeader = 0
  /// The blocks of records.
  private(set) var documentBlocks: Set<Int> = []

  private struct OpenBlock {
    var number: Int
    var position = 0
    var bytes: [UInt8]
  }

  static let blockBytes = 4_096
  private var payloadBytes: Int { version == 1 ? 4_095 : 4_080 }
  private static let none = UInt64.max

  init(_ path: String, version: Int, key: [UInt8]?) throws {
    self.version = version
    self.key = key
    descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw DatasetError(.corrupt, "can't make \(path)") }
    if version == 2 {
      count = 4
      for number in 0..<4 { try write(superblock(header: Self.none, revision: 0), number) }
    }
  }

  deinit { close(descriptor) }

  // MARK: Blocks

  private func write(_ block: [UInt8], _ number: Int) throws {
    var block = block
    if let key { block = Self.encrypted(block, key, number) }
    guard pwrite(descriptor, block, block.count, off_t(number * Self.blockBytes)) == block.count else {
      throw DatasetError(.corrupt, "can't write a block")
    }
  }

  /// AES-256-CBC, with the block's number, encrypted with the hash of the key, as the IV.
  private static func encrypted(_ block: [UInt8], _ key: [UInt8], _ number: Int) -> [UInt8] {
    var hash = [UInt8](repeating: 0, count: 32)
    EVP_Digest(key, key.count, &hash, nil, EVP_sha256(), nil)
    var input = [UInt8](repeating: 0, count: 16)
    input.replaceSubrange(0..<8, with: bigEndian(UInt64(number)))
    func run(_ cipher: OpaquePointer?, _ key: [UInt8], _ iv: [UInt8]?, _ input: [UInt8]) -> [UInt8] {
      let context = EVP_CIPHER_CTX_new()
      defer { EVP_CIPHER_CTX_free(context) }
      EVP_EncryptInit_ex(context, cipher, nil, key, iv)
      EVP_CIPHER_CTX_set_padding(context, 0)
      var output = [UInt8](repeating: 0, count: input.count + 16)
      var length: Int32 = 0
      EVP_EncryptUpdate(context, &output, &length, input, Int32(input.count))
      return Array(output.prefix(input.count))
    }
    return run(EVP_aes_256_cbc(), key, run(EVP_aes_256_ecb(), hash, nil, input), block)
  }

  /// Takes a block: a free one, or a new one at the end of the file.
  func takeBlock() -> Int {
    if !free.isEmpty {
      let number = free.removeFirst()
      documentBlocks.remove(number)
      return number
    }
    count += 1
    return count - 1
  }

  /// Lets blocks be used again. A new round begins.
  func reuse(_ blocks: [Int]) {
    free = (free + blocks).sorted()
    bitmapRevision += 1
  }

  /// Writes a block of nodes. Without a marker it has no checksum.
  func writeNodes(_ block: [UInt8], _ number: Int, hasMarker: Bool) throws {
    var block = block
    block[4_095] = hasMarker ? 0xFF : 0
    if hasMarker {
      block.replaceSubrange(8..<16, with: [UInt8](repeating: 0xFF, count: 8))
      block.replaceSubrange(8..<12, with: Self.bigEndian(Self.crc(block)))
    }
    try write(block, number)
  }

  // MARK: Records

  /// A place in the file, and the blocks that a record has.
  struct Place {
    var offset: UInt64
    var blocks: [Int]
  }

  /// Appends bytes to the blocks of a store.
  func append(_ bytes: [UInt8], to store: UInt64) throws -> Place {
    var current = open[store] ?? newBlock()
    if open[store] != nil, payloadBytes - current.position < bytes.count {
      // A file that only grows goes on in the next block; if that is another's, the record begins in a new one.
      let canGoOn = version == 2 || (count == current.number + 1 && free.isEmpty)
      if !canGoOn || current.position == payloadBytes {
        try flush(current)
        current = newBlock()
      }
    }
    let start = UInt64(current.number * Self.blockBytes + current.position)
    var place = Place(offset: start, blocks: [current.number])
    var done = 0
    while done < bytes.count {
      if current.position == payloadBytes {
        let next = newBlock()
        if version == 2 {
          current.bytes.replaceSubrange(4_080..<4_088, with: Self.bigEndian(UInt64(next.number)))
        }
        try flush(current)
        current = next
        place.blocks.append(next.number)
      }
      let part = min(bytes.count - done, payloadBytes - current.position)
      current.bytes.replaceSubrange(
        current.position..<(current.position + part), with: bytes[done..<(done + part)])
      current.position += part
      done += part
    }
    open[store] = current
    return place
  }

  private func newBlock() -> OpenBlock {
    // What isn't used is anything.
    var bytes = [UInt8](repeating: 0xA5, count: Self.blockBytes)
    if version == 2 {
      bytes.replaceSubrange(4_080..<4_088, with: Self.bigEndian(Self.none))
      bytes.replaceSubrange(4_088..<4_090, with: Self.bigEndian(UInt16(truncatingIfNeeded: bitmapRevision)))
    }
    bytes[4_095] = 0xDD
    let number = takeBlock()
    documentBlocks.insert(number)
    return OpenBlock(number: number, bytes: bytes)
  }

  private func flush(_ block: OpenBlock) throws {
    var block = block
    if payloadBytes - block.position >= 16 {
      block.bytes.replaceSubrange(
        block.position..<(block.position + 16), with: [UInt8](repeating: 0, count: 16))
    }
    try write(block.bytes, block.number)
  }

  /// Writes the blocks that were begun; the next records begin in new ones.
  func flushBlocks() throws {
    for block in open.values { try flush(block) }
    open.removeAll()
  }

  /// Forgets the block of a store that was begun, as a writer that is killed does.
  func abandonBlock(of store: UInt64) { open[store] = nil }

  /// The bytes of a record.
  static func record(
    key: [UInt8], sequence: UInt64, meta: [UInt8] = [], body: [UInt8], flags: UInt8, time: UInt32 = 0
  ) -> [UInt8] {
    let stored = body.isEmpty ? body : compressed(body)
    var bytes = bigEndian(UInt16(key.count)) + bigEndian(UInt16(meta.count))
    bytes += bigEndian(UInt32(body.count)) + bigEndian(UInt32(stored.count))
    let sum = UInt8(truncatingIfNeeded: crc(bytes))
    bytes += [flags | (body.isEmpty ? 0 : 2), sum, 0x9A, 0xB8]
    bytes += key
    bytes += bigEndian(time)
    bytes += bigEndian(sequence)
    bytes += meta
    bytes += stored
    return bytes + withUnsafeBytes(of: crc(bytes).littleEndian) { Array($0) }
  }

  /// The bytes of a commit mark.
  static func mark(_ offset: UInt64) -> [UInt8] {
    let lengths = [UInt8](repeating: 0, count: 12)
    return lengths + [0x10, UInt8(truncatingIfNeeded: crc(lengths)), 0, 0] + bigEndian(offset)
  }

  static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    var length = snappy_max_compressed_length(bytes.count)
    var output = [CChar](repeating: 0, count: length)
    bytes.withUnsafeBytes {
      _ = snappy_compress(
        $0.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, &output, &length)
    }
    return output.prefix(length).map { UInt8(bitPattern: $0) }
  }

  static func crc(_ bytes: [UInt8]) -> UInt32 { crc32_gzip_refl(0, bytes, UInt64(bytes.count)) }

  static func bigEndian<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  // MARK: Commits

  /// What a header says.
  struct Header {
    var root = UInt64.max
    var storeList: UInt64
    /// The block of the header at which the log was flushed; nil if this one is it.
    var flushedAt: Int?
    var isFlushed: Bool
    var newName = ""
    var oldName = ""
    var lastSequence: UInt64
  }

  /// Writes all blocks, a superblock and a header. Returns the header's block.
  @discardableResult
  func commit(_ header: Header) throws -> Int {
    try flushBlocks()
    let number = takeBlock()
    headerRevision += 1
    if version == 2 {
      superblockRevision += 1
      try write(
        superblock(header: UInt64(number), revision: headerRevision), Int(superblockRevision % 4))
    }
    var bytes = Self.bigEndian(header.root) + Self.bigEndian(Self.none)
    if version == 2 { bytes += Self.bigEndian(Self.none) }
    bytes += [UInt8](repeating: 0, count: 32)
    bytes += Self.bigEndian(
      header.isFlushed ? UInt64(number) : header.flushedAt.map(UInt64.init) ?? Self.none)
    bytes += Self.bigEndian(header.storeList) + Self.bigEndian(UInt64(3))
    let names = [header.newName, header.oldName].map { $0.isEmpty ? [] : Array($0.utf8) + [0] }
    for name in names { bytes += Self.bigEndian(UInt16(name.count)) }
    for name in names { bytes += name }
    bytes += Self.bigEndian(Self.crc(bytes))
    let length = bytes.count
    bytes += Self.bigEndian(headerRevision) + Self.bigEndian(header.lastSequence)
    bytes += [UInt8](repeating: 0x77, count: Self.blockBytes - bytes.count)
    if version == 2 { bytes.replaceSubrange(4_061..<4_069, with: Self.bigEndian(bitmapRevision)) }
    bytes.replaceSubrange(4_077..<4_085, with: Self.bigEndian(UInt64(lastHeader)))
    bytes.replaceSubrange(4_085..<4_087, with: Self.bigEndian(UInt16(length)))
    bytes.replaceSubrange(4_087..<4_095, with: Self.bigEndian(0xDEAD_CAFE_BEEF_C000 + UInt64(version)))
    bytes[4_095] = 0xEE
    try write(bytes, number)
    lastHeader = number
    return number
  }

  private func superblock(header: UInt64, revision: UInt64) -> [UInt8] {
    var bytes = Self.bigEndian(0xDEAD_CAFE_BEEF_C002 as UInt64)
    for value in [superblockRevision, bitmapRevision, Self.none, header, revision, 0, 0, 0, 0, 0, 0] {
      bytes += Self.bigEndian(value)
    }
    bytes += Self.bigEndian(Self.crc(bytes))
    bytes += [UInt8](repeating: 0x33, count: Self.blockBytes - bytes.count)
    bytes[4_095] = 0xCC
    return bytes
  }
}
