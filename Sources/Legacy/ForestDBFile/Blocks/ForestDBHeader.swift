// A header is a block that a commit writes. Integers have their highest byte first. "v2" has one field more, so
// all that follows it lies 8 bytes later (d = 0 or 8):
//
//   0       u64  block or node pointer of the main trie's root
//   8       u64  that of the tree by sequence
//   16      u64  v2: that of the tree of stale blocks
//   16+d    u64 × 4  counts (not used)
//   48+d    u64  the block of the header at which the log was last flushed into the trie
//   56+d    u64  the offset of the record that lists the stores
//   64+d    u64  flags
//   72+d    u16 x, u16 y; then x bytes: the name of the file that replaces this one; y bytes: the name of the file
//                that this one replaced; then u32: the CRC-32 of all that is before
//   L       u64  revision of the header       L+8  u64  last sequence of the default store
//   4061    u64  v2: revision of the bitmap of free blocks
//   4077    u64  block of the header before
//   4085    u16  L
//   4087    u64  magic
//   4095    u8   marker EE

/// The versions of the format.
package enum ForestDBVersion: Int, Sendable {
  /// Couchbase Lite 1.2: a file that only grows.
  case v1 = 1
  /// Couchbase Lite 1.3 and 1.4: superblocks, chained blocks, blocks that are used again.
  case v2 = 2

  static let firstMagic: UInt64 = 0xDEAD_CAFE_BEEF_C001
  static let secondMagic: UInt64 = 0xDEAD_CAFE_BEEF_C002

  init?(magic: UInt64) {
    switch magic {
    case Self.firstMagic: self = .v1
    case Self.secondMagic: self = .v2
    default: return nil
    }
  }

  /// The bytes of a document block that hold records.
  var payloadBytes: Int { self == .v1 ? 4_095 : 4_080 }
}

/// A pointer that points nowhere.
let nowhere = UInt64.max

/// A valid header.
struct ForestDBHeader {
  let block: Int
  let version: ForestDBVersion
  let root: UInt64
  let storeList: UInt64
  /// The block of the header at which the log was last flushed; nil if it never was.
  let flushedAt: UInt64?
  /// The last components of the names.
  let newName: String?
  let oldName: String?
  let revision: UInt64
  let lastSequence: UInt64
  let bitmapRevision: UInt64

  private static let magicAt = 4_087
  private static let lengthAt = 4_085
  private static let bitmapAt = 4_061

  /// Reads a block. Nil if it isn't a valid header.
  init?(_ bytes: UnsafeRawPointer, block: Int) {
    guard bytes.load(fromByteOffset: 4_095, as: UInt8.self) == BlockMarker.header else { return nil }
    self.init(withoutMarker: bytes, block: block)
  }

  private init?(withoutMarker bytes: UnsafeRawPointer, block: Int) {
    guard let version = ForestDBVersion(magic: bytes.integer(Self.magicAt))
    else { return nil }
    self.block = block
    self.version = version
    let shift = version == .v1 ? 0 : 8
    let length = Int(bytes.integer(Self.lengthAt, as: UInt16.self))
    let newLength = Int(bytes.integer(72 + shift, as: UInt16.self))
    let oldLength = Int(bytes.integer(74 + shift, as: UInt16.self))
    let namesAt = 76 + shift
    guard length == namesAt + newLength + oldLength + 4, length + 16 <= Self.bitmapAt,
      CRC32.isEqual(
        bytes.integer(length - 4), CRC32.of(UnsafeRawBufferPointer(start: bytes, count: length - 4)))
    else { return nil }
    root = bytes.integer(0)
    storeList = bytes.integer(56 + shift)
    let flushed: UInt64 = bytes.integer(48 + shift)
    flushedAt = flushed == nowhere ? nil : flushed
    newName = Self.lastComponent(UnsafeRawBufferPointer(start: bytes + namesAt, count: newLength))
    oldName = Self.lastComponent(UnsafeRawBufferPointer(start: bytes + namesAt + newLength, count: oldLength))
    revision = bytes.integer(length)
    lastSequence = bytes.integer(length + 8)
    bitmapRevision = version == .v1 ? 0 : bytes.integer(Self.bitmapAt)
  }

  /// What a block that isn't a valid header has been.
  enum Likeness {
    /// No header. Other blocks may hold bytes of a header where they aren't used.
    case none
    /// A header, by its last byte. In a file that is read with the wrong key, any byte can be that.
    case marker
    /// A header, or one of another version.
    case header
  }

  static func likeness(_ bytes: UnsafeRawPointer) -> Likeness {
    guard bytes.load(fromByteOffset: 4_095, as: UInt8.self) == BlockMarker.header else {
      return ForestDBHeader(withoutMarker: bytes, block: 0) == nil ? .none : .header
    }
    return ForestDBVersion(magic: bytes.integer(magicAt)) != nil || isOther(bytes) ? .header : .marker
  }

  /// Whether a block is a header of a version that isn't read.
  static func isOther(_ bytes: UnsafeRawPointer) -> Bool {
    let magic: UInt64 = bytes.integer(magicAt)
    return ForestDBVersion(magic: magic) == nil
      && magic >> 16 == ForestDBVersion.firstMagic >> 16
  }

  /// Names are absolute paths of the device that wrote the file, with `/` or `\`. They end with a zero byte.
  private static func lastComponent(_ bytes: UnsafeRawBufferPointer) -> String? {
    let text = bytes.prefix { $0 != 0 }
    guard !text.isEmpty else { return nil }
    let from = text.lastIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    return String(decoding: from.map { text[($0 + 1)...] } ?? text[...], as: UTF8.self)
  }
}

// A superblock is one of the blocks 0 to 3 of a v2 file. They are written in turn, one with each commit, before
// its header:
//
//   0   u64  magic           8   u64  revision of the superblock    16  u64  revision of the bitmap
//   24  u64  next free block  32  u64  block of the last header      40  u64  its revision
//   48  u64 × 4 (not used)   80  u64  bits of the bitmap            88  u64  bits of the reserved bitmap
//   96  u64 for each 2^23 bits, or a part of them, of both bitmaps; then u32: the CRC-32 of all that is before
//   4095 u8  marker CC

/// A valid superblock.
struct Superblock {
  static let count = 4
  let revision: UInt64
  let headerBlock: UInt64
  let headerRevision: UInt64

  init?(_ bytes: UnsafeRawPointer) {
    guard bytes.load(fromByteOffset: 4_095, as: UInt8.self) == BlockMarker.superblock,
      bytes.integer(0, as: UInt64.self) == ForestDBVersion.secondMagic
    else { return nil }
    func records(_ offset: Int) -> UInt64 { (bytes.integer(offset, as: UInt64.self) &+ 0x7F_FFFF) >> 23 }
    let (count, isTooMany) = records(80).addingReportingOverflow(records(88))
    guard !isTooMany, count <= 490 else { return nil }
    let end = 96 + 8 * Int(count)
    guard CRC32.isEqual(bytes.integer(end), CRC32.of(UnsafeRawBufferPointer(start: bytes, count: end)))
    else { return nil }
    revision = bytes.integer(8)
    headerBlock = bytes.integer(32)
    headerRevision = bytes.integer(40)
  }
}
