import CSQLite
import SQLiteLibrary
import Storage

/// A connection with its compiled statements, in one slot per keyspace. One thread at a time.
final class EngineConnection: @unchecked Sendable {
  typealias Slot = UnsafeMutablePointer<KeyspaceSlot>

  /// The state that changes in hot paths. It has its own memory, because stored properties of a class are
  /// checked for exclusive access.
  struct State {
    var slots: UnsafeMutablePointer<Slot?>
    var capacity = 0
    /// The number of closures that bytes are lent to.
    var lent = 0
    /// Whether to call `late` when `lent` becomes zero.
    var endsLate = false
    /// The number of writes of the writer. A write makes older positions of cursors invalid.
    var writes = 0
    /// The number of statements run since the snapshot began.
    var uses = 0
    /// Whether BEGIN was run for the snapshot.
    var isExplicit = false
    /// Whether the library has rolled back the write transaction by itself.
    var isLost = false
    /// Whether a snapshot is open.
    var isReading = false
    /// Whether a statement has failed in the snapshot. The library may have ended it then.
    var hasFailed = false
  }

  /// The highest number of a keyspace. Numbers index an array. Only a damaged file has a higher one.
  static let highestNumber = 1 << 24

  let connection: Connection
  let functions: UnsafePointer<CSQLiteFunctions>
  let path: String
  let state: UnsafeMutablePointer<State>
  /// The cache of row numbers, shared by all connections of the file.
  let places: RowPlaces
  /// How large its cache is.
  let cacheRank: CacheRank
  /// How the connection was opened, or how its snapshot began, in a process that may write nothing beside the file.
  var visit: StillFile.Visit?
  /// The size of the cache in bytes, or nil if it isn't set in bytes.
  private(set) lazy var cacheBytes: Int? = {
    guard let setting = try? connection.integer("PRAGMA cache_size"), setting < 0 else { return nil }
    return -setting << 10
  }()
  /// The action to run when no closure holds lent bytes any more.
  var late: (() -> Void)?
  /// The open cursors. They end with their transaction.
  private var cursors: [Unmanaged<SQLiteCursor>] = []

  /// The slots that hold state of the open transaction. Only in the writer.
  var touched: [Slot] = []
  /// Whether a write transaction is open. Only in the writer.
  var isWriting = false
  /// Whether the open transaction has dropped a keyspace. Only in the writer. The counts in the slot stay
  /// after the drop.
  var hasDropped = false
  private var lossReason: StorageError?

  private let pin: OpaquePointer
  private let begin: OpaquePointer
  private let commit: OpaquePointer
  let countStatement: OpaquePointer
  private var catalogStatements: [CatalogTable.Condition: Statement] = [:]

  init(_ connection: Connection, path: String, places: RowPlaces, cacheRank: CacheRank) throws {
    self.connection = connection
    self.path = path
    self.places = places
    self.cacheRank = cacheRank
    functions = connection.functions
    var prepared: [OpaquePointer] = []
    do {
      let code = csqlite_register_visit(functions, connection.handle)
      guard code == SQLITE_OK else { throw connection.error(code, "create_function") }
      for sql in [
        "SELECT 1 FROM sqlite_master", "BEGIN", "COMMIT",
        "SELECT entries, highest FROM keyspaces WHERE number = ?1",
      ] {
        prepared.append(try connection.prepareRaw(sql))
      }
    } catch {
      for statement in prepared { _ = csqlite_finalize(functions, statement) }
      connection.close()
      throw error
    }
    pin = prepared[0]
    begin = prepared[1]
    commit = prepared[2]
    countStatement = prepared[3]
    state = .allocate(capacity: 1)
    state.initialize(to: State(slots: .allocate(capacity: 0)))
  }

  deinit { close() }
  private var isOpen = true

  /// Closes the connection. A second call does nothing.
  func close() {
    guard isOpen else { return }
    isOpen = false
    endCursors()
    for number in 0..<state.pointee.capacity {
      guard let slot = state.pointee.slots[number] else { continue }
      slot.pointee.finalizeStatements(functions)
      slot.pointee.deallocate()
      slot.deallocate()
    }
    state.pointee.slots.deallocate()
    state.deallocate()
    for statement in [pin, begin, commit, countStatement] { _ = csqlite_finalize(functions, statement) }
    for statement in catalogStatements.values { statement.finalize() }
    connection.close()
  }

  /// Leaves all resources untouched, for a forked child process: SQLite must not be used across a fork.
  func abandon() {
    isOpen = false
    _ = Unmanaged.passRetained(connection)
    for statement in catalogStatements.values { _ = Unmanaged.passRetained(statement) }
  }

  // MARK: Snapshots

  /// How long the reader's last snapshot may be kept (KeptSnapshot.swift).
  var kept = KeptSnapshot()

