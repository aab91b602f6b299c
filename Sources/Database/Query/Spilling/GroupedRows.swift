import Fleece

/// Rows in an order, in groups of those whose keys are equal. One thread uses it.
///
/// ```swift
/// while try rows.nextGroup() != nil {
///   while let row = try rows.next() { … }
/// }
/// ```
final class GroupedRows {
  /// Where a key is in a row, and when two of them are equal.
  struct Key {
    let place: Int
    let order: ValueOrder
  }

  /// The keys of the group. They are valid until the next group.
  let keys: UnsafeMutablePointer<QueryValue>
  private let rows: OrderedRows
  private let compared: [Key]
  private let sharedKeys: SharedKeys
  private let arena: EvaluationArena
  /// A row that was read and isn't given yet.
  private var ahead: UnsafePointer<QueryValue>?
  private var isInGroup = false

  init(_ rows: OrderedRows, by compared: [Key], _ keeping: RowKeeping) {
    self.rows = rows
    self.compared = compared
    sharedKeys = keeping.sharedKeys
    arena = EvaluationArena(capacity: 256, keeping.budget)
    keys = .allocate(compared.count, repeating: .missing)
  }

  deinit { keys.deallocate() }

  /// Goes to the next group, past all rows of this one. Returns its first row, which `next` gives too, or nil after the last group. The
  /// row is valid until the next call.
  func nextGroup() throws -> UnsafePointer<QueryValue>? {
    while try next() != nil {}
    guard let row = try ahead ?? rows.next() else { return nil }
    ahead = row
    isInGroup = true
    arena.reset()
    for index in compared.indices { keys[index] = arena.copy(row[compared[index].place], sharedKeys) }
    return row
  }

  /// The next row of the group, or nil after its last. It is valid until the next call.
  func next() throws -> UnsafePointer<QueryValue>? {
    guard isInGroup else { return nil }
    if let row = ahead {
      ahead = nil
      return row
    }
    ahead = try rows.next()
    if let row = ahead, isEqual(row) {
      ahead = nil
      return row
    }
    isInGroup = false
    return nil
  }

  @inline(__always)
  private func isEqual(_ row: UnsafePointer<QueryValue>) -> Bool {
    for index in compared.indices
    where !compared[index].order.areEqual(keys[index], row[compared[index].place]) { return false }
    return true
  }
}
