import Glibc

extension Node {
  /// The number of bytes of all cells and their slots.
  var usedBytes: Int { capacity - top - garbage + 2 * count }

  /// The number of bytes for cells and slots in an empty node.
  var usableBytes: Int { capacity - Node.headerBytes }

  /// Returns whether a cell of `size` bytes fits beside the others.
  func fits(_ size: Int) -> Bool { usedBytes + size + 2 <= usableBytes }

  /// Inserts a cell that fits, and returns the memory for its bytes.
  func insertCell(at index: Int, _ size: Int) -> UnsafeMutableRawPointer {
    let count = count
    if top - (Node.headerBytes + 2 * count) < size + 2 { compact() }
    let slot = bytes + Node.headerBytes + 2 * index
    memmove(slot + 2, slot, 2 * (count - index))
    top -= size
    setOffset(index, top)
    self.count = count + 1
    return bytes + top
  }

  func removeCell(at index: Int) {
    let count = count
    let size = cellBytes(index)
    if offset(index) == top { top += size } else { garbage += size }
    let slot = bytes + Node.headerBytes + 2 * index
    memmove(slot, slot + 2, 2 * (count - index - 1))
    self.count = count - 1
    if count == 1 {
      top = capacity
      garbage = 0
    }
  }

  /// Moves all cells to the end of the node, without gaps.
  private func compact() {
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 16) { scratch in
      let old = scratch.baseAddress.unsafelyUnwrapped
      old.copyMemory(from: bytes, byteCount: capacity)
      var end = capacity
      let isLeaf = level == 0
      for index in 0..<count {
        let cell = old + offset(index)
        let size = Node.cellBytes(cell, isLeaf: isLeaf)
        end -= size
        memcpy(bytes + end, cell, size)
        setOffset(index, end)
      }
      top = end
      garbage = 0
      explicit_bzero(old, capacity)
    }
  }

  /// Moves the cells from `index` on to the end of another node of the same level, which must have room.
  func moveCells(from index: Int, to other: Node) {
    other.appendCells(of: self, from: index)
    for index in stride(from: count - 1, through: index, by: -1) { removeCell(at: index) }
  }

  /// Copies the cells of another node from `index` on to the end of this node, which must have room.
  func appendCells(of other: Node, from index: Int) {
    for index in index..<other.count {
      let size = other.cellBytes(index)
      insertCell(at: count, size).copyMemory(from: other.bytes + other.offset(index), byteCount: size)
    }
  }

  /// Inserts the cell of a child. There must be room.
  func insertChild(at index: Int, _ key: UnsafeRawBufferPointer, _ reference: Reference) {
    let cell = insertCell(at: index, Node.branchCellBytes + key.count)
    Node.writeBranchCell(cell, key, reference)
  }

  static func writeBranchCell(
    _ cell: UnsafeMutableRawPointer, _ key: UnsafeRawBufferPointer, _ reference: Reference
  ) {
    cell.storeBytes(of: UInt16(truncatingIfNeeded: key.count).littleEndian, as: UInt16.self)
    reference.write(to: cell + 2)
    if let start = key.baseAddress, key.count > 0 { memcpy(cell + Node.branchCellBytes, start, key.count) }
  }

  /// Returns whether a pointer leads into this node's memory.
  @inline(__always)
  func holds(_ pointer: UnsafeRawPointer?) -> Bool {
    guard let pointer else { return false }
    return pointer >= UnsafeRawPointer(bytes) && pointer < UnsafeRawPointer(bytes) + capacity
  }
}
