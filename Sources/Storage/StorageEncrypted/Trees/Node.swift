// The plaintext of a node. All nodes of a file have the same size.
//
//   node   := level:u8 0:u8 count:u16 top:u16 garbage:u16 slot* free cell*
//   slot   := offset:u16                of a cell, in order of keys
//   leaf   := keyBytes:u16 valueBytes:u32 key value                level 0
//           | keyBytes:u16 valueBytes:u32 key reference            bit 31 of valueBytes set: a value in chunks
//   branch := keyBytes:u16 reference key                           level 1 and above: the child's level is one less
//
// `top` is the offset of the lowest cell. `garbage` is the number of bytes of removed cells above it. The
// child of a branch cell has the keys from the cell's own key up to the next cell's key. The key of the first
// cell is ignored.

import Glibc
import Storage

/// A decrypted node. If it `isClean`, it never changes again, and any thread may read it.
final class Node: @unchecked Sendable {
  static let headerBytes = 8
  static let leafCellBytes = 6
  static let branchCellBytes = 2 + Reference.byteCount
  static let largeFlag: UInt32 = 1 << 31
  /// The epoch of a node that no transaction may change.
  static let clean = -1

  let bytes: UnsafeMutableRawPointer
  let capacity: Int
  @exclusivity(unchecked) var reference: Reference
  /// The part of a write transaction that may change the node.
  @exclusivity(unchecked) var epoch = Node.clean
  /// The reference of the node's record in the file. Only in changed nodes.
  @exclusivity(unchecked) var stored: Reference?

