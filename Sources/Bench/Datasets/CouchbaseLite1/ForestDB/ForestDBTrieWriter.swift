/// Writes the trie of a ForestDB file from all its keys at once.
final class ForestDBTrieWriter {
  private let writer: ForestDBWriter
  private let keys: [[UInt8]]
  private let offsets: [UInt64]
  /// Blocks whose parts are nodes of one size, by that size.
  private var packed: [Int: (number: Int, next: Int, bytes: [UInt8])] = [:]
  private var packedBlocks = 0

  /// `entries` are sorted by their keys.
  init(_ writer: ForestDBWriter, _ entries: [(key: [UInt8], offset: UInt64)]) {
    self.writer = writer
    keys = entries.map(\.key)
    offsets = entries.map(\.offset)
  }

  /// Writes all nodes. Returns the pointer to the root.
  func write() throws -> UInt64 {
    guard !keys.isEmpty else { return .max }
    let root = try node(0..<keys.count, piece: 0, skipped: [])
    for (size, block) in packed { try finish(size, block.number, block.bytes) }
    return root & ~(1 << 63)
  }

  /// A piece of a key. The last piece is filled up with zeros; one more says how much of it is used.
  private func piece(_ number: Int, of key: Int) -> UInt64 {
    let bytes = keys[key]
    let count = (bytes.count + 7) / 8
    if number >= count { return number == count ? UInt64(bytes.count - 8 * (count - 1)) : 0 }
    var value: UInt64 = 0
    for index in (8 * number)..<(8 * number + 8) {
      value = value << 8 | UInt64(index < bytes.count ? bytes[index] : 0)
    }
    return value
  }

  /// Writes the node of the trie for keys that are equal up to a piece.
  private func node(_ range: Range<Int>, piece number: Int, skipped: [UInt8]) throws -> UInt64 {
    var entries: [(key: UInt64, value: UInt64)] = []
    var start = range.lowerBound
    while start < range.upperBound {
      let value = piece(number, of: start)
      var end = start + 1
      while end < range.upperBound, piece(number, of: end) == value { end += 1 }
      if end - start == 1 {
        entries.append((value, offsets[start]))
      } else {
        var next = number + 1
        var skipped: [UInt8] = []
        while piece(next, of: start) == piece(next, of: end - 1) {
          skipped += ForestDBWriter.bigEndian(piece(next, of: start))
          next += 1
        }
        entries.append((value, try node(start..<end, piece: next, skipped: skipped)))
      }
      start = end
    }
    let meta = ForestDBWriter.bigEndian(UInt16(number)) + [0] + skipped
    return try tree(entries, meta) | 1 << 63
  }

  /// Writes a B+tree. Returns the pointer to its root.
  private func tree(_ entries: [(key: UInt64, value: UInt64)], _ meta: [UInt8]) throws -> UInt64 {
    var head = ForestDBWriter.bigEndian(UInt16(meta.count)) + meta
    head += [UInt8](repeating: 0x66, count: (16 - head.count % 16) % 16)
    let wanted = 16 + head.count + 16 * entries.count
    if let size = [128, 256, 512, 1_024, 2_048].first(where: { wanted <= $0 }) {
      return try pack(bytes(entries, level: 1, head: head), size)
    }
    let perNode = (4_095 - 16) / 16
    let perRoot = (4_095 - 16 - head.count) / 16
    var level = 1
    var rest = entries
    while rest.count > perRoot {
      rest = try stride(from: 0, to: rest.count, by: perNode).map { start in
        let part = Array(rest[start..<min(start + perNode, rest.count)])
        return (part[0].key, try whole(bytes(part, level: level, head: nil)))
      }
      level += 1
    }
    return try whole(bytes(rest, level: level, head: head))
  }

  private func bytes(_ entries: [(key: UInt64, value: UInt64)], level: Int, head: [UInt8]?) -> [UInt8] {
    var bytes: [UInt8] = [8, 8]
    bytes += ForestDBWriter.bigEndian(UInt16(head == nil ? 0 : 3))
    bytes += ForestDBWriter.bigEndian(UInt16(level)) + ForestDBWriter.bigEndian(UInt16(entries.count))
    bytes += [UInt8](repeating: 0x5A, count: 8) + (head ?? [])
    for (key, value) in entries {
      bytes += ForestDBWriter.bigEndian(key)
      bytes += ForestDBWriter.bigEndian(value)
    }
    return bytes
  }

  private func whole(_ node: [UInt8]) throws -> UInt64 {
    let number = writer.takeBlock()
    try writer.writeNodes(
      node + [UInt8](repeating: 0x11, count: ForestDBWriter.blockBytes - node.count), number, hasMarker: true)
    return UInt64(number)
  }

  private func pack(_ node: [UInt8], _ size: Int) throws -> UInt64 {
    var block =
      packed[size]
      ?? (writer.takeBlock(), 0, [UInt8](repeating: 0x22, count: ForestDBWriter.blockBytes))
    let place = block.next * size
    block.bytes.replaceSubrange(place..<(place + node.count), with: node)
    let sizeClass = (size / 128).trailingZeroBitCount
    let pointer = UInt64(block.number) | UInt64(block.next) << 48 | UInt64(sizeClass + 1) << 53
    block.next += 1
    // The last part would cover the marker.
    if (block.next + 1) * size >= ForestDBWriter.blockBytes {
      try finish(size, block.number, block.bytes)
      packed[size] = nil
    } else {
      packed[size] = block
    }
    return pointer
  }

  /// Some of these blocks have no marker.
  private func finish(_ size: Int, _ number: Int, _ bytes: [UInt8]) throws {
    packedBlocks += 1
    try writer.writeNodes(bytes, number, hasMarker: packedBlocks % 3 != 0)
  }
}
