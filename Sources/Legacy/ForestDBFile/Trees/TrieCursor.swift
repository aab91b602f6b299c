// The main index: a trie over pieces of the key of 8 bytes, the first of which is the number of the store. Each node of
// the trie is a B+tree of one piece. A node of a B+tree is a block or a part of one:
//
//   pointer   bits 0-47 the block; bits 48-55 zero: the whole block; else bits 53-55 minus 1 the class c of the part,
//             of 128·2^c bytes, and bits 48-52 its number in the block
//   node      u8 key size 8     u8 value size 8     u16 flags: 1 root, 2 has metadata     u16 level, 1 is a leaf
//             u16 number of entries     u32 in the first node of a block: its CRC-32     u32
//             metadata: u16 length m, m bytes, filled up so that 2 + m is a multiple of 16
//             entries: u64 key, u64 value
//   metadata  of a trie's node: u16 number of its piece (bit 15: keys in another order, which isn't read)
//             u8 0, or 8 and then a u64: the offset of a record     the pieces skipped since the node above
//   value     level > 1: a pointer to a node one level below
//             level 1: with bit 63, a pointer to the next node of the trie; without, the offset of a record
//
// The CRC-32 is over the block, with FF in the bytes 8...15. A block whose marker isn't FF has none.

/// Goes through the offsets of records in a trie, in the order of the keys. Nothing is recursive, and a damaged trie
/// ends: a node has to lie one level below its parent, and a trie has no more nodes than the file has room for.
final class TrieCursor {
  private struct Frame {
    var block: Int
    /// The place of the entries in the block.
    var entries: Int
    var count: Int
    var level: Int
    var next = 0
    /// Whether the node is of the first piece, whose entries are stores.
    var isOfStores: Bool
    /// The number of nodes of the trie above.
    var depth: Int
    /// The number of the piece of the key; nil if the node doesn't say.
    var piece: Int?
    /// The key of the entry that was taken last.
    var entryKey: UInt64 = 0
  }

  private let file: BlockFile
  private let store: UInt64?
  private var stack: [Frame] = []
  /// An offset in the metadata of a node.
  private var pending: UInt64?
  /// The store that all keys are of, where the root doesn't branch by stores.
  private var onlyStore: UInt64?
  private(set) var knowsStores = true
  private var visits = 0
  private var checkedBlock = -1

  /// A key has at most 65,520 bytes.
  private static let maximumDepth = 8_192
  private static let maximumLevels = 32

  /// `root` is a pointer of a header. With `store`, the others' records are passed over where the trie tells
  /// them apart.
  init(_ file: BlockFile, root: UInt64, store: UInt64?) throws {
    self.file = file
    self.store = store
    guard root != nowhere else { return }
    try push(root, level: nil, isOfStores: true, depth: 0, piece: nil)
    knowsStores = stack.last?.isOfStores == true || onlyStore != nil
    if let store, let onlyStore, store != onlyStore {
      stack.removeAll()
      pending = nil
    }
  }

  /// Whether the way through the trie to the offset that was found last is that of a key.
  func leads(to key: UnsafeRawBufferPointer) -> Bool {
    if let onlyStore, Self.piece(0, of: key) != onlyStore { return false }
    for frame in stack where frame.level == 1 && frame.next > 0 {
      if let piece = frame.piece, Self.piece(piece, of: key) != frame.entryKey { return false }
    }
    return true
  }

  /// A piece of a key. The last one is filled up with zeros; one more says how many of its bytes are used.
  private static func piece(_ number: Int, of key: UnsafeRawBufferPointer) -> UInt64 {
    guard let start = key.baseAddress else { return 0 }
    let pieces = (key.count + 7) / 8
    guard number < pieces else { return number == pieces ? UInt64(key.count - 8 * (pieces - 1)) : 0 }
    guard 8 * number + 8 > key.count else { return start.integer(8 * number) }
    var value: UInt64 = 0
    for index in (8 * number)..<(8 * number + 8) {
      value = value << 8 | UInt64(index < key.count ? key[index] : 0)
    }
    return value
  }

  /// Returns the next offset, or nil at the end. Throws `damaged`.
  func next() throws -> UInt64? {
    while true {
      if let found = pending {
        pending = nil
        return found
      }
      guard let top = stack.indices.last else { return nil }
      let frame = stack[top]
      guard frame.next < frame.count else {
        stack.removeLast()
        continue
      }
      stack[top].next += 1
      let entry = try file.block(frame.block) + frame.entries + 16 * frame.next
      let value: UInt64 = entry.integer(8)
      if frame.level > 1 {
        try push(
          value, level: frame.level - 1, isOfStores: frame.isOfStores, depth: frame.depth, piece: frame.piece)
        continue
      }
      let key: UInt64 = entry.integer(0)
      if frame.isOfStores, let store, key != store { continue }
      stack[top].entryKey = key
      guard value >> 63 == 1 else { return value }
      try push(value, level: nil, isOfStores: false, depth: frame.depth + 1, piece: nil)
    }
  }

