import CLMDB
import Storage

/// The scan that calls a closure for each entry.
///
/// The scan fetches some entries ahead of the body and prefetches their values into the processor's cache.
/// LMDB's walk through the pages then doesn't wait for the memory that the body reads, and the body doesn't
/// wait for the walk. Fetched entries stay valid, because nothing is written while the body runs.
enum Scan {
  typealias Body = (_ key: RawSpan, _ value: RawSpan) throws -> Bool

  private struct Fetched: BitwiseCopyable {
    var key: MDB_val
    var value: MDB_val
  }

  /// Runs a scan. Returns 0 if the body or a bound ended it, and `MDB_NOTFOUND` at the end of the keyspace.
  static func run(
    _ cursor: OpaquePointer, _ range: KeyRange, _ order: ScanOrder, _ fetch: ScanFetch, _ body: Body
  ) throws -> Int32 {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        switch order {
        case .descending: try run(Descending(from: upper, to: lower), cursor, fetch, body)
        case .ascending, .stored: try run(Ascending(from: lower, to: upper), cursor, fetch, body)
        }
      }
    }
  }

  // Generic over the direction, which is known at the call. The compiler makes one copy per direction.

  private static func run(
    _ way: some Way, _ cursor: OpaquePointer, _ fetch: ScanFetch, _ body: Body
  ) throws -> Int32 {
    switch fetch {
    case .entries: try entries(way, cursor, body)
    case .keys: try keys(way, cursor, body)
    }
  }

  /// The maximum number of entries fetched at once. The number starts at 1 and doubles, so that a body that
  /// wants few entries costs little.
  private static let maximumBatch = 16

  @inline(__always)
  private static func entries(_ way: some Way, _ cursor: OpaquePointer, _ body: Body) throws -> Int32 {
    try withUnsafeTemporaryAllocation(of: Fetched.self, capacity: maximumBatch) { buffer in
      let batch = buffer.baseAddress.unsafelyUnwrapped
      var key = MDB_val()
      var value = MDB_val()
      var result = way.first(cursor, &key, &value)
      var count = 0
      if result == 0 {
        batch.initialize(to: Fetched(key: key, value: value))
        count = 1
      }
      var capacity = 1
      while true {
        for index in 0..<count {
          let entry = batch[index]
          if way.isPastEnd(entry.key) { return 0 }
          let goesOn = try body(
            UnsafeRawBufferPointer(found: entry.key).bytes, UnsafeRawBufferPointer(found: entry.value).bytes)
          if !goesOn { return 0 }
        }
        if result != 0 { return result }
        capacity = min(capacity * 2, maximumBatch)
        count = 0
        while count < capacity {
          result = mdb_cursor_get(cursor, &key, &value, way.next)
          if result != 0 { break }
          (batch + count).initialize(to: Fetched(key: key, value: value))
          clmdb_will_read(value.mv_data, value.mv_size)
          count += 1
        }
      }
    }
  }

  private static func keys(_ way: some Way, _ cursor: OpaquePointer, _ body: Body) throws -> Int32 {
    var key = MDB_val()
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    var result = way.first(cursor, &key, nil)
    while result == 0 {
      if way.isPastEnd(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key).bytes, none.bytes) else { return 0 }
      result = mdb_cursor_get(cursor, &key, nil, way.next)
    }
    return result
  }

  // MARK: Directions

  /// The direction of a scan, with its start and end.
  private protocol Way {
    var next: MDB_cursor_op { get }
    /// Moves to the first entry of the scan.
    func first(
      _ cursor: OpaquePointer, _ key: UnsafeMutablePointer<MDB_val>, _ value: UnsafeMutablePointer<MDB_val>?
    ) -> Int32
    func isPastEnd(_ key: MDB_val) -> Bool
  }

  private struct Ascending: Way {
    let from: KeyBound
    let to: KeyBound
    var next: MDB_cursor_op { MDB_NEXT }
    func first(
      _ cursor: OpaquePointer, _ key: UnsafeMutablePointer<MDB_val>, _ value: UnsafeMutablePointer<MDB_val>?
    ) -> Int32 { CursorMove.first(cursor, from: from, key, value) }
    func isPastEnd(_ key: MDB_val) -> Bool { to.isBelow(key) }
  }

  private struct Descending: Way {
    let from: KeyBound
    let to: KeyBound
    var next: MDB_cursor_op { MDB_PREV }
    func first(
      _ cursor: OpaquePointer, _ key: UnsafeMutablePointer<MDB_val>, _ value: UnsafeMutablePointer<MDB_val>?
    ) -> Int32 { CursorMove.last(cursor, to: from, key, value) }
    func isPastEnd(_ key: MDB_val) -> Bool { to.isAbove(key) }
  }
}
