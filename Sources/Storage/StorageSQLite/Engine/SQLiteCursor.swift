import Bytes
import CSQLite
import Storage

/// A cursor that steps a scan statement. When it changes direction, a statement of the other direction
/// replaces the old one.
final class SQLiteCursor: Cursor {
  private enum Place {
    case before, entry, after
  }

  /// A cursor keeps its snapshot open.
  private let transaction: SQLiteTransaction
  private let connection: EngineConnection
  private let functions: UnsafePointer<CSQLiteFunctions>
  private let slot: EngineConnection.Slot
  private let bounds: ScanBounds
  /// Whether no key can be in the range.
  private let isEmpty: Bool
  private var place = Place.before
  private var statement: OpaquePointer?
  private var variant = ScanVariant(kind: .ascending, keysOnly: false)
  private var isValid = true
  /// The number of closures that its entry is lent to.
  private var lent = 0
  /// The value of `EngineConnection.State.writes` when the cursor was placed.
  private var writes = 0

  /// The memory of a sequence's key and of three bounds, which statements bind in place: the lower bound of
  /// the range, its upper bound, and another start.
  private let memory: UnsafeMutableRawPointer
  private let lower: UnsafeRawBufferPointer
  private let upper: UnsafeRawBufferPointer
  private static let keyBytes = 8
  /// A bound is truncated to one byte more than the longest key. It then still compares with every key as the
  /// whole bound does.
  private static let boundBytes = StorageLimits.maximumKeyBytes + 1

  init(_ transaction: SQLiteTransaction, _ keyspace: Keyspace, _ range: KeyRange) throws {
    self.transaction = transaction
    connection = try transaction.open()
    functions = connection.functions
    slot = try connection.slot(of: keyspace)
    let bounds = ScanBounds(range, keyspace.shape)
    isEmpty = bounds == nil
    self.bounds = bounds ?? ScanBounds(isSequence: keyspace.shape == .sequences)
    memory = .allocate(byteCount: Self.keyBytes + 3 * Self.boundBytes, alignment: 8)
    lower = self.bounds.lower.withUnsafeBytes { [memory] in Self.copy($0, to: memory + Self.keyBytes) }
    upper =
      self.bounds.upper?.withUnsafeBytes { [memory] in
        Self.copy($0, to: memory + Self.keyBytes + Self.boundBytes)
      } ?? ScanBounds.aboveAll
    writes = connection.state.pointee.writes
    connection.register(self)
  }

  deinit {
    if isValid {
      release()
      connection.unregister(self)
    }
    memory.deallocate()
  }

  /// Gives the statement back, because the transaction ends.
  func invalidate() {
    release()
    isValid = false
  }

  /// Gives the statement back, because a keyspace is dropped. A cursor of that keyspace ends. Returns whether it did.
  func release(ending dropped: EngineConnection.Slot) -> Bool {
    release()
    guard slot == dropped else { return false }
    isValid = false
    return true
  }

  private func release() {
    guard let statement else { return }
    self.statement = nil
    connection.endScan(statement, variant, slot)
  }

  // MARK: Cursor

  func first() throws -> Bool {
    try beginPlacing()
    return try begin(ascending: true)
  }

  func last() throws -> Bool {
    try beginPlacing()
    return try begin(ascending: false)
  }

  func seek(_ key: RawSpan) throws -> Bool {
    try beginPlacing()
    return try key.withUnsafeBytes { key in
      if bounds.isSequence {
        guard let sought = SequenceKey.ceiling(key) else { return end(ascending: true) }
        return try begin(ascending: true, at: max(bounds.lowest, sought))
      }
      return try begin(ascending: true, from: compareBytes(lower, key) < 0 ? start(key) : nil)
    }
  }

  func next() throws -> Bool {
    try move()
    return switch place {
    case .before: try begin(ascending: true)
    case .after: false
    case .entry: variant.isAscending ? try advance() : try turn(ascending: true)
    }
  }

  func previous() throws -> Bool {
    try move()
    return switch place {
    case .after: try begin(ascending: false)
    case .before: false
    case .entry: variant.isAscending ? try turn(ascending: false) : try advance()
    }
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try checkPlace()
    guard place == .entry, let statement else { throw notOnEntry() }
    lent += 1
    connection.state.pointee.lent &+= 1
    defer {
      lent -= 1
      connection.endLending()
    }
    let value = EngineConnection.column(functions, statement, 1)
    guard bounds.isSequence else {
      return try body(EngineConnection.column(functions, statement, 0).bytes, value.bytes)
    }
    memory.storeBytes(
      of: UInt64(bitPattern: csqlite_column_int64(functions, statement, 0)).bigEndian, as: UInt64.self)
    try body(UnsafeRawBufferPointer(start: memory, count: Self.keyBytes).bytes, value.bytes)
  }

