import Bytes
import Storage

/// Reads a range of rows through blocks: whole blocks by their entries, the rest by rows.
final class ReductionReader {
  private let tree: ReductionTree
  private let transaction: any ReadTransaction
  /// Nil to count only.
  let reduction: (any Reduction)?
  private(set) var count: UInt64 = 0

  init(_ tree: ReductionTree, _ transaction: any ReadTransaction, _ reduction: (any Reduction)?) {
    self.tree = tree
    self.transaction = transaction
    self.reduction = reduction
  }

  func reset() {
    count = 0
    reduction?.reset()
  }

  /// Adds the rows of a range, in order.
  func add(from: [UInt8], to: [UInt8]?) throws {
    if reduction != nil, !tree.storesPartials {
      try addRows(from: from, to: to)
    } else {
      try add(from: from, to: to, tree.levels)
    }
  }

  private func add(from: [UInt8], to: [UInt8]?, _ level: Int) throws {
    guard level > 0 else { return try addRows(from: from, to: to) }
    // The boundaries that were met last. The block between two of them is whole.
    var boundary: [UInt8]?
    var first: [UInt8]?
    var waiting: (rows: UInt64, partial: [UInt8]) = (0, [])
    try tree.entries.scan(
      ReductionTree.entryRange(level, from: from, to: to), order: .ascending, in: transaction
    ) { key, value in
      let next = [UInt8](copying: key.extracting(droppingFirst: 1))
      if first == nil {
        first = next
        // What comes before the first boundary is read from the level below.
        if next != from { try add(from: from, to: next, level - 1) }
      } else {
        try add(waiting.rows, waiting.partial.span.bytes)
      }
      boundary = next
      try ReductionTree.withBlock(value) { rows, partial in
        waiting.rows = rows
        waiting.partial.removeAll(keepingCapacity: true)
        if reduction != nil { partial.withUnsafeBytes { waiting.partial.append(contentsOf: $0) } }
      }
      return true
    }
    guard let boundary else { return try add(from: from, to: to, level - 1) }
    if to == nil {
      try add(waiting.rows, waiting.partial.span.bytes)
    } else {
      try add(from: boundary, to: to, level - 1)
    }
  }

  private func add(_ rows: UInt64, _ partial: RawSpan) throws {
    count += rows
    try reduction?.merge(partial)
  }

  private func addRows(from: [UInt8], to: [UInt8]?) throws {
    _ = try addRows(from: from, to: to, atMost: .max)
  }

  /// Adds rows until there are `limit` of them. Returns the key of the first one that is left.
  func addRows(from: [UInt8], to: [UInt8]?, atMost limit: Int) throws -> [UInt8]? {
    var left: [UInt8]?
    var added = 0
    try tree.rows.scan(
      ReductionTree.rowRange(from: from, to: to), order: .ascending,
      fetch: reduction == nil ? .keys : .entries,
      in: transaction
    ) { key, value in
      if added == limit {
        left = [UInt8](copying: key)
        return false
      }
      added += 1
      count += 1
      if let reduction { try reduction.add(try StoredRow(key, value), expanding: tree.expanding) }
      return true
    }
    return left
  }
}

extension KeyRange {
  /// The least key of the range, and the least one above it; nil if there is none.
  var keys: (from: [UInt8], to: [UInt8]?) {
    let from: [UInt8] =
      switch lower {
      case .unbounded: []
      case .inclusive(let key): key
      case .exclusive(let key): key + [0]
      }
    let to: [UInt8]? =
      switch upper {
      case .unbounded: nil
      case .inclusive(let key): key + [0]
      case .exclusive(let key): key
      }
    return (from, to)
  }
}

extension ReductionTree {
  /// The number of rows in a range of row keys.
  package func count(of range: KeyRange = .all, in transaction: any ReadTransaction) throws -> Int {
    let (from, to) = range.keys
    let reader = ReductionReader(self, transaction, nil)
    try reader.add(from: from, to: to)
    return Int(reader.count)
  }

  /// The number of rows before a row key.
  package func rank(of key: [UInt8], in transaction: any ReadTransaction) throws -> Int {
    try count(of: KeyRange(upper: .exclusive(key)), in: transaction)
  }