  /// Begins a snapshot with a statement that stands on a row. This is cheaper than a transaction that begins,
  /// reads once and commits.
  func beginSnapshot() throws {
    kept.begin()
    let code = csqlite_step(functions, pin)
    guard code == SQLITE_ROW else {
      let error = connection.error(code, "BEGIN")
      _ = csqlite_reset(functions, pin)
      throw error
    }
    state.pointee.isReading = true
  }

  /// Lets the writer's snapshot outlast its transaction (WriterSnapshot.swift). Returns false if it can't be.
  func holdSnapshot() -> Bool {
    if csqlite_step(functions, pin) == SQLITE_ROW { return true }
    _ = csqlite_reset(functions, pin)
    return false
  }

  /// Ends what `holdSnapshot` began.
  func letGoOfSnapshot() { _ = csqlite_reset(functions, pin) }

  func endSnapshot() {
    endCursors()
    _ = csqlite_reset(functions, pin)
    state.pointee.isReading = false
    state.pointee.hasFailed = false
    state.pointee.uses = 0
    if state.pointee.isExplicit {
      state.pointee.isExplicit = false
      _ = csqlite_step(functions, commit)
      _ = csqlite_reset(functions, commit)
    }
  }

  /// Counts a statement of the snapshot. Before the second statement a transaction begins, because without it
  /// each statement begins and ends one of its own.
  @inline(__always)
  func countUse() {
    if state.pointee.uses != 1 {
      state.pointee.uses &+= 1
    } else {
      makeExplicit()
    }
  }

  @inline(never)
  private func makeExplicit() {
    state.pointee.uses = 2
    guard csqlite_get_autocommit(functions, connection.handle) != 0 else { return }
    state.pointee.isExplicit = csqlite_step(functions, begin) == SQLITE_DONE
    _ = csqlite_reset(functions, begin)
  }

  // MARK: Slots

  /// Returns the slot of a keyspace. Throws `noSuchKeyspace` if the transaction has no keyspace of that
  /// number and shape.
  @inline(__always)
  func slot(of keyspace: Keyspace) throws -> Slot {
    let number = keyspace.number
    if UInt(bitPattern: number) < UInt(bitPattern: state.pointee.capacity),
      let slot = state.pointee.slots[number], slot.pointee.keyspace.shape == keyspace.shape
    {
      return slot
    }
    return try makeSlot(keyspace)
  }

  @inline(never)
  private func makeSlot(_ keyspace: Keyspace) throws -> Slot {
    try checkIsThere(keyspace)
    let number = keyspace.number
    guard number > 0, number <= Self.highestNumber else {
      throw StorageError(.damaged, "a keyspace has the impossible number \(number)", path: path)
    }
    if number >= state.pointee.capacity {
      let capacity = max(number + 1, state.pointee.capacity * 2, 32)
      let slots = UnsafeMutablePointer<Slot?>.allocate(capacity: capacity)
      slots.initialize(repeating: nil, count: capacity)
      slots.update(from: state.pointee.slots, count: state.pointee.capacity)
      state.pointee.slots.deallocate()
      state.pointee.slots = slots
      state.pointee.capacity = capacity
    }
    if let old = state.pointee.slots[number] {
      // A rolled-back transaction had given the number to a keyspace of another shape.
      old.pointee.finalizeStatements(functions)
      old.pointee.deallocate()
      old.deallocate()
    }
    let slot = Slot.allocate(capacity: 1)
    slot.initialize(to: KeyspaceSlot(keyspace))
    state.pointee.slots[number] = slot
    return slot
  }

  /// Returns the statement that reads certain rows of the table of keyspaces. Compiles it at the first use.
  func catalogStatement(_ condition: CatalogTable.Condition) throws -> Statement {
    if let known = catalogStatements[condition] { return known }
    let statement = try CatalogTable.prepare(condition, in: connection)
    catalogStatements[condition] = statement
    return statement
  }

  /// Throws `noSuchKeyspace` if the transaction has no keyspace of that number and shape.
  func checkIsThere(_ keyspace: Keyspace) throws {
    guard try CatalogTable.shape(of: keyspace.number, in: self) == keyspace.shape else {
      throw noSuchKeyspace(keyspace)
    }
  }

  func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError {
    StorageError(.noSuchKeyspace, "there is no keyspace with number \(keyspace.number)", path: path)
  }

  /// Returns a statement of a keyspace. Compiles it at the first use.
  @inline(__always)
  func statement(_ which: KeyspaceStatement, _ slot: Slot) throws -> OpaquePointer {
    if let statement = slot.pointee[which] { return statement }
    return try prepare(which, slot)
  }

  @inline(never)
  private func prepare(_ which: KeyspaceStatement, _ slot: Slot) throws -> OpaquePointer {
    let statement = try prepare(which.sql(slot.pointee.keyspace), slot)
    slot.pointee[which] = statement
    return statement
  }

  func prepare(_ sql: String, _ slot: Slot) throws -> OpaquePointer {
    do {
      return try connection.prepareRaw(sql)
    } catch let error as SQLiteError {
      throw failure(error, slot)
    }
  }

  // MARK: Errors

