import Bytes
import Storage

/// Applies sorted changes of rows to the blocks of one level after another.
///
/// A block whose boundaries stay is changed by its rows' changes, where the reducer can. The others are reduced
/// anew from the level below.
final class ReductionUpdate {
  private let tree: ReductionTree
  private let changes: [ReductionTree.RowChange]
  private let transaction: any WriteTransaction
  private let reduction: (any Reduction)?
  private var value = ByteBuffer()

  init(
    _ tree: ReductionTree, _ changes: [ReductionTree.RowChange], _ transaction: any WriteTransaction
  ) throws {
    self.tree = tree
    self.changes = changes
    self.transaction = transaction
    reduction = try tree.makePartial()
  }

  func run(_ level: Int) throws {
    // The boundaries that came or went, in order.
    var moved: [(boundary: [UInt8], isNew: Bool)] = []
    for change in changes where change.level >= level && (change.old == nil) != (change.new == nil) {
      let isNew = change.old == nil
      moved.append((change.key, isNew))
      let key = ReductionTree.entryKey(level, change.key)
      if isNew {
        // Until it is reduced: a block of no rows.
        try tree.entries.put(key.span.bytes, [UInt8]().span.bytes, in: transaction)
      } else {
        try tree.entries.delete(key.span.bytes, in: transaction)
      }
    }
    var stale: [[UInt8]] = []
    for (boundary, isNew) in moved {
      stale.append(try start(before: boundary, isInclusive: false, level))
      if isNew { stale.append(boundary) }
    }
    var staleIndex = 0
    stale = stale.sorted { ReductionTree.order($0, $1) < 0 }
    var index = 0
    var reduced: [UInt8]?
    // Blocks in order: stale ones, and those that changes touch.
    while index < changes.count || staleIndex < stale.count {
      if staleIndex < stale.count, stale[staleIndex] == reduced {
        staleIndex += 1
        continue
      }
      let touched =
        index < changes.count
        ? try start(before: changes[index].key, isInclusive: true, level) : nil
      var boundary: [UInt8]
      var isStale = false
      if staleIndex < stale.count,
        touched.map({ ReductionTree.order(stale[staleIndex], $0) <= 0 }) ?? true
      {
        boundary = stale[staleIndex]
        isStale = true
        staleIndex += 1
      } else if let touched {
        boundary = touched
      } else {
        break
      }
      let end = try end(after: boundary, level)
      let first = index
      while index < changes.count, end.map({ ReductionTree.order(changes[index].key, $0) < 0 }) ?? true,
        touched == boundary
      { index += 1 }
      try update(boundary, end, changes[first..<index], isStale: isStale, level)
      reduced = boundary
    }
  }

  /// The boundary of the block that holds a key or ends at it.
  private func start(before key: [UInt8], isInclusive: Bool, _ level: Int) throws -> [UInt8] {
    var found: [UInt8] = []
    let upper = ReductionTree.entryKey(level, key)
    let range = KeyRange(
      lower: .inclusive([UInt8(level)]), upper: isInclusive ? .inclusive(upper) : .exclusive(upper))
    try tree.entries.scan(range, order: .descending, fetch: .keys, in: transaction) { key, _ in
      found = [UInt8](copying: key.extracting(droppingFirst: 1))
      return false
    }
    return found
  }

  /// The boundary at which a block ends; nil if it is the last one.
  private func end(after boundary: [UInt8], _ level: Int) throws -> [UInt8]? {
    var found: [UInt8]?
    let range = KeyRange(
      lower: .exclusive(ReductionTree.entryKey(level, boundary)), upper: .exclusive([UInt8(level + 1)]))
    try tree.entries.scan(range, order: .ascending, fetch: .keys, in: transaction) { key, _ in
      found = [UInt8](copying: key.extracting(droppingFirst: 1))
      return false
    }
    return found
  }

  private func update(
    _ boundary: [UInt8], _ end: [UInt8]?, _ changes: ArraySlice<ReductionTree.RowChange>, isStale: Bool,
    _ level: Int
  ) throws {
    let key = ReductionTree.entryKey(level, boundary)
    var rows: UInt64?
    // Above the first level a block of many changes is cheaper to merge than to change.
    if !isStale, level == 1 || changes.count < 1 << (tree.blockBits - 1) {
      rows = try change(key, changes)
    }
    let count = try rows ?? reduce(boundary, end, level)
    if count == 0 {
      try tree.entries.delete(key.span.bytes, in: transaction)
      return
    }
    value.removeAll(keepingAtMost: 1 << 16)
    try ReductionTree.write(count, reduction, into: &value)
    try tree.entries.put(key.span.bytes, value.bytes.bytes, in: transaction)
  }

  /// Applies changes to a stored block. Returns nil if they can't be applied.
  private func change(_ key: [UInt8], _ changes: ArraySlice<ReductionTree.RowChange>) throws -> UInt64? {
    var rows: UInt64 = 0
    reduction?.reset()
    let isStored = try tree.entries.read(key.span.bytes, in: transaction) { value in
      try ReductionTree.withBlock(value) { count, partial in
        rows = count
        try reduction?.merge(partial)
      }
    }
    guard isStored else { return nil }
    for change in changes {
      if let old = change.old {
        guard rows > 0 else { throw ViewReduceError.damaged }
        rows -= 1
        if let reduction {
          let row = try StoredRow(change.key.span.bytes, old.span.bytes)
          guard try reduction.remove(row, expanding: tree.expanding) else { return nil }
        }
      }
      if let new = change.new {
        rows += 1
        if let reduction {
          let row = try StoredRow(change.key.span.bytes, new.span.bytes)
          guard try reduction.insert(row, expanding: tree.expanding) else { return nil }
        }
      }
    }
    return rows
  }

  /// Reduces a block from the level below. Returns the number of rows.
  private func reduce(_ boundary: [UInt8], _ end: [UInt8]?, _ level: Int) throws -> UInt64 {
    var rows: UInt64 = 0
    reduction?.reset()
    if level == 1 {
      let range = ReductionTree.rowRange(from: boundary, to: end)
      try tree.rows.scan(
        range, order: .ascending, fetch: reduction == nil ? .keys : .entries, in: transaction
      ) { key, value in
        rows += 1
        if let reduction { try reduction.add(try StoredRow(key, value), expanding: tree.expanding) }
        return true
      }
    } else {
      let range = ReductionTree.entryRange(level - 1, from: boundary, to: end)
      try tree.entries.scan(range, order: .ascending, in: transaction) { _, value in
        try ReductionTree.withBlock(value) { count, partial in
          rows += count
          try reduction?.merge(partial)
        }
        return true
      }
    }
    return rows
  }
}
