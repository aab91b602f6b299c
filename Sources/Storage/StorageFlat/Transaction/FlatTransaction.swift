import Bytes
import Storage

/// A snapshot of a `FlatEngine`, and what a write transaction has in common with one.
///
/// Pointers stay inside: a read lends its bytes to a closure, and the snapshot below ends only after the last
/// closure has returned.
class FlatTransaction: ReadTransaction {
  let engine: FlatEngine
  let base: any FlatRead
  var catalog: FlatCatalog
  /// The number of closures to which bytes of this transaction are currently lent.
  fileprivate(set) var lent = 0
  /// The number of writes. It tells a cursor that its position is invalid.
  var writes = 0
  private(set) var isOpen = true
  private var isFinished = false
  private var cursors: [WeakCursor] = []
  private var cursorLimit = 16
  private let forks: Int
  /// The keyspace that `check` has found last.
  private var checked = -1

  private struct WeakCursor { weak var cursor: FlatCursor? }

  init(_ engine: FlatEngine, _ base: any FlatRead, _ catalog: FlatCatalog) {
    self.engine = engine
    self.base = base
    self.catalog = catalog
    forks = engine.forks
  }

  deinit { end() }

  func end() { close() }

  /// Ends the transaction, at once or when nothing is lent any more.
  final func close() {
    isOpen = false
    if lent == 0 { finish() }
  }

  private func finish() {
    guard !isFinished else { return }
    isFinished = true
    // In a forked child nothing may call the library.
    guard ForkCount.now == forks else { return }
    for weak in cursors { weak.cursor?.closeIterator() }
    cursors = []
    finishBase()
  }

  /// Called once, when the transaction has ended and nothing is lent.
  func finishBase() {
    base.end()
    engine.readerEnded()
  }

  final func checkOpen() throws {
    guard isOpen else { throw StorageError(.closed, "the transaction was used after its end") }
    guard ForkCount.now == forks else { throw engine.forked }
  }

  final func beginLending() { lent += 1 }

  final func endLending() {
    lent -= 1
    if lent == 0, !isOpen { finish() }
  }

  /// Notes a cursor, whose iterator must be closed before the transaction ends.
  final func register(_ cursor: FlatCursor) {
    if cursors.count >= cursorLimit {
      cursors.removeAll { $0.cursor == nil }
      cursorLimit = max(16, cursors.count * 2)
    }
    cursors.append(WeakCursor(cursor: cursor))
  }

  // MARK: Keyspaces

  func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return catalog.keyspaces[name]
  }

  func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return catalog.keyspaces
  }

  final func check(_ keyspace: Keyspace) throws {
    try checkOpen()
    guard checked != keyspace.number else { return }
    guard catalog.names[keyspace.number] != nil else { throw FlatEngine.noSuchKeyspace(keyspace) }
    checked = keyspace.number
  }

  /// Called when a keyspace is dropped.
  final func forgetChecks() { checked = -1 }

  // MARK: Reading

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try FlatEngine.check(key, in: keyspace)
    try check(keyspace)
    return try FlatKey.with(key, keyspace.number) { key in
      try base.read(key) { value in
        beginLending()
        defer { endLending() }
        try body(value.bytes)
      }
    }
  }

  func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool
  ) throws {
    try check(keyspace)
    var prefixed = KeyList()
    for index in 0..<keys.count {
      let key = keys[index]
      try FlatEngine.check(key, in: keyspace)
      FlatKey.with(key, keyspace.number) { prefixed.append($0.bytes) }
    }
    try base.readMany(prefixed) { index, value in
      beginLending()
      defer { endLending() }
      // A body may end the transaction. The values that it lends stay.
      return try body(index, value.bytes) && isOpen
    }
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try check(keyspace)
    let (lower, upper) = FlatKey.bounds(range, keyspace.number)
    guard FlatKey.isLess(lower, upper) else { return }
    let iterator = try base.iterator(from: lower, to: upper)
    // The transaction can't finish before the iterator is closed.
    lent += 1
    defer {
      iterator.close()
      lent -= 1
      if lent == 0, !isOpen { finish() }
    }
    let isDescending = order == .descending
    let isOnEntry =
      isDescending
      ? try upper.withUnsafeBytes { try iterator.seek(before: $0) }
      : try lower.withUnsafeBytes { try iterator.seek($0) }
    guard isOnEntry else { return }
    try iterator.walk(descending: isDescending) { key, value in
      let lentValue = fetch == .keys ? UnsafeRawBufferPointer(start: nil, count: 0) : value
      guard try body(key.ownKey.bytes, lentValue.bytes) else { return false }
      if !isOpen { try checkOpen() }
      return true
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try check(keyspace)
    let cursor = FlatCursor(self, keyspace, range)
    register(cursor)
    return cursor
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    try check(keyspace)
    return .exact(try storedCount(keyspace.number))
  }

  /// The number of entries that the record of a keyspace says.
  final func storedCount(_ number: Int) throws -> Int {
    var count: UInt64?
    let isThere = try FlatKey.count(number).withUnsafeBytes { key in
      try base.read(key) { count = $0.number(UInt64.self) }
    }
    guard isThere else { return 0 }
    guard let count, let exact = Int(exactly: count) else {
      throw FlatCatalog.damaged("the number of entries of a keyspace", engine.location)
    }
    return exact
  }
}
