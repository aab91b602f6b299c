import Storage

/// Copies of entries that are inserted together.
final class LoadedRows {
  /// The maximum number of key and value bytes collected.
  private static let capacity = 32 << 10
  private static let maximumCount = KeyspaceStatement.insertMany.rows

  private struct Row {
    var offset, keyCount, valueCount: Int
  }

  // Allocated with `allocate` and freed in `deinit`. Never grown, so that bytes stay where a statement has
  // bound them.
  private let bytes: UnsafeMutableRawPointer
  private let rows: UnsafeMutablePointer<Row>
  private var used = 0
  /// The number of collected entries.
  private(set) var count = 0
  /// Whether `add` was ever called.
  private(set) var wasUsed = false
  /// The error of the last write.
  private var failure: (any Error)?

  init() {
    bytes = .allocate(byteCount: Self.capacity, alignment: 8)
    rows = .allocate(capacity: Self.maximumCount)
  }

  deinit {
    bytes.deallocate()
    rows.deallocate()
  }

  /// Throws the error of an earlier write again. Some of the rows may have been written, and the library may
  /// have ended the transaction.
  func checkNotFailed() throws {
    if let failure { throw failure }
  }

  /// Calls `body`, which writes the rows. After a failure nothing more is written.
  func writing(_ body: () throws -> Void) throws {
    try checkNotFailed()
    do { try body() } catch {
      failure = error
      throw error
    }
  }

  /// Copies an entry. Returns false if there is no room for it.
  func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    wasUsed = true
    guard count < Self.maximumCount, key.count + value.count <= Self.capacity - used else { return false }
    if let start = key.baseAddress { (bytes + used).copyMemory(from: start, byteCount: key.count) }
    if let start = value.baseAddress {
      (bytes + used + key.count).copyMemory(from: start, byteCount: value.count)
    }
    rows[count] = Row(offset: used, keyCount: key.count, valueCount: value.count)
    used += key.count + value.count
    count += 1
    return true
  }

  func removeAll() {
    used = 0
    count = 0
  }

  /// Returns an entry. Its bytes are valid until `removeAll`.
  subscript(index: Int) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let row = rows[index]
    return (
      UnsafeRawBufferPointer(start: bytes + row.offset, count: row.keyCount),
      UnsafeRawBufferPointer(start: bytes + row.offset + row.keyCount, count: row.valueCount)
    )
  }
}
