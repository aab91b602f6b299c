/// The rows of a live query, and how they differ from the rows handed over before, for lists that animate.
///
/// Rows are the same row before and after if their keys are equal. The key is a column that the caller names.
/// The differences are applied to the old list in this order:
///
/// 1. Remove the rows at `removed` and at the old indices of `moved`, the highest index first.
/// 2. Insert the rows at `inserted` and at the new indices of `moved`, the lowest index first.
/// 3. Replace the rows at the new indices of `updated`.
///
/// Then the list is `rows`. Views of lists take the same differences in one step: old indices are those before
/// any change, new indices those after all of them. `apply(to:_:)` applies them to an array.
///
/// No smaller number of moves is possible. A row that moved and also changed is in `moved` and in `updated`.
/// Of several rows with the same key, the first one before is the first one after, and so on. Rows without a
/// key count as rows with the same key, and those whose key is null too. Keys and values are compared as by
/// `=`, so 1 equals 1.0.
public struct RowChanges: Sendable {
  /// The differences after a run of a live query, or the error of the run.
  public typealias Outcome = Result<RowChanges, any Error>

  /// The index of a row before and after the change.
  public struct IndexPair: Sendable, Hashable {
    /// The index in the old rows.
    public let old: Int
    /// The index in the new rows.
    public let new: Int
  }

  /// The new rows.
  public let rows: QueryResults
  /// The number of old rows. At first there are none, and all rows are inserted.
  public let oldCount: Int
  /// The rows that aren't there any more: indices in the old rows, ascending.
  public let removed: [Int]
  /// The rows that weren't there before: indices in the new rows, ascending.
  public let inserted: [Int]
  /// The rows that changed their place among the rows that stay, in the order of their new indices. A row that
  /// has another index only because others were inserted or removed isn't here.
  public let moved: [IndexPair]
  /// The rows that stay, but with other values, in the order of their new indices.
  public let updated: [IndexPair]

  /// Whether nothing differs.
  public var isEmpty: Bool { removed.isEmpty && inserted.isEmpty && moved.isEmpty && updated.isEmpty }

  /// Compares two results of a query. Without old rows, all new ones are inserted.
  ///
  /// - Parameter key: the index of the column with the keys.
  package init(from old: QueryResults?, to new: QueryResults, key: Int) {
    rows = new
    oldCount = old?.count ?? 0
    guard let old else {
      (removed, inserted, moved, updated) = ([], Array(new.indices), [], [])
      return
    }
    let (kept, removed, inserted) = RowChanges.pairs(old, new, key)
    self.removed = removed
    self.inserted = inserted
    let stays = RowChanges.longestIncreasing(kept.map(\.old))
    moved = zip(kept, stays).filter { !$0.1 }.map(\.0)
    updated = kept.filter { !old.row($0.old, equals: $0.new, of: new) }
  }

  /// Applies the differences to an array that has one item for each old row. If it has another number of items,
  /// it is made again from all rows. `make` makes the item of a row that was inserted or updated. If it throws,
  /// nothing changes.
  public func apply<Item>(to items: inout [Item], _ make: (QueryRow) throws -> Item) rethrows {
    guard items.count == oldCount else {
      items = try rows.map(make)
      return
    }
    var isTaken = [Bool](repeating: false, count: oldCount)
    for index in removed { isTaken[index] = true }
    for pair in moved { isTaken[pair.old] = true }
    var staying = items.indices.lazy.filter { !isTaken[$0] }.makeIterator()
    // The old index of each new row. Nil for those that are made.
    var sources: [Int?] = []
    sources.reserveCapacity(rows.count)
    var (nextInserted, nextMoved) = (0, 0)
    for index in rows.indices {
      if nextInserted < inserted.count, inserted[nextInserted] == index {
        sources.append(nil)
        nextInserted += 1
      } else if nextMoved < moved.count, moved[nextMoved].new == index {
        sources.append(moved[nextMoved].old)
        nextMoved += 1
      } else {
        sources.append(staying.next())
      }
    }
    for pair in updated { sources[pair.new] = nil }
    items = try sources.indices.map { index in
      if let source = sources[index] { items[source] } else { try make(rows[index]) }
    }
  }

  // MARK: Differences

  /// The rows that are in both results, in the order of their new indices, and those that are in one only.
  private static func pairs(_ old: QueryResults, _ new: QueryResults, _ key: Int) -> (
    kept: [IndexPair], removed: [Int], inserted: [Int]
  ) {
    // For each key its first old row, and for each old row the next one with the same key.
    var first: [ComparedRowKey: Int] = Dictionary(minimumCapacity: old.count)
    var next = [Int?](repeating: nil, count: old.count)
    for index in old.indices.reversed() {
      let key = ComparedRowKey(old, index, key)
      next[index] = first.updateValue(index, forKey: key)
    }
    var (kept, inserted): ([IndexPair], [Int]) = ([], [])
    var isKept = [Bool](repeating: false, count: old.count)
    for index in new.indices {
      let key = ComparedRowKey(new, index, key)
      guard let partner = first[key] else {
        inserted.append(index)
        continue
      }
      first[key] = next[partner]
      isKept[partner] = true
      kept.append(IndexPair(old: partner, new: index))
    }
    return (kept, old.indices.filter { !isKept[$0] }, inserted)
  }

  /// For each number, whether it belongs to a longest increasing subsequence. The numbers differ.
  static func longestIncreasing(_ numbers: [Int]) -> [Bool] {
    // For each length, the position of the smallest number that ends a subsequence of that length.
    var ends: [Int] = []
    var previous = [Int?](repeating: nil, count: numbers.count)
    for (position, number) in numbers.enumerated() {
      var (low, high) = (0, ends.count)
      while low < high {
        let middle = (low + high) / 2
        if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
      }
      previous[position] = low > 0 ? ends[low - 1] : nil
      if low == ends.count { ends.append(position) } else { ends[low] = position }
    }
    var belongs = [Bool](repeating: false, count: numbers.count)
    var position = ends.last
    while let current = position {
      belongs[current] = true
      position = previous[current]
    }
    return belongs
  }
}

/// The key of a row. It points into results that the caller holds.
private struct ComparedRowKey: Hashable {
  private let value: QueryValue
  private static var order: ValueOrder { ValueOrder(.empty) }

  init(_ rows: QueryResults, _ index: Int, _ column: Int) { value = rows.value(index, column) }

  static func == (left: ComparedRowKey, right: ComparedRowKey) -> Bool {
    order.areSame(left.value, right.value)
  }

  func hash(into hasher: inout Hasher) { hasher.combine(Self.order.hash(value)) }
}
