// A record. Records follow each other in document blocks, without alignment; any field may go on in the next block:
//
//   u16 key length     u16 meta length     u32 length of the body     u32 length of the body as stored
//   u8  flags          u8  the lowest byte of the CRC-32 of the 12 bytes before the flags     u16 anything
//   key      u32 time of the deletion      u64 sequence      meta      body as stored
//   u32      CRC-32 of all that is before, its lowest byte first
//
// `BlockChain` says which block is the next one. A head of zeros ends a block. A commit mark has a head without lengths, then
// a u64: the offset of the record that it commits.

import Bytes
import CSnappy

/// Reads records, one at a time, into its own memory. One thread at a time.
final class RecordReader {
  enum Outcome: Equatable {
    /// A valid record.
    case record
    /// A commit mark for the record at this offset.
    case mark(UInt64)
    /// Nothing more is in this block.
    case end
    /// There is no head of a record. The record doesn't end anywhere.
    case noHead
    /// The head is valid, but the rest isn't. `end` is behind the record if `isEndKnown`.
    case damaged(String)
  }

  /// The maximum size of a record, and of a body after decompression. Couchbase Lite takes documents of 20 MB, and a
  /// record has all current revisions of one.
  static let maximumBytes = 42 << 20

  let file: BlockFile
  let version: ForestDBVersion
  var chain: BlockChain { BlockChain(file: file, version: version) }
  private var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
  private var decompressed = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)

  /// The record that was read. Its bytes are valid until the next one is read.
  private(set) var offset: UInt64 = 0
  private(set) var flags: RecordFlags = []
  private(set) var sequence: UInt64 = 0
  private(set) var byteCount = 0
  private var keyLength = 0
  private var metaLength = 0
  private var bodyLength = 0
  private var storedLength = 0
  /// The bytes of the record that could be copied.
  private var copied = 0
  /// The position behind the record.
  private(set) var end = BlockPosition(block: 0, byte: 0)
  private(set) var isEndKnown = false
  /// The blocks in which the record goes on.
  private(set) var continuations: [Int] = []

  init(_ file: BlockFile, _ version: ForestDBVersion) {
    self.file = file
    self.version = version
  }

  deinit {
    bytes.deallocate()
    decompressed.deallocate()
  }

  /// The key, which begins with the number of the store.
  var key: UnsafeRawBufferPointer { part(16, keyLength) }
  var meta: UnsafeRawBufferPointer { part(16 + keyLength + 12, metaLength) }
  private var storedBody: UnsafeRawBufferPointer { part(16 + keyLength + 12 + metaLength, storedLength) }

  /// The number of the store; nil if the key is too short for one.
  var store: UInt64? { keyLength >= 8 ? bytes.baseAddress.map { UnsafeRawPointer($0).integer(16) } : nil }
  /// The key without the number of the store.
  var userKey: UnsafeRawBufferPointer { keyLength >= 8 ? part(24, keyLength - 8) : part(16, 0) }

  private func part(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[start..<(start + count)])
  }

  // MARK: Reading

  /// Reads the record at an offset that something else in the file gives.
  func read(at offset: UInt64) throws -> Outcome {
    guard let position = BlockPosition(offset, file, version) else {
      forget(offset)
      return .damaged("its offset \(offset) is none of a record")
    }
    return try read(at: position)
  }

  /// Forgets the record that was read before, so that nothing of it is taken for what can't be read.
  private func forget(_ offset: UInt64) {
    self.offset = offset
    flags = []
    (sequence, byteCount) = (0, 0)
    (keyLength, metaLength, bodyLength, storedLength) = (0, 0, 0, 0)
    continuations.removeAll(keepingCapacity: true)
    isEndKnown = false
  }

  /// Reads the record at a position.
  func read(at start: BlockPosition) throws -> Outcome {
    forget(start.offset)
    var position = start
    guard try file.marker(start.block) == BlockMarker.document, try copy(16, from: &position, to: 0) else {
      return .noHead
    }
    guard let base = bytes.baseAddress.map({ UnsafeRawPointer($0) }) else { return .noHead }
    if base.load(as: UInt64.self) == 0, base.load(fromByteOffset: 8, as: UInt64.self) == 0 { return .end }
    let sum = UInt8(truncatingIfNeeded: CRC32.of(part(0, 12)))
    guard CRC32.isEqual(UInt32(base.load(fromByteOffset: 13, as: UInt8.self)), UInt32(sum)) else {
      return .noHead
    }
    flags = RecordFlags(rawValue: base.load(fromByteOffset: 12, as: UInt8.self))
    let key = Int(base.integer(0, as: UInt16.self))
    let meta = Int(base.integer(2, as: UInt16.self))
    let whole = Int(base.integer(4, as: UInt32.self))
    let stored = Int(base.integer(8, as: UInt32.self))
    if flags.contains(.commitMark), key == 0 {
      guard meta == 0, whole == 0, stored == 0, try copy(8, from: &position, to: 16) else { return .noHead }
      byteCount = 24
      finish(position)
      return .mark((bytes.baseAddress.map { UnsafeRawPointer($0) } ?? base).integer(16))
    }
    let count = 16 + key + 12 + meta + stored + 4
    guard key > 0, key <= 65_520, UInt64(count) <= file.byteCount else { return .noHead }
    guard count <= Self.maximumBytes else { return try readKeyOfLarge(key, count, from: position) }
    reserve(count)
    byteCount = count
    guard try copy(count - 16, from: &position, to: 16) else {
      if copied >= 16 + key + 12 {
        keyLength = key
        sequence = part(16 + key + 4, 8).baseAddress.map { $0.integer(0) } ?? 0
      }
      return .damaged("its continuation is missing")
    }
    finish(position)
    (keyLength, metaLength, bodyLength, storedLength) = (key, meta, whole, stored)
    guard let record = bytes.baseAddress.map({ UnsafeRawPointer($0) }) else { return .noHead }
    sequence = record.integer(16 + key + 4)
    let said = UInt32(littleEndian: record.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
    guard CRC32.isEqual(said, CRC32.of(part(0, count - 4))) || isRight(said, count) else {
      return .damaged("its checksum is wrong")
    }
    return .record
  }

  /// Reads the key of a record that is too large to be read.
  private func readKeyOfLarge(_ key: Int, _ count: Int, from start: BlockPosition) throws -> Outcome {
    var position = start
    let before = 16 + key + 12
    byteCount = before
    reserve(before)
    let outcome = Outcome.damaged("it has \(count) bytes, and at most \(Self.maximumBytes) are read")
    guard try copy(before - 16, from: &position, to: 16) else { return outcome }
    keyLength = key
    sequence = part(16 + key + 4, 8).baseAddress.map { $0.integer(0) } ?? 0
    var rest = count - before
    while rest > 0 {
      if position.byte >= version.payloadBytes {
        guard let next = try chain.following(position.block) else { return outcome }
        position = BlockPosition(block: next, byte: 0)
        continuations.append(next)
        byteCount += BlockFile.blockBytes
      }
      let part = min(rest, version.payloadBytes - position.byte)
      position.byte += part
      rest -= part
    }
    finish(position)
    return outcome
  }

  /// The checksum of a head doesn't cover the flags. If the record is right with others, it gets them.
  private func isRight(_ sum: UInt32, _ count: Int) -> Bool {
    let said = flags
    for known in Self.knownFlags where known != said.rawValue {
      bytes[Self.flagsAt] = known
      guard sum == CRC32.of(part(0, count - 4)) else { continue }
      flags = RecordFlags(rawValue: known)
      return true
    }
    bytes[Self.flagsAt] = said.rawValue
    return false
  }

  static let flagsAt = 12
  /// The flags that records have.
  private static let knownFlags: [UInt8] = [0x0A, 0x02, 0x0C, 0x08, 0x04, 0x00, 0x22, 0x20]

  /// Whether the record at an offset has this key. Only its head and its key are read.
  func hasKey(at offset: UInt64, _ wanted: UnsafeRawBufferPointer) throws -> Bool {
    keyLength = 0
    guard var position = BlockPosition(offset, file, version), try copy(16, from: &position, to: 0) else {
      return false
    }
    let count = bytes.baseAddress.map { Int(UnsafeRawPointer($0).integer(0, as: UInt16.self)) } ?? 0
    guard count == wanted.count else { return false }
    reserve(16 + count)
    guard try copy(count, from: &position, to: 16) else { return false }
    return equalBytes(part(16, count), wanted)
  }

  private func finish(_ position: BlockPosition) {
    end = position
    isEndKnown = true
  }

  /// Copies bytes from a position on, through the blocks that follow, and moves the position. Returns false if
  /// the blocks end before.
  private func copy(_ wanted: Int, from position: inout BlockPosition, to target: Int) throws -> Bool {
    var done = 0
    defer { copied = target + done }
    guard let base = bytes.baseAddress else { return false }
    while done < wanted {
      if position.byte >= version.payloadBytes {
        guard let next = try chain.following(position.block) else { return false }
        position = BlockPosition(block: next, byte: 0)
        continuations.append(next)
      }
      let block = try file.block(position.block)
      let count = min(wanted - done, version.payloadBytes - position.byte)
      (base + target + done).copyMemory(from: block + position.byte, byteCount: count)
      position.byte += count
      done += count
    }
    return true
  }

  private func reserve(_ count: Int) {
    guard bytes.count < count else { return }
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(count, bytes.count * 2), alignment: 16)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<16]))
    bytes.deallocate()
    bytes = larger
  }

  /// Releases memory that a large record took.
  func shrink() {
    let limit = 4 << 20
    if bytes.count > limit {
      bytes.deallocate()
      bytes = .allocate(byteCount: 4_096, alignment: 16)
      keyLength = 0
      metaLength = 0
      storedLength = 0
    }
    if decompressed.count > limit {
      decompressed.deallocate()
      decompressed = .allocate(byteCount: 4_096, alignment: 16)
    }
  }

  // MARK: The body

  /// Returns the body, decompressed; nil if it can't be. It is valid until the next call or record.
  func body() -> UnsafeRawBufferPointer? {
    let stored = storedBody
    guard flags.contains(.compressed), storedLength > 0 else {
      return bodyLength == storedLength ? stored : nil
    }
    // An element of at most 64 bytes takes at least two.
    guard bodyLength <= Self.maximumBytes, bodyLength <= 32 * storedLength,
      let input = stored.baseAddress?.assumingMemoryBound(to: CChar.self)
    else { return nil }
    var length = 0
    guard snappy_uncompressed_length(input, storedLength, &length) == SNAPPY_OK, length == bodyLength else {
      return nil
    }
    if decompressed.count < length {
      decompressed.deallocate()
      decompressed = .allocate(byteCount: max(length, 4_096), alignment: 16)
    }
    guard
      snappy_uncompress(
        input, storedLength, decompressed.baseAddress?.assumingMemoryBound(to: CChar.self), &length)
        == SNAPPY_OK
    else { return nil }
    return UnsafeRawBufferPointer(rebasing: decompressed[..<length])
  }
}