  /// Allocates memory for a node. The contents are undefined.
  init(capacity: Int, reference: Reference) {
    self.capacity = capacity
    self.reference = reference
    bytes = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit {
    explicit_bzero(bytes, capacity)
    bytes.deallocate()
  }

  /// Makes an empty node.
  convenience init(capacity: Int, reference: Reference, level: Int) {
    self.init(capacity: capacity, reference: reference)
    memset(bytes, 0, capacity)
    bytes.storeBytes(of: UInt8(level), as: UInt8.self)
    top = capacity
  }

  /// Returns a node with the same contents.
  func copy() -> Node {
    let copy = Node(capacity: capacity, reference: reference)
    copy.bytes.copyMemory(from: bytes, byteCount: capacity)
    copy.stored = stored
    return copy
  }

  // MARK: Reading

  @inline(__always) var isClean: Bool { epoch == Node.clean }

  @inline(__always) var level: Int { Int(bytes.load(as: UInt8.self)) }

  @inline(__always) var count: Int {
    get { load16(2) }
    set { store16(newValue, 2) }
  }

  @inline(__always) var top: Int {
    get { load16(4) }
    set { store16(newValue, 4) }
  }

  @inline(__always) var garbage: Int {
    get { load16(6) }
    set { store16(newValue, 6) }
  }

  @inline(__always)
  private func load16(_ offset: Int) -> Int {
    Int(UInt16(littleEndian: bytes.load(fromByteOffset: offset, as: UInt16.self)))
  }

  @inline(__always)
  private func store16(_ value: Int, _ offset: Int) {
    bytes.storeBytes(
      of: UInt16(truncatingIfNeeded: value).littleEndian, toByteOffset: offset, as: UInt16.self)
  }

  @inline(__always) func offset(_ index: Int) -> Int { load16(Node.headerBytes + 2 * index) }

  @inline(__always) func setOffset(_ index: Int, _ offset: Int) {
    store16(offset, Node.headerBytes + 2 * index)
  }

  @inline(__always)
  func keyBytes(_ cell: UnsafeRawPointer) -> Int {
    Int(UInt16(littleEndian: cell.loadUnaligned(as: UInt16.self)))
  }

  @inline(__always)
  func leafKey(_ index: Int) -> UnsafeRawBufferPointer {
    let cell = UnsafeRawPointer(bytes) + offset(index)
    return UnsafeRawBufferPointer(start: cell + Node.leafCellBytes, count: keyBytes(cell))
  }

  @inline(__always)
  func branchKey(_ index: Int) -> UnsafeRawBufferPointer {
    let cell = UnsafeRawPointer(bytes) + offset(index)
    return UnsafeRawBufferPointer(start: cell + Node.branchCellBytes, count: keyBytes(cell))
  }

  @inline(__always)
  func key(_ index: Int) -> UnsafeRawBufferPointer { level == 0 ? leafKey(index) : branchKey(index) }

  @inline(__always)
  func child(_ index: Int) -> Reference { Reference(UnsafeRawPointer(bytes) + offset(index) + 2) }

  func setChild(_ index: Int, _ reference: Reference) { reference.write(to: bytes + offset(index) + 2) }

  /// The value of a leaf cell: its bytes, or the reference and length of a large value.
  enum Value {
    case inline(UnsafeRawBufferPointer)
    case large(Reference, count: Int)
  }

  @inline(__always)
  func value(_ index: Int) -> Value {
    let cell = UnsafeRawPointer(bytes) + offset(index)
    let start = cell + Node.leafCellBytes + keyBytes(cell)
    let count = UInt32(littleEndian: cell.loadUnaligned(fromByteOffset: 2, as: UInt32.self))
    if count & Node.largeFlag == 0 {
      return .inline(UnsafeRawBufferPointer(start: start, count: Int(count)))
    }
    return .large(Reference(start), count: Int(count & ~Node.largeFlag))
  }

  func cellBytes(_ index: Int) -> Int {
    Node.cellBytes(UnsafeRawPointer(bytes) + offset(index), isLeaf: level == 0)
  }

  static func cellBytes(_ cell: UnsafeRawPointer, isLeaf: Bool) -> Int {
    let key = Int(UInt16(littleEndian: cell.loadUnaligned(as: UInt16.self)))
    if !isLeaf { return branchCellBytes + key }
    let count = UInt32(littleEndian: cell.loadUnaligned(fromByteOffset: 2, as: UInt32.self))
    return leafCellBytes + key + (count & largeFlag == 0 ? Int(count) : Reference.byteCount)
  }

  // MARK: Searching

  /// Returns the index of the first entry of a leaf whose key is `key` or greater, and whether its key is
  /// `key`.
  @inline(__always)
  func find(_ key: UnsafeRawBufferPointer) -> (index: Int, isFound: Bool) {
    var low = 0
    var high = count
    while low < high {
      let middle = (low &+ high) >> 1
      let order = compareBytes(leafKey(middle), key)
      if order == 0 { return (middle, true) }
      if order < 0 { low = middle &+ 1 } else { high = middle }
    }
    return (low, false)
  }

  /// Returns the index of the branch cell whose child covers `key`.
  @inline(__always)
  func findChild(_ key: UnsafeRawBufferPointer) -> Int {
    var low = 1
    var high = count
    while low < high {
      let middle = (low &+ high) >> 1
      if compareBytes(branchKey(middle), key) <= 0 { low = middle &+ 1 } else { high = middle }
    }
    return low &- 1
  }

  /// Returns whether all offsets and lengths stay within the node, whatever the bytes are.
  func isSound() -> Bool {
    let count = count
    let slots = Node.headerBytes + 2 * count
    guard count > 0, top >= slots, top <= capacity else { return false }
    let fixed = level == 0 ? Node.leafCellBytes : Node.branchCellBytes
    for index in 0..<count {
      let offset = offset(index)
      guard offset >= top, offset + fixed <= capacity else { return false }
      let cell = UnsafeRawPointer(bytes) + offset
      guard keyBytes(cell) <= StorageLimits.maximumKeyBytes,
        offset + fixed + keyBytes(cell) <= capacity, offset + cellBytes(index) <= capacity
      else { return false }
      if level == 0, keyBytes(cell) == 0 { return false }
    }
    return true
  }
}