  /// Makes the error of a failed step and resets the statement.
  @inline(never)
  func failure(_ code: Int32, _ statement: OpaquePointer, _ slot: Slot) -> StorageError {
    let error = connection.error(code, csqlite_sql(functions, statement).map { String(cString: $0) })
    _ = csqlite_reset(functions, statement)
    state.pointee.hasFailed = true
    let failure = failure(error, slot)
    noteLoss(failure)
    return failure
  }

  /// Notes if the library has rolled back the write transaction by itself. It does this when a disk is full
  /// or fails.
  func noteLoss(_ reason: StorageError) {
    guard isWriting, !state.pointee.isLost, !connection.isInTransaction else { return }
    state.pointee.isLost = true
    lossReason = reason
  }

  func lostTransaction() -> StorageError {
    lossReason ?? StorageError(.engineFailure, "the write transaction was rolled back", path: path)
  }

  private func failure(_ error: SQLiteError, _ slot: Slot) -> StorageError {
    let keyspace = slot.pointee.keyspace
    if error.code == SQLITE_ERROR {
      guard isKnown(keyspace) else { return noSuchKeyspace(keyspace) }
      if error.message.hasPrefix("no such") {
        return StorageError(
          .damaged, "the table of keyspace \(keyspace.number) is missing or has other columns", path: path,
          engineCode: Int(error.extendedCode), engineMessage: error.message)
      }
    }
    if error.code == SQLITE_TOOBIG, error.statement?.hasPrefix("SELECT") == true {
      return StorageError(
        .damaged, "reading keyspace \(keyspace.number): a value is longer than the maximum", path: path,
        engineCode: Int(error.extendedCode), engineMessage: error.message)
    }
    return StorageError(error, "using keyspace \(keyspace.number)", path: path)
  }

  /// Returns whether the file has the keyspace. Also true if the table of keyspaces can't be read.
  private func isKnown(_ keyspace: Keyspace) -> Bool {
    do {
      return try CatalogTable.shape(of: keyspace.number, in: self) == keyspace.shape
    } catch {
      return true
    }
  }

  // MARK: Reading

  /// Binds a key. Its bytes must stay valid until the statement is reset.
  @inline(__always)
  func bind(
    _ key: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32, _ shape: KeyspaceShape
  )
    -> Int32
  {
    if shape == .sequences {
      return csqlite_bind_int64(functions, statement, index, SequenceKey.number(key))
    }
    return csqlite_bind_static_blob(
      functions, statement, index, key.baseAddress, Int32(truncatingIfNeeded: key.count))
  }

  /// Throws `invalidKey` for a key that a keyspace of that shape can't hold.
  @inline(__always)
  func check(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) throws {
    if keyspace.shape == .sequences {
      guard SequenceKey.isValid(key) else { throw invalidKey(key, keyspace) }
    } else {
      guard UInt(bitPattern: key.count &- 1) < UInt(StorageLimits.maximumKeyBytes) else {
        throw invalidKey(key, keyspace)
      }
    }
  }

  @inline(never)
  private func invalidKey(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) -> StorageError {
    let rule =
      keyspace.shape == .sequences
      ? "8 bytes, big-endian, below 2^63" : "1 to \(StorageLimits.maximumKeyBytes) bytes"
    return StorageError(.invalidKey, "a key has \(key.count) bytes, but must be \(rule)", path: path)
  }

  // MARK: Scans

  /// Returns a statement for a scan: an unused one, or a new one. Give it back with `endScan`.
  @inline(__always)
  func beginScan(_ variant: ScanVariant, _ slot: Slot) throws -> OpaquePointer {
    countUse()
    if let statement = slot.pointee.takeScan(variant) { return statement }
    return try prepare(variant.sql(slot.pointee.keyspace), slot)
  }

  @inline(__always)
  func endScan(_ statement: OpaquePointer, _ variant: ScanVariant, _ slot: Slot) {
    _ = csqlite_reset(functions, statement)
    if !slot.pointee.giveScan(statement, variant) { _ = csqlite_finalize(functions, statement) }
  }

  func register(_ cursor: SQLiteCursor) { cursors.append(Unmanaged.passUnretained(cursor)) }

  func unregister(_ cursor: SQLiteCursor) {
    if let index = cursors.lastIndex(where: { $0.toOpaque() == Unmanaged.passUnretained(cursor).toOpaque() })
    {
      cursors.swapAt(index, cursors.count - 1)
      cursors.removeLast()
    }
  }

  /// Takes back the statements of all cursors. The cursors of one keyspace end. The others have to be placed again.
  func releaseCursors(ending slot: Slot) {
    cursors.removeAll { $0._withUnsafeGuaranteedRef { $0.release(ending: slot) } }
  }

  /// Invalidates all cursors and takes back their statements.
  func endCursors() {
    for cursor in cursors { cursor._withUnsafeGuaranteedRef { $0.invalidate() } }
    cursors.removeAll(keepingCapacity: true)
  }
}
