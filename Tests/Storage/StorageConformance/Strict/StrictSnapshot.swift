import Storage

/// A snapshot of a `StrictEngine`.
class StrictSnapshot: ReadTransaction {
  let wrapped: any ReadTransaction
  let path: String
  private let isExpired: () -> Bool
  private var whenEnded: (() -> Void)?
  private var hasEnded = false
  /// The number of closures to which bytes of this transaction are currently lent.
  var lent = 0
  /// The number of writes. It tells a cursor that its position is invalid.
  var writes = 0

  init(
    _ wrapped: any ReadTransaction, path: String, isExpired: @escaping () -> Bool = { false },
    whenEnded: (() -> Void)? = nil
  ) {
    self.wrapped = wrapped
    self.path = path
    self.isExpired = isExpired
    self.whenEnded = whenEnded
  }

  // The engine below also ends a snapshot that is released. The protocol doesn't promise that, but the count
  // of readers must be right.
  deinit { whenEnded?() }

  func end() {
    guard !hasEnded else { return }
    expire()
    wrapped.end()
    whenEnded?()
    whenEnded = nil
  }

  /// Makes all further reads fail.
  func expire() {
    hasEnded = true
  }

  func checkOpen() throws {
    if hasEnded { throw StorageError(.closed, "the transaction was used after its end", path: path) }
    if isExpired() {
      throw StorageError(.snapshotExpired, "the engine keeps no snapshots as old as this one", path: path)
    }
  }

  /// Lends copies of a key and a value.
  func lend<Result>(
    _ key: RawSpan, _ value: RawSpan, _ body: (RawSpan, RawSpan) throws -> Result
  ) throws -> Result {
    lent += 1
    defer { lent -= 1 }
    return try GuardedMemory.withCopies(of: key, value, body)
  }

  // MARK: ReadTransaction

  func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return try wrapped.keyspace(named: name)
  }

  func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return try wrapped.keyspaces()
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try checkOpen()
    return try GuardedMemory.withCopy(of: key) { key in
      try wrapped.read(key, in: keyspace) { value in
        lent += 1
        defer { lent -= 1 }
        try GuardedMemory.withCopy(of: value, body)
      }
    }
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try checkOpen()
    try wrapped.scan(keyspace, range, order: order == .stored ? .descending : order, fetch: fetch) {
      let goesOn = try lend($0, $1, body)
      // The body may have ended the snapshot, so the next entry must not be read.
      if goesOn { try checkOpen() }
      return goesOn
    }
  }

  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    try checkOpen()
    try wrapped.scan(keyspace, range, order: order == .stored ? .descending : order, fetch: .entries) {
      key, value in
      // The bytes lent to `reference` become invalid before `body` receives the same entry.
      let referred: RawSpan
      switch try lend(key, value, reference) {
      case .end: return false
      case .none: return true
      case .inKey(let place): referred = key.extracting(place)
      case .inValue(let place): referred = value.extracting(place)
      }
      var goesOn = true
      _ = try read(referred, in: target) { found in
        goesOn = try lend(key, value) { try body($0, $1, found) }
      }
      return goesOn
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try checkOpen()
    return StrictCursor(self, try wrapped.cursor(in: keyspace, range))
  }

  /// Returns a count that is wrong by up to a half. Callers must not rely on an estimate.
  func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    try checkOpen()
    let count = try wrapped.count(of: keyspace)
    return .about(count / 2 + keyspace.number % (count + 1))
  }
}
