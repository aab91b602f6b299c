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
    _ cursor: OpaquePointer, _ range: KeyRange, _ order: ScanOrder, _ fetch: ScanFetch,
    fetchesAhead environment: Environment?,
    _ body: Body
  ) throws -> Int32 {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        switch order {
        case .descending:
          try run(Descending(from: upper, to: lower), cursor, fetch, environment, body)
        case .ascending, .stored:
          try run(Ascending(from: lower, to: upper), cursor, fetch, environment, body)
        }
      }
    }
  }

  // Generic over the way, which is known where they are called: each is compiled once a way.

  private static func run(
    _ way: some Way, _ cursor: OpaquePointer, _ fetch: ScanFetch, _ environment: Environment?, _ body: Body
  ) throws -> Int32 {
    switch fetch {
    case .entries:
      if let environment { try ahead(way, cursor, environment, body) } else { try entries(way, cursor, body) }
    case .keys: try keys(way, cursor, body)
    }
  }

  /// `ReadTransaction.scanBatches` of a snapshot, with LMDB's result as `run` has it.
  static func runBatches(
    _ cursor: OpaquePointer, _ range: KeyRange, _ order: ScanOrder, _ environment: Environment,
    _ body: (UnsafeBufferPointer<ScanEntry>) throws -> Bool
  ) throws -> Int32 {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        switch order {
        case .descending:
          try batches(Descending(from: upper, to: lower), cursor, environment, body)
        case .ascending, .stored:
          try batches(Ascending(from: lower, to: upper), cursor, environment, body)
        }
      }
    }
  }

  private static func ahead(
    _ way: some Way, _ cursor: OpaquePointer, _ environment: Environment, _ body: Body
  ) throws -> Int32 {
    try batches(way, cursor, environment) { entries in
      for entry in entries {
        guard try body(entry.key, entry.value) else { return false }
      }
      return true
    }
  }

  /// How many entries are fetched at a time, at most. It begins with one and doubles, so that a body that
  /// wants few costs few.
  private static let maximumBatch = 16

  @inline(__always)
  private static func batches(
    _ way: some Way, _ cursor: OpaquePointer, _ environment: Environment,
    _ body: (UnsafeBufferPointer<ScanEntry>) throws -> Bool
  ) throws -> Int32 {
    try withUnsafeTemporaryAllocation(of: ScanEntry.self, capacity: maximumBatch) { buffer in
      let batch = buffer.baseAddress.unsafelyUnwrapped
      var key = MDB_val()
      var value = MDB_val()
      var result = way.first(cursor, &key, &value)
      var count = 0
      if result == 0 {
        batch.initialize(to: ScanEntry(key, value))
        count = 1
      }
      var capacity = 1
      var leaf: UInt = 0
      var lastPage: UInt64 = 0
      while true {
        // When the last of them isn't past the end, none is.
        var wanted = count
        while wanted > 0, way.isPastEnd(MDB_val(batch[wanted - 1].key)) { wanted -= 1 }
        if wanted > 0 {
          guard try body(UnsafeBufferPointer(start: batch, count: wanted)) else { return 0 }
        }
        if wanted < count { return 0 }
        if result != 0 { return result }
        if capacity == 1 { lastPage = environment.lastMappedPage }
        capacity = min(capacity * 2, maximumBatch)
        count = 0
        while count < capacity {
          result = mdb_cursor_get(cursor, &key, &value, way.next)
          if result != 0 { break }
          (batch + count).initialize(to: ScanEntry(key, value))
          leaf = clmdb_prefetch_leaf(key.mv_data, leaf, lastPage)
          count += 1
        }
      }
    }
  }

  private static func entries(_ way: some Way, _ cursor: OpaquePointer, _ body: Body) throws -> Int32 {
    var key = MDB_val()
    var value = MDB_val()
    var result = way.first(cursor, &key, &value)
    while result == 0 {
      if way.isPastEnd(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), UnsafeRawBufferPointer(found: value)) else {
        return 0
      }
      result = mdb_cursor_get(cursor, &key, &value, way.next)
    }
    return result
  }

  private static func keys(_ way: some Way, _ cursor: OpaquePointer, _ body: Body) throws -> Int32 {
    var key = MDB_val()
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    var result = way.first(cursor, &key, nil)
    while result == 0 {
      if way.isPastEnd(key) { return 0 }
      guard try body(UnsafeRawBufferPointer(found: key), none) else { return 0 }
      result = mdb_cursor_get(cursor, &key, nil, way.next)
    }
    return result
  }

  // MARK: Ways

  /// Which way a scan goes, from where to where.
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

extension ScanEntry {
  @inline(__always)
  fileprivate init(_ key: MDB_val, _ value: MDB_val) {
    self.init(key: UnsafeRawBufferPointer(found: key), value: UnsafeRawBufferPointer(found: value))
  }
}
