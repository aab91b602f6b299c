// The nodes of a page of LMDB.

extension PageCheck {
  struct Node {
    let offset: Int
    let keyBytes: Int
    let flags: UInt16
    let valueBytes: Int
    /// Only in a branch node.
    let child: UInt64
    /// The offset after the key.
    var end: Int { offset + 8 + keyBytes }

    /// Returns the number of bytes that the node takes on its page, an even number.
    func storedBytes(isLeaf: Bool) -> Int {
      let value = !isLeaf ? 0 : flags & NodeFlags.overflow != 0 ? 8 : valueBytes
      return (8 + keyBytes + value + 1) & ~1
    }
  }

  mutating func nodes(
    of page: UInt64, isLeaf: Bool, _ bytes: UnsafeRawBufferPointer, _ name: String
  ) -> [Node]? {
    let lower = Int(bytes.loadUnaligned(fromByteOffset: 12, as: UInt16.self))
    let upper = Int(bytes.loadUnaligned(fromByteOffset: 14, as: UInt16.self))
    guard lower > 16, lower % 2 == 0, lower <= upper, upper <= bytes.count else {
      report("\(name): page \(page) has impossible bounds of its free space, \(lower) and \(upper)")
      return nil
    }
    var nodes: [Node] = []
    nodes.reserveCapacity((lower - 16) / 2)
    for position in stride(from: 16, to: lower, by: 2) {
      let offset = Int(bytes.loadUnaligned(fromByteOffset: position, as: UInt16.self))
      guard offset >= upper, offset % 2 == 0, offset + 8 <= bytes.count else {
        report("\(name): page \(page) has a node at impossible offset \(offset)")
        return nil
      }
      let low = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let flags = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt16.self)
      let node = Node(
        offset: offset, keyBytes: Int(bytes.loadUnaligned(fromByteOffset: offset + 6, as: UInt16.self)),
        flags: flags, valueBytes: Int(low), child: UInt64(low) | UInt64(flags) << 32)
      nodes.append(node)
    }
    // Nodes must be contiguous up to the end of the page. LMDB moves them by their lengths when it removes
    // one.
    var end = upper
    for node in nodes.sorted(by: { $0.offset < $1.offset }) {
      guard node.offset == end else {
        report("\(name): page \(page) has a node at \(node.offset), but the previous one ends at \(end)")
        return nil
      }
      end += node.storedBytes(isLeaf: isLeaf)
    }
    guard end == bytes.count else {
      report("\(name): the nodes of page \(page) end at byte \(end) of \(bytes.count)")
      return nil
    }
    return nodes
  }
}
