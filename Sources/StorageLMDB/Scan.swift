import CLMDB
import Storage

/// The closure scan: one call of LMDB and one of the body an entry, everything else in locals.
enum Scan {
  typealias Body = (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool

  /// LMDB's result: 0 when the body or a bound ended the scan, `MDB_NOTFOUND` at the end of the keyspace.
  static func run(
    _ cursor: OpaquePointer, _ range: KeyRange, _ order: ScanOrder, _ fetch: ScanFetch, _ body: Body
  ) throws -> Int32 {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        switch (order, fetch) {
        case (.descending, .entries): try descending(cursor, lower, upper, body)
        case (.descending, .keys): try descendingKeys(cursor, lower, upper, body)
        case (_, .entries): try ascending(cursor, lower, upper, body)
        case (_, .keys): try ascendingKeys(cursor, lower, upper, body)
        }
      }
    }
  }

  private static func ascending(
    _ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound, _ body: Body
  ) throws -> Int32 {
    var key = MDB_val()
    var value = MDB_val()
    var result = CursorMove.first(cursor, from: lower, &key, &value)
    while result == 0 {
      if upper.isBelow(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value)) else { return 0 }
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
      guard try body(UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value)) else { return 0 }
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
      guard try body(UnsafeRawBufferPointer(key), none) else { return 0 }
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
      guard try body(UnsafeRawBufferPointer(key), none) else { return 0 }
      result = mdb_cursor_get(cursor, &key, nil, MDB_PREV)
    }
    return result
  }
}
