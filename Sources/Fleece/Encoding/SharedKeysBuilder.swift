// Shared keys that grow while documents are encoded inside one write transaction.

/// A growing shared key table on top of an immutable one. For one thread at a time.
///
/// Nothing is copied until the first name is added, so making one for each transaction is cheap.
public final class SharedKeysBuilder {
  /// The table this one grew from.
  public let base: SharedKeys

  /// What the encoder reads and adds to; borrows the base's memory until `owned`.
  let state: UnsafeMutablePointer<State>
  private var lastSnapshot: SharedKeys?

  struct State {
    var table: KeyTable
    var owned = false

    /// Adds an eligible name that is not in the table, or returns -1 when the table is full.
    @inline(never)
    mutating func add(_ name: ShortName, length: Int) -> Int {
      guard table.count < FleeceLimits.sharedKeys else { return -1 }
      if !owned || table.count == table.capacity {
        let larger = KeyTable(copying: table, first: table.count, capacity: table.count + 1)
        if owned { table.free() }
        table = larger
        owned = true
      }
      return table.add(name, length: length)
    }
  }

  /// Starts with the names of `base`.
  public init(_ base: SharedKeys) {
    self.base = base
    state = .allocate(capacity: 1)
    state.initialize(to: State(table: base.table))
  }

  deinit {
    if state.pointee.owned { state.pointee.table.free() }
    state.deallocate()
  }

  /// The number of names, those of the base included.
  public var count: Int { state.pointee.table.count }

  /// Adds the names that `table` has more, when those that are here have the same numbers in it. False, and nothing
  /// changed, when they don't: bodies by that table can't be taken as they are.
  public func adopt(_ table: SharedKeys) -> Bool {
    guard count <= table.count else { return snapshot().agrees(with: table) }
    guard snapshot().agrees(with: table) else { return false }
    for number in count..<table.count {
      _ = state.pointee.add(table.table.names[number], length: Int(table.table.lengths[number]))
    }
    return true
  }

  /// Whether names were added to those of the base.
  public var hasAdditions: Bool { count > base.count }

  /// The names as they are now, as an immutable table; the base itself when nothing was added.
  public func snapshot() -> SharedKeys {
    if !hasAdditions { return base }
    if let lastSnapshot, lastSnapshot.count == count { return lastSnapshot }
    let table = KeyTable(copying: state.pointee.table, first: count, capacity: count)
    let snapshot = SharedKeys(taking: table)
    lastSnapshot = snapshot
    return snapshot
  }

  /// Forgets the names added after there were `count`, as when a part of a transaction is undone.
  ///
  /// - Precondition: `count` is at least the base's count.
  public func rollBack(to count: Int) {
    precondition(count >= base.count, "shared keys of an earlier transaction are never removed")
    guard count < self.count else { return }
    let smaller = KeyTable(copying: state.pointee.table, first: count, capacity: count)
    state.pointee.table.free()
    state.pointee.table = smaller
    if let last = lastSnapshot, last.count > count { lastSnapshot = nil }
  }
}