  private func damaged(_ message: String, _ block: Int, _ byte: Int = 0) -> ForestDBError {
    ForestDBError(
      .damaged, "a node of the index is damaged (\(message))", path: file.path,
      offset: UInt64(block) * UInt64(BlockFile.blockBytes) + UInt64(byte))
  }

  /// Enters a node. `level` is that which it has to have; nil for the root of a B+tree.
  private func push(_ pointer: UInt64, level: Int?, isOfStores: Bool, depth: Int, piece: Int?) throws {
    let number = Int(pointer & 0xFFFF_FFFF_FFFF)
    guard number < file.count else {
      throw damaged("there is no block \(number)", stack.last?.block ?? 0, stack.last?.entries ?? 0)
    }
    let part = Int(pointer >> 48) & 0xFF
    var start = 0
    var size = BlockFile.blockBytes - 1
    if part != 0 {
      let sizeClass = (part >> 5) - 1
      guard sizeClass >= 0, sizeClass <= 4 else { throw damaged("a pointer is invalid", number) }
      size = 128 << sizeClass
      start = (part & 0x1F) * size
      guard start + size <= BlockFile.blockBytes else { throw damaged("a pointer is invalid", number) }
    }
    visits += 1
    guard visits <= file.count * 32 else { throw damaged("nodes are reached more than once", number, start) }
    guard depth <= Self.maximumDepth else { throw damaged("it lies too deep", number, start) }
    let block = try file.block(number)
    try check(block, number)
    let node = block + start
    let flags: UInt16 = node.integer(2)
    let found = Int(node.integer(4, as: UInt16.self))
    let count = Int(node.integer(6, as: UInt16.self))
    guard node.integer(0, as: UInt16.self) == 0x0808, found >= 1, found <= Self.maximumLevels,
      level.map({ $0 == found }) ?? true
    else { throw damaged("its sizes or its level are wrong", number, start) }
    var entries = 16
    var isOfStores = isOfStores
    var piece = piece
    if flags & 2 != 0 {
      let length = Int(node.integer(16, as: UInt16.self))
      entries = 16 + (2 + length + 15) / 16 * 16
      guard entries <= size else { throw damaged("its metadata is too long", number, start) }
      if level == nil, length >= 3 {
        let said: UInt16 = node.integer(18)
        guard said & 0x8000 == 0 else {
          throw ForestDBError(
            .unsupported, "the index has keys in an order of its own, which isn't read", path: file.path,
            offset: UInt64(number) * UInt64(BlockFile.blockBytes))
        }
        piece = Int(said)
        let skippedAt = node.load(fromByteOffset: 20, as: UInt8.self) == 8 ? 29 : 21
        if isOfStores, said != 0 {
          isOfStores = false
          if 18 + length >= skippedAt + 8 { onlyStore = node.integer(skippedAt) }
        }
        switch node.load(fromByteOffset: 20, as: UInt8.self) {
        case 0: break
        case 8 where length >= 11: pending = node.integer(21)
        default: throw damaged("its metadata is wrong", number, start)
        }
      }
    }
    guard entries + 16 * count <= size else { throw damaged("it has too many entries", number, start) }
    stack.append(
      Frame(
        block: number, entries: start + entries, count: count, level: found, isOfStores: isOfStores,
        depth: depth, piece: piece))
  }

  private func check(_ block: UnsafeRawPointer, _ number: Int) throws {
    guard number != checkedBlock else { return }
    let marker = block.load(fromByteOffset: BlockFile.blockBytes - 1, as: UInt8.self)
    if marker == BlockMarker.node {
      guard Self.isWhole(block) else { throw damaged("its checksum is wrong", number) }
    } else if [BlockMarker.document, BlockMarker.header].contains(marker) {
      throw damaged("the block is none of nodes", number)
    }
    checkedBlock = number
  }

  /// Whether the checksum of a block with the marker of nodes is right.
  static func isWhole(_ block: UnsafeRawPointer) -> Bool {
    var sum = CRC32.of(UnsafeRawBufferPointer(start: block, count: 8))
    let filling: (UInt64) = .max
    sum = withUnsafeBytes(of: filling) { CRC32.of($0, after: sum) }
    sum = CRC32.of(UnsafeRawBufferPointer(start: block + 16, count: BlockFile.blockBytes - 16), after: sum)
    return CRC32.isEqual(block.integer(8), sum)
  }
}