  /// Checks that the cursor may be placed.
  private func beginPlacing() throws {
    guard isValid, transaction.isOpen else { throw ended() }
    if lent > 0 { throw connection.lentBytes("a move of a cursor") }
    writes = connection.state.pointee.writes
  }

  /// Checks that the cursor may move from its position.
  private func move() throws {
    if lent > 0 { throw connection.lentBytes("a move of a cursor") }
    try checkPlace()
  }

  private func checkPlace() throws {
    guard isValid, transaction.isOpen else { throw ended() }
    guard writes == connection.state.pointee.writes else { throw notOnEntry() }
  }

  private func ended() -> StorageError {
    StorageError(.closed, "the cursor was used after the end of its transaction", path: connection.path)
  }

  private func notOnEntry() -> StorageError {
    StorageError(
      .notOnEntry, "the cursor is on no entry; place it with seek, first or last", path: connection.path)
  }

  // MARK: Statements

  /// Continues from the current entry in the other direction.
  private func turn(ascending: Bool) throws -> Bool {
    guard let statement else { return false }
    if bounds.isSequence {
      let key = csqlite_column_int64(functions, statement, 0)
      if key == (ascending ? bounds.highest : bounds.lowest) { return end(ascending: ascending) }
      return try begin(ascending: ascending, at: ascending ? key + 1 : key - 1)
    }
    let key = EngineConnection.column(functions, statement, 0)
    return try begin(ascending: ascending, from: start(key, isExclusive: ascending))
  }

  /// Copies a key to the memory of the third bound. If it is exclusive, the bound is the smallest key after
  /// it.
  private func start(_ key: UnsafeRawBufferPointer, isExclusive: Bool = false) -> UnsafeRawBufferPointer {
    let target = memory + Self.keyBytes + 2 * Self.boundBytes
    let copy = Self.copy(key, to: target)
    guard isExclusive, copy.count < Self.boundBytes else { return copy }
    target.storeBytes(of: 0, toByteOffset: copy.count, as: UInt8.self)
    return UnsafeRawBufferPointer(start: target, count: copy.count + 1)
  }

  /// Runs a statement from the end of the range, from `start`, or, in a keyspace of sequences, from `number`.
  private func begin(
    ascending: Bool, from start: UnsafeRawBufferPointer? = nil, at number: sqlite3_int64? = nil
  ) throws -> Bool {
    release()
    if isEmpty { return end(ascending: ascending) }
    variant.kind =
      ascending
      ? (bounds.hasUpper ? .ascendingTo : .ascending) : (bounds.hasLower ? .descendingFrom : .descending)
    let statement = try connection.beginScan(variant, slot)
    self.statement = statement
    let (bindsLower, bindsUpper) = (variant.kind.bindsLower, variant.kind.bindsUpper)
    if bounds.isSequence {
      let (lowest, highest) = ascending ? (number, nil) : (nil, number)
      if bindsLower { _ = csqlite_bind_int64(functions, statement, 1, lowest ?? bounds.lowest) }
      if bindsUpper { _ = csqlite_bind_int64(functions, statement, 2, highest ?? bounds.highest) }
    } else {
      if bindsLower { bind(ascending ? start ?? lower : lower, statement, 1) }
      if bindsUpper { bind(ascending ? upper : start ?? upper, statement, 2) }
    }
    return try advance()
  }

  private func bind(_ bound: UnsafeRawBufferPointer, _ statement: OpaquePointer, _ index: Int32) {
    // The pointer is never null, which would bind NULL. An empty bound points into `memory`.
    _ = csqlite_bind_static_blob(
      functions, statement, index, bound.baseAddress, Int32(truncatingIfNeeded: bound.count))
  }

  private func advance() throws -> Bool {
    guard let statement else { throw notOnEntry() }
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_ROW else {
      let isAscending = variant.isAscending
      if code == SQLITE_DONE { return end(ascending: isAscending) }
      let failure = connection.failure(code, statement, slot)
      _ = end(ascending: isAscending)
      throw failure
    }
    place = .entry
    return true
  }

  private func end(ascending: Bool) -> Bool {
    release()
    place = ascending ? .after : .before
    return false
  }

  // MARK: Bytes

  private static func copy(_ bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer)
    -> UnsafeRawBufferPointer
  {
    let count = min(bytes.count, boundBytes)
    if count > 0, let start = bytes.baseAddress { target.copyMemory(from: start, byteCount: count) }
    return UnsafeRawBufferPointer(start: target, count: count)
  }
}

extension ScanVariant {
  var isAscending: Bool { kind == .ascending || kind == .ascendingTo }
}
