/// A hash table of rows. The owner of the table owns the memory of the rows: groups, distinct results, sides
/// of joins.
///
/// Rows are compared by `ValueOrder`. Each row has a number, in the order of insertion.
final class RowTable {
  private struct Entry: BitwiseCopyable {
    var hash: UInt64
    /// The number of the row. -1 marks a free entry.
    var number: Int
  }

  // It is used by one thread at a time, so exclusivity checks aren't needed.
  @exclusivity(unchecked) private var entries: UnsafeMutablePointer<Entry>
  @exclusivity(unchecked) private var capacity = RowTable.leastCapacity
  @exclusivity(unchecked) private(set) var count = 0
  // Room for as many as the entries may hold.
  @exclusivity(unchecked) private var rows: UnsafeMutablePointer<UnsafePointer<QueryValue>>
  /// The number of leading values of a row that are compared.
  private let width: Int
  private let orders: [ValueOrder]
  /// Set when all values are compared by bytes.
  private let plainOrder: ValueOrder?
  // Changed only between two runs of a query.
  @exclusivity(unchecked) private var budget: QueryMemoryBudget?
  private static let rowBytes = MemoryLayout<UnsafePointer<QueryValue>>.stride
  private static let leastCapacity = 64

  /// Creates a table that compares as many leading values of a row as there are orders. Its memory counts
  /// towards a budget.
  init(_ orders: [ValueOrder], _ budget: QueryMemoryBudget?) {
    self.budget = budget
    self.orders = orders
    width = orders.count
    plainOrder =
      orders.allSatisfy { $0.collator == nil } ? orders.first.map { ValueOrder($0.sharedKeys) } : nil
    entries = .allocate(capacity, repeating: Entry(hash: 0, number: -1))
    rows = .allocate(capacity: capacity)
    budget?.take(capacity * MemoryLayout<Entry>.stride)
  }

  deinit {
    entries.deallocate()
    rows.deallocate()
    budget?.giveBack(capacity * MemoryLayout<Entry>.stride + count * Self.rowBytes)
  }

  /// What it has allocated itself, in bytes.
  var allocatedBytes: Int { capacity * MemoryLayout<Entry>.stride + count * Self.rowBytes }

  /// The row with a number.
  func row(_ number: Int) -> UnsafePointer<QueryValue> { rows[number] }

  func hash(_ values: UnsafePointer<QueryValue>) -> UInt64 {
    var hash = ValueHash()
    if let plainOrder {
      for index in 0..<width {
        if case .string(let text) = values[index] {
          hash.combine(text.bytes)
        } else {
          hash.combine(values[index], plainOrder)
        }
      }
      return hash.value
    }
    for index in 0..<width { hash.combine(values[index], orders[index]) }
    return hash.value
  }

  /// The number of an equal row, or nil.
  func find(_ values: UnsafePointer<QueryValue>, _ hash: UInt64) -> Int? {
    let mask = capacity - 1
    var place = Int(truncatingIfNeeded: hash) & mask
    while true {
      let entry = entries[place]
      if entry.number < 0 { return nil }
      if entry.hash == hash, areEqual(rows[entry.number], values) { return entry.number }
      place = (place + 1) & mask
    }
  }

  /// The number of the first row, 0, if that row is equal.
  func first(equalTo values: UnsafePointer<QueryValue>) -> Int? {
    count > 0 && areEqual(rows[0], values) ? 0 : nil
  }

  /// Adds a row, and returns its number. The table must not contain an equal row. The row isn't copied.
  @discardableResult
  func add(_ values: UnsafePointer<QueryValue>, _ hash: UInt64) -> Int {
    if (count + 1) * 4 > capacity * 3 { grow() }
    place(Entry(hash: hash, number: count))
    rows[count] = values
    budget?.take(Self.rowBytes)
    count += 1
    return count - 1
  }

  /// Sets a new address for the row with a number. The row there has to be equal.
  func move(_ number: Int, to row: UnsafePointer<QueryValue>) { rows[number] = row }

  /// Removes all rows. With `keepingMemory` the table keeps the room for as many.
  func removeAll(keepingMemory: Bool) {
    if keepingMemory || capacity == Self.leastCapacity {
      entries.update(repeating: Entry(hash: 0, number: -1), count: capacity)
    } else {
      entries.deallocate()
      budget?.giveBack((capacity - Self.leastCapacity) * MemoryLayout<Entry>.stride)
      capacity = Self.leastCapacity
      entries = .allocate(capacity, repeating: Entry(hash: 0, number: -1))
      rows.deallocate()
      rows = .allocate(capacity: capacity)
    }
    budget?.giveBack(count * Self.rowBytes)
    count = 0
  }

  /// Removes all rows. The memory of the table counts towards that budget from now on, or towards none.
  func begin(_ budget: QueryMemoryBudget?) {
    if count > 0 { removeAll(keepingMemory: false) }
    let bytes = allocatedBytes
    self.budget?.giveBack(bytes)
    self.budget = budget
    budget?.take(bytes)
  }

  private func place(_ entry: Entry) {
    let mask = capacity - 1
    var place = Int(truncatingIfNeeded: entry.hash) & mask
    while entries[place].number >= 0 { place = (place + 1) & mask }
    entries[place] = entry
  }

  private func grow() {
    let old = entries
    let oldCapacity = capacity
    budget?.take(capacity * MemoryLayout<Entry>.stride)
    capacity *= 2
    entries = .allocate(capacity, repeating: Entry(hash: 0, number: -1))
    for index in 0..<oldCapacity where old[index].number >= 0 { place(old[index]) }
    old.deallocate()
    let moreRows = UnsafeMutablePointer<UnsafePointer<QueryValue>>.allocate(capacity: capacity)
    moreRows.update(from: rows, count: count)
    rows.deallocate()
    rows = moreRows
  }

  private func areEqual(_ left: UnsafePointer<QueryValue>, _ right: UnsafePointer<QueryValue>) -> Bool {
    if let plainOrder {
      for index in 0..<width where !plainOrder.areEqual(left[index], right[index]) { return false }
      return true
    }
    for index in 0..<width where !orders[index].areEqual(left[index], right[index]) { return false }
    return true
  }
}
