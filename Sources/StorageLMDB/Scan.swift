import CLMDB
import Storage

/// The closure scan.
enum Scan {
  typealias Body = (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool

  /// LMDB's result: 0 when the body or a bound ended the scan, `MDB_NOTFOUND` at the end of the keyspace.
  ///
  /// In a snapshot entries are fetched some ahead of the body (`fetchesAhead`): what they point to stays.
  /// Then LMDB's walk from page to page doesn't wait for the memory that the body reads, nor the body for the
  /// walk.
  static func run(
    _ cursor: OpaquePointer, _ range: KeyRange, _ order: ScanOrder, _ fetch: ScanFetch, fetchesAhead: Bool,
    _ body: Body
  ) throws -> Int32 {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        switch (order, fetch) {
        case (.descending, .entries) where fetchesAhead: try descendingAhead(cursor, lower, upper, body)
        case (.descending, .entries): try descending(cursor, lower, upper, body)
        case (.descending, .keys): try descendingKeys(cursor, lower, upper, body)
        case (_, .entries) where fetchesAhead: try ascendingAhead(cursor, lower, upper, body)
        case (_, .entries): try ascending(cursor, lower, upper, body)
        case (_, .keys): try ascendingKeys(cursor, lower, upper, body)
        }
      }
    }
  }

  // MARK: - Ahead

  /// How many entries are fetched at a time, at most. It begins with one and doubles, so that a body that
  /// wants few costs few.
  private static let maximumBatch = 8

  private struct Fetched {
    var key: MDB_val
    var value: MDB_val
  }

  private static func ascendingAhead(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    try withUnsafeTemporaryAllocation(of: Fetched.self, capacity: maximumBatch) { buffer in
      let batch = buffer.baseAddress.unsafelyUnwrapped
      var first = MDB_val()
      var result = CursorMove.first(cursor, from: lower, &first, &batch.pointee.value)
      batch.pointee.key = first
      var count = result == 0 ? 1 : 0
      var capacity = 1
      while true {
        for index in 0..<count {
          let entry = batch + index
          if upper.isBelow(entry.pointee.key) { return 0 }
          guard
            try body(
              UnsafeRawBufferPointer(found: entry.pointee.key),
              UnsafeRawBufferPointer(found: entry.pointee.value))
          else { return 0 }
        }
        if result != 0 { return result }
        capacity = min(capacity * 2, maximumBatch)
        count = 0
        while count < capacity {
          let entry = batch + count
          result = mdb_cursor_get(cursor, &entry.pointee.key, &entry.pointee.value, MDB_NEXT)
          if result != 0 { break }
          count += 1
        }
      }
    }
  }

  private static func descendingAhead(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    try withUnsafeTemporaryAllocation(of: Fetched.self, capacity: maximumBatch) { buffer in
      let batch = buffer.baseAddress.unsafelyUnwrapped
      var first = MDB_val()
      var result = CursorMove.last(cursor, to: upper, &first, &batch.pointee.value)
      batch.pointee.key = first
      var count = result == 0 ? 1 : 0
      var capacity = 1
      while true {
        for index in 0..<count {
          let entry = batch + index
          if lower.isAbove(entry.pointee.key) { return 0 }
          guard
            try body(
              UnsafeRawBufferPointer(found: entry.pointee.key),
              UnsafeRawBufferPointer(found: entry.pointee.value))
          else { return 0 }
        }
        if result != 0 { return result }
        capacity = min(capacity * 2, maximumBatch)
        count = 0
        while count < capacity {
          let entry = batch + count
          result = mdb_cursor_get(cursor, &entry.pointee.key, &entry.pointee.value, MDB_PREV)
          if result != 0 { break }
          count += 1
        }
      }
    }
  }

  // MARK: - One by one

  private static func ascending(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    var key = MDB_val()
    var value = MDB_val()
    var result = CursorMove.first(cursor, from: lower, &key, &value)
    while result == 0 {
      if upper.isBelow(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), UnsafeRawBufferPointer(found: value)) else {
        return 0
      }
      result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
    }
    return result
  }

  private static func descending(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    var key = MDB_val()
    var value = MDB_val()
    var result = CursorMove.last(cursor, to: upper, &key, &value)
    while result == 0 {
      if lower.isAbove(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), UnsafeRawBufferPointer(found: value)) else {
        return 0
      }
      result = mdb_cursor_get(cursor, &key, &value, MDB_PREV)
    }
    return result
  }

  private static func ascendingKeys(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    var key = MDB_val()
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    var result = CursorMove.first(cursor, from: lower, &key, nil)
    while result == 0 {
      if upper.isBelow(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), none) else { return 0 }
      result = mdb_cursor_get(cursor, &key, nil, MDB_NEXT)
    }
    return result
  }

  private static func descendingKeys(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    var key = MDB_val()
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    var result = CursorMove.last(cursor, to: upper, &key, nil)
    while result == 0 {
      if lower.isAbove(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), none) else { return 0 }
      result = mdb_cursor_get(cursor, &key, nil, MDB_PREV)
    }
    return result
  }
}
