import CSQLite
import SQLiteLibrary
import Storage

extension EngineConnection {
  /// Implements `ReadTransaction.scan`.
  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch, _ body: RowVisit.Body
  ) throws {
    state.pointee.lent &+= 1
    defer { endLending() }
    try run(keyspace, range, order: order, fetch: fetch, body)
  }

  private func run(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: RowVisit.Body
  ) throws {
    let slot = try slot(of: keyspace)
    guard let bounds = ScanBounds(range, keyspace.shape) else { return }
    let isVisit = keyspace.shape != .sequences
    // If the callback checks the end, the library still fetches the first row behind the end. That row may be
    // a large document, so only keyspaces of entries check the end in the callback.
    let looksItself = isVisit && keyspace.shape == .entries
    let isWhole = !bounds.hasLower && !bounds.hasUpper
    let kind: ScanVariant.Kind
    switch order {
    case .ascending: kind = bounds.hasUpper && !looksItself ? .ascendingTo : .ascending
    case .descending: kind = bounds.hasLower && !looksItself ? .descendingFrom : .descending
    case .stored:
      // Only a scan of a whole table of documents can have an order other than the keys'. Keys alone come
      // from the index.
      kind = isWhole ? .stored : bounds.hasUpper && !looksItself ? .ascendingTo : .ascending
    }
    let variant = ScanVariant(kind: kind, keysOnly: fetch == .keys, isVisit: isVisit)
    let statement = try beginScan(variant, slot)
    defer { endScan(statement, variant, slot) }
    try bounds.bound(
      to: statement, functions, lower: kind.bindsLower, upper: kind.bindsUpper
    ) {
      if isVisit {
        try ScanEnd.with(looksItself ? bounds : nil, isDescending: kind == .descending) {
          try visitRows(
            statement, until: $0, isWhole: isWhole && keyspace.shape == .documents, kind, slot, body)
        }
      } else if keyspace.shape == .sequences {
        try sequenceRows(statement, keysOnly: variant.keysOnly, slot, body)
      } else {
        try rows(statement, keysOnly: variant.keysOnly, slot, body)
      }
    }
  }

  private func visitRows(
    _ statement: OpaquePointer, until end: ScanEnd, isWhole: Bool, _ kind: ScanVariant.Kind, _ slot: Slot,
    _ body: RowVisit.Body
  ) throws {
    try withoutActuallyEscaping(body) { body in
      let visit = RowVisit(until: end, body)
      if isWhole { kind == .stored ? watchCache(visit, slot) : watchOrder(visit) }
      defer { if visit.isLong { restoreCache() } }
      let code = visit.run(statement, functions)
      if let error = visit.error { throw error }
      if code != SQLITE_ROW, code != SQLITE_DONE { throw failure(code, statement, slot) }
    }
  }

  @inline(__always)
  private func rows(
    _ statement: OpaquePointer, keysOnly: Bool, _ slot: Slot,
    _ body: RowVisit.Body
  ) throws {
    let functions = functions
    while true {
      let code = csqlite_step(functions, statement)
      guard code == SQLITE_ROW else {
        if code == SQLITE_DONE { return }
        throw failure(code, statement, slot)
      }
      let key = Self.column(functions, statement, 0)
      let value =
        keysOnly ? UnsafeRawBufferPointer(start: nil, count: 0) : Self.column(functions, statement, 1)
      guard try body(key.bytes, value.bytes) else { return }
    }
  }

  private func sequenceRows(
    _ statement: OpaquePointer, keysOnly: Bool, _ slot: Slot,
    _ body: RowVisit.Body
  ) throws {
    let functions = functions
    try withUnsafeTemporaryAllocation(byteCount: 8, alignment: 8) { key in
      while true {
        let code = csqlite_step(functions, statement)
        guard code == SQLITE_ROW else {
          if code == SQLITE_DONE { return }
          throw failure(code, statement, slot)
        }
        key.storeBytes(
          of: UInt64(bitPattern: csqlite_column_int64(functions, statement, 0)).bigEndian, as: UInt64.self)
        let value =
          keysOnly ? UnsafeRawBufferPointer(start: nil, count: 0) : Self.column(functions, statement, 1)
        guard try body(UnsafeRawBufferPointer(key).bytes, value.bytes) else { return }
      }
    }
  }

  /// Returns the bytes of a column in the library's memory.
  @inline(__always)
  static func column(
    _ functions: UnsafePointer<CSQLiteFunctions>, _ statement: OpaquePointer, _ index: Int32
  ) -> UnsafeRawBufferPointer {
    let start = csqlite_column_blob(functions, statement, index)
    return UnsafeRawBufferPointer(
      start: start, count: Int(truncatingIfNeeded: csqlite_column_bytes(functions, statement, index)))
  }
}

// A scan of more data than the cache holds finds nothing in the cache and leaves nothing useful in it. Such a
// scan continues with a small cache that fits into the processor's cache.

extension EngineConnection {
  private static let cacheOfLongScans = 512 << 10
  /// The number of bytes after which a scan that is known to be long shrinks the cache. Shorter scans end
  /// before.
  private static let beginningOfLongScans = 1 << 20

  private func watchCache(_ visit: RowVisit, _ slot: Slot) {
    guard let cacheBytes, cacheBytes > Self.cacheOfLongScans else { return }
    visit.noteLong(after: slot.pointee.isLongerThanCache ? Self.beginningOfLongScans : cacheBytes) {
      [unowned self] in
      slot.pointee.isLongerThanCache = true
      shrinkCache()
    }
  }

  /// Shrinks the cache for a scan in key order of a file that exceeds the cache, if the rows are stored in
  /// key order. The scan has then read about as many pages as the rows need, and not one page per row.
  private func watchOrder(_ visit: RowVisit) {
    guard let cacheBytes, cacheBytes > Self.cacheOfLongScans else { return }
    let before = cacheMisses
    visit.noteLong(after: Self.beginningOfLongScans) { [unowned self] in
      let read = (cacheMisses - before) * SQLiteLayout.pageBytes
      if read < 2 * Self.beginningOfLongScans, SQLiteFile.size(path) ?? 0 > cacheBytes { shrinkCache() }
    }
  }

  private var cacheMisses: Int {
    var count: Int32 = 0
    var highest: Int32 = 0
    _ = csqlite_db_status(
      functions, connection.handle, SQLITE_DBSTATUS_CACHE_MISS, &count, &highest, 0)
    return Int(count)
  }

  private func shrinkCache() {
    // Errors are ignored, because only speed depends on the setting.
    try? connection.execute("PRAGMA cache_size = -\(Self.cacheOfLongScans >> 10)")
  }

  private func restoreCache() {
    guard let cacheBytes else { return }
    try? connection.execute("PRAGMA cache_size = -\(cacheBytes >> 10)")
  }
}

extension ScanVariant.Kind {
  var bindsLower: Bool { self != .stored && self != .descending }
  var bindsUpper: Bool { self != .stored && self != .ascending }
}
