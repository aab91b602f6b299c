// The plaintext of a node, as long as the file's nodes are:
//
//   node   := level:u8 0:u8 count:u16 top:u16 garbage:u16 slot* free cell*
//   slot   := offset:u16                of a cell, in order of keys
//   leaf   := keyBytes:u16 valueBytes:u32 key value                level 0
//           | keyBytes:u16 valueBytes:u32 key reference            bit 31 of valueBytes set: a value in chunks
//   branch := keyBytes:u16 reference key                           level 1 and above: the child's level is one less
//
// `top` is the offset of the lowest cell, `garbage` the bytes of cells that were removed above it. The child of a branch
// cell has the keys from its own on, up to the next one's; the first cell's own key counts for nothing.

import Glibc
import Storage

/// A decrypted node. One that `isClean` is never changed again, and may be read by any thread.
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
  /// Of the part of a write transaction that may change it.
  @exclusivity(unchecked) var epoch = Node.clean
  /// Of a node that was changed: what the file has under its number.
  @exclusivity(unchecked) var stored: Reference?

  /// Memory for a node; its contents are whatever was there.
  init(capacity: Int, reference: Reference) {
    self.capacity = capacity
    self.reference = reference
    bytes = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit {
    explicit_bzero(bytes, capacity)
    bytes.deallocate()
  }

  /// An empty one.
  convenience init(capacity: Int, reference: Reference, level: Int) {
    self.init(capacity: capacity, reference: reference)
    memset(bytes, 0, capacity)
    bytes.storeBytes(of: UInt8(level), as: UInt8.self)
    top = capacity
  }

  /// One with the same contents.
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

  /// A leaf's value: where it is, or, when it is large, its reference and length.
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

  /// Below 0 when `left` comes first.
  @inline(__always)
  static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let order = memcmp(
      left.baseAddress.unsafelyUnwrapped, right.baseAddress.unsafelyUnwrapped, min(left.count, right.count))
    return order != 0 ? Int(order) : left.count - right.count
  }

  /// The first entry of a leaf whose key is `key` or greater, and whether it is that key.
  @inline(__always)
  func find(_ key: UnsafeRawBufferPointer) -> (index: Int, isFound: Bool) {
    var low = 0
    var high = count
    while low < high {
      let middle = (low &+ high) >> 1
      let order = Node.compare(leafKey(middle), key)
      if order == 0 { return (middle, true) }
      if order < 0 { low = middle &+ 1 } else { high = middle }
    }
    return (low, false)
  }

  /// The cell of a branch below which `key` belongs.
  @inline(__always)
  func findChild(_ key: UnsafeRawBufferPointer) -> Int {
    var low = 1
    var high = count
    while low < high {
      let middle = (low &+ high) >> 1
      if Node.compare(branchKey(middle), key) <= 0 { low = middle &+ 1 } else { high = middle }
    }
    return low &- 1
  }

  /// Whether its structure stays within its bounds, whatever the bytes are.
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
