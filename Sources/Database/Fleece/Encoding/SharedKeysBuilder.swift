// Shared keys that are added while documents are encoded in a write transaction.

/// A shared key table that grows on top of an immutable table. For one thread at a time.
///
/// The names are copied when the first name is added. Creating a builder for each transaction is therefore
/// cheap.
package final class SharedKeysBuilder {
  /// The table that this builder started with.
  package let base: SharedKeys

  /// The state that the encoder reads and changes. It borrows the memory of `base` until `owned` is true.
  let state: UnsafeMutablePointer<State>
  private var lastSnapshot: SharedKeys?
  /// The table that `adopt` was last asked for, and its answer.
  private var lastAdoption: (table: SharedKeys, isAdopted: Bool)?

  struct State {
    var table: KeyTable
    var owned = false

    /// Adds an eligible name that isn't in the table. Returns its number, or -1 if the table is full.
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

  /// Creates a builder with the names of `base`.
  package init(_ base: SharedKeys) {
    self.base = base
    state = .allocate(capacity: 1)
    state.initialize(to: State(table: base.table))
  }

  deinit {
    if state.pointee.owned { state.pointee.table.free() }
    state.deallocate()
  }

  /// The number of names, including those of `base`.
  package var count: Int { state.pointee.table.count }

  /// Adds the names that only `table` has. Returns false and changes nothing if the numbers of the other
  /// names differ. Bodies with such a table must be transcoded. To ask again for the same table costs nothing.
  package func adopt(_ table: SharedKeys) -> Bool {
    if let lastAdoption, lastAdoption.table === table { return lastAdoption.isAdopted }
    let agrees = snapshot().agrees(with: table)
    if agrees, count < table.count {
      for number in count..<table.count {
        _ = state.pointee.add(table.table.names[number], length: Int(table.table.lengths[number]))
      }
    }
    lastAdoption = (table, agrees)
    return agrees
  }

  /// Whether names were added to those of `base`.
  package var hasAdditions: Bool { count > base.count }

  /// Returns the current names as an immutable table. It is `base` if no names were added.
  package func snapshot() -> SharedKeys {
    if !hasAdditions { return base }
    if let lastSnapshot, lastSnapshot.count == count { return lastSnapshot }
    let table = KeyTable(copying: state.pointee.table, first: count, capacity: count)
    let snapshot = SharedKeys(taking: table)
    lastSnapshot = snapshot
    return snapshot
  }

  /// Removes the names from number `count` on, for example when part of a transaction is undone.
  ///
  /// - Precondition: `count` is at least the count of `base`.
  package func rollBack(to count: Int) {
    precondition(count >= base.count, "shared keys of an earlier transaction are never removed")
    guard count < self.count else { return }
    let smaller = KeyTable(copying: state.pointee.table, first: count, capacity: count)
    state.pointee.table.free()
    state.pointee.table = smaller
    if let last = lastSnapshot, last.count > count { lastSnapshot = nil }
    lastAdoption = nil
  }
}