  /// Reduces the rows of a range of row keys. Returns their number, and the result unless there are none.
  ///
  /// A reducer that can't rereduce gets all rows. Throws the reducer's `ViewReduceError`.
  package func reduce(
    _ range: KeyRange = .all, in transaction: any ReadTransaction
  ) throws -> (count: Int, json: [UInt8])? {
    let (from, to) = range.keys
    let reader = ReductionReader(self, transaction, try reducer?.makeReduction())
    try reader.add(from: from, to: to)
    guard reader.count > 0 else { return nil }
    var json: [UInt8] = []
    try reader.reduction?.result(to: &json)
    return (Int(reader.count), json)
  }

  /// Walks through the groups of rows whose keys agree in their first `level` items. `Int.max` groups equal keys.
  package func groups(
    _ range: KeyRange = .all, level: Int, descending: Bool = false, in transaction: any ReadTransaction
  ) throws -> ReductionGroups {
    try ReductionGroups(self, range, level: level, descending: descending, transaction)
  }
}

/// Groups of rows, one after another. It lives as long as its transaction.
package final class ReductionGroups {
  /// A group of rows.
  package struct Group {
    /// The JSON of the whole key of the row that was met first.
    package let keyJSON: [UInt8]
    /// The number of rows.
    package let count: Int
    /// The result as JSON; empty without a reducer.
    package let json: [UInt8]
    /// The keys of the group's rows within the range.
    package let rows: KeyRange
  }

  private let tree: ReductionTree
  private let transaction: any ReadTransaction
  private let reader: ReductionReader
  private let level: Int
  private let descending: Bool
  private var from: [UInt8]
  private var to: [UInt8]?
  private var isAtEnd = false
  /// The JSON of the whole key of the first row of the last group, also if that has no result.
  private(set) var lastKeyJSON: [UInt8] = []

  init(
    _ tree: ReductionTree, _ range: KeyRange, level: Int, descending: Bool, _ transaction: any ReadTransaction
  ) throws {
    self.tree = tree
    self.transaction = transaction
    self.level = level
    self.descending = descending
    reader = ReductionReader(tree, transaction, try tree.reducer?.makeReduction())
    (from, to) = range.keys
  }

  /// Passes over a group. Returns false if there is none. This reads one row.
  package func skip() throws -> Bool { try step() != nil }

  /// The next group, or nil at the end. Throws the reducer's `ViewReduceError`; the next call goes on behind it.
  package func next() throws -> Group? {
    guard let step = try step() else { return nil }
    lastKeyJSON = step.keyJSON
    reader.reset()
    // Small groups are read row by row. Large ones begin so and go on by blocks.
    let limit = 2 << tree.blockBits
    if let left = try reader.addRows(from: step.from, to: step.to, atMost: limit) {
      try reader.add(from: left, to: step.to)
    }
    var json: [UInt8] = []
    try reader.reduction?.result(to: &json)
    return Group(
      keyJSON: step.keyJSON, count: Int(reader.count), json: json,
      rows: ReductionTree.rowRange(from: step.from, to: step.to))
  }

  /// The bounds of the next group, behind which the walk goes on.
  private func step() throws -> (keyJSON: [UInt8], from: [UInt8], to: [UInt8]?)? {
    guard !isAtEnd else { return nil }
    var keyJSON: [UInt8] = []
    var prefix: [UInt8]?
    try tree.rows.scan(
      ReductionTree.rowRange(from: from, to: to), order: descending ? .descending : .ascending,
      in: transaction
    ) { key, value in
      let row = try StoredRow(key, value)
      keyJSON = [UInt8](copying: row.keyJSON)
      let length = ViewKeyEncoder.groupPrefix(of: row.key, level: level)
      prefix = [UInt8](copying: row.key.extracting(first: length))
      return false
    }
    guard let prefix else {
      isAtEnd = true
      return nil
    }
    var upper: [UInt8]?
    if case .exclusive(let bound) = KeyRange.upperBound(ofPrefix: prefix) { upper = bound }
    if descending {
      let start = ReductionTree.order(prefix, from) > 0 ? prefix : from
      defer {
        to = start
        if start == from { isAtEnd = true }
      }
      return (keyJSON, start, ReductionGroups.least(upper, to))
    }
    let end = ReductionGroups.least(upper, to)
    let start = from
    if let end { from = end } else { isAtEnd = true }
    return (keyJSON, start, end)
  }

  private static func least(_ left: [UInt8]?, _ right: [UInt8]?) -> [UInt8]? {
    guard let left, let right else { return left ?? right }
    return ReductionTree.order(left, right) < 0 ? left : right
  }
}
