import Storage

/// Records sorted by key, as a value: a copy takes constant time, and changing one leaves the other as it is.
///
/// The records lie in blocks. A change copies the list of blocks if a snapshot shares it, and one block. So a
/// transaction over n records copies n / 128 references once, and at most 256 for each change.
package struct SortedRecords: Sendable {
  /// A sorted part of the records. Snapshots share blocks; only an unshared one is changed.
  private final class Block: @unchecked Sendable {
    var records: [MemoryRecord]
    init(_ records: [MemoryRecord]) { self.records = records }
  }

  /// The position of a record, or the end of the records.
  package struct Position: Comparable {
    var block: Int
    var index: Int
    package static func < (left: Position, right: Position) -> Bool {
      (left.block, left.index) < (right.block, right.index)
    }
  }

  /// A block has at least one record, and splits when it has more than this.
  private static let maximumBlockCount = 256

  private var blocks: [Block] = []

  /// No records.
  package init() {}

  /// The number of records.
  package private(set) var count = 0
  /// The size of all keys and values, in bytes.
  package private(set) var byteCount = 0

  // MARK: Positions

  package var start: Position { Position(block: 0, index: 0) }
  package var end: Position { Position(block: blocks.count, index: 0) }

  package subscript(position: Position) -> MemoryRecord { blocks[position.block].records[position.index] }

  package func after(_ position: Position) -> Position {
    position.index + 1 < blocks[position.block].records.count
      ? Position(block: position.block, index: position.index + 1)
      : Position(block: position.block + 1, index: 0)
  }

  /// The position before, nil before the first record.
  package func before(_ position: Position) -> Position? {
    if position.index > 0 { return Position(block: position.block, index: position.index - 1) }
    guard position.block > 0 else { return nil }
    return Position(block: position.block - 1, index: blocks[position.block - 1].records.count - 1)
  }

  /// The position of the first record whose key isn't less than `key`, and whether that is its key.
  func position(of key: RawSpan) -> (position: Position, isFound: Bool) {
    // The last block that begins at or before the key has the key, if any block has.
    let next = Self.firstIndex(in: 0..<blocks.count) { blocks[$0].records[0].compare(to: key) > 0 }
    guard next > 0 else { return (start, false) }
    let records = blocks[next - 1].records
    let index = Self.firstIndex(in: 0..<records.count) { records[$0].compare(to: key) >= 0 }
    guard index < records.count else { return (Position(block: next, index: 0), false) }
    return (Position(block: next - 1, index: index), records[index].compare(to: key) == 0)
  }

  /// The first index for which `holds` is true; it must hold for all later ones. The upper bound if there is
  /// none.
  private static func firstIndex(in range: Range<Int>, _ holds: (Int) -> Bool) -> Int {
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if holds(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The positions of the records in a range of keys.
  package func positions(in range: KeyRange) -> (lower: Position, upper: Position) {
    func place(_ key: [UInt8], isAfterEqual: Bool) -> Position {
      let (position, isFound) = position(of: key.span.bytes)
      return isFound && isAfterEqual ? after(position) : position
    }
    let lower =
      switch range.lower {
      case .unbounded: start
      case .inclusive(let key): place(key, isAfterEqual: false)
      case .exclusive(let key): place(key, isAfterEqual: true)
      }
    let upper =
      switch range.upper {
      case .unbounded: end
      case .inclusive(let key): place(key, isAfterEqual: true)
      case .exclusive(let key): place(key, isAfterEqual: false)
      }
    return (lower, max(lower, upper))
  }

  /// The record with this key, or nil.
  package func record(at key: RawSpan) -> MemoryRecord? {
    let (position, isFound) = position(of: key)
    return isFound ? self[position] : nil
  }

  // MARK: Changes

  /// The records of a block, to be changed. A shared block is copied first.
  private mutating func change(_ block: Int, _ body: (inout [MemoryRecord]) -> Void) {
    if !isKnownUniquelyReferenced(&blocks[block]) { blocks[block] = Block(blocks[block].records) }
    body(&blocks[block].records)
  }

  /// Sets the value at a key, with a mark. If `replaces` is false and the key exists, it changes nothing and
  /// returns false.
  package mutating func set(_ key: RawSpan, _ value: RawSpan, replaces: Bool, mark: UInt8 = 0) -> Bool {
    var (position, isFound) = position(of: key)
    guard replaces || !isFound else { return false }
    let record = MemoryRecord(key: key, value: value, mark: mark)
    byteCount += record.byteCount
    if isFound {
      byteCount -= self[position].byteCount
      change(position.block) { $0[position.index] = record }
      return true
    }
    count += 1
    // A key between two blocks goes to the end of the first.
    if position.index == 0, position.block > 0 {
      position = Position(
        block: position.block - 1, index: blocks[position.block - 1].records.count)
    }
    guard !blocks.isEmpty else {
      blocks = [Block([record])]
      return true
    }
    change(position.block) { $0.insert(record, at: position.index) }
    let records = blocks[position.block].records
    if records.count > Self.maximumBlockCount {
      // Ascending keys fill their blocks.
      let isAppended = position.block == blocks.count - 1 && position.index == records.count - 1
      let half = isAppended ? records.count - 1 : records.count / 2
      blocks.insert(Block(Array(records[half...])), at: position.block + 1)
      change(position.block) { $0.removeSubrange(half...) }
    }
    return true
  }

  /// Removes the record with this key. Returns false if there is none.
  package mutating func remove(_ key: RawSpan) -> Bool {
    let (position, isFound) = position(of: key)
    if isFound { remove(position.block, position.index..<(position.index + 1)) }
    return isFound
  }

  /// Removes the records in a range of keys. Returns their number.
  mutating func remove(in range: KeyRange) -> Int {
    let before = count
    let (lower, upper) = positions(in: range)
    guard lower < upper else { return 0 }
    if lower.block == upper.block {
      remove(lower.block, lower.index..<upper.index)
    } else {
      if upper.block < blocks.count { remove(upper.block, 0..<upper.index) }
      for block in ((lower.block + 1)..<upper.block).reversed() {
        remove(block, 0..<blocks[block].records.count)
      }
      remove(lower.block, lower.index..<blocks[lower.block].records.count)
    }
    return before - count
  }

  /// Removes records of one block, and the block if it becomes empty.
  private mutating func remove(_ block: Int, _ range: Range<Int>) {
    count -= range.count
    byteCount -= blocks[block].records[range].reduce(0) { $0 + $1.byteCount }
    if range.count == blocks[block].records.count {
      blocks.remove(at: block)
    } else {
      change(block) { $0.removeSubrange(range) }
    }
  }

  // MARK: Checks

  /// One line for each broken invariant; empty if there is none.
  var faults: [String] {
    var faults: [String] = []
    var previous: MemoryRecord?
    var (seen, bytes) = (0, 0)
    for (number, block) in blocks.enumerated() {
      if block.records.isEmpty || block.records.count > Self.maximumBlockCount {
        faults.append("block \(number) has \(block.records.count) records")
      }
      for record in block.records {
        if let previous, record.withBytes({ key, _ in previous.compare(to: key) }) >= 0 {
          faults.append("record \(seen) isn't greater than the one before it")
        }
        previous = record
        seen += 1
        bytes += record.byteCount
      }
    }
    if (seen, bytes) != (count, byteCount) {
      faults.append("\(seen) records of \(bytes) bytes, counted as \(count) of \(byteCount)")
    }
    return faults
  }
}
