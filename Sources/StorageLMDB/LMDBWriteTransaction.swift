import CLMDB
import Storage

/// The write transaction, or a member's child transaction within it.
final class LMDBWriteTransaction: WriteTransaction {
  let transaction: OpaquePointer
  unowned(unsafe) let environment: Environment
  /// As this transaction sees and changes it.
  private(set) var catalog: Catalog {
    didSet { table = catalog.table }
  }
  // Touched in every call: a check of exclusive access costs as much as the rest of a call.
  @exclusivity(unchecked) private var table: HandleTable
  /// Handles that keyspaces made here use. Those that LMDB gave this transaction end with it unless it
  /// commits.
  var newHandles: [String: MDB_dbi]
  /// Whether anything was written: LMDB gives a commit of nothing no number.
  @exclusivity(unchecked) var hasWritten = false
  /// The first failure that broke the transaction: LMDB only says so afterwards.
  private(set) var failure: StorageError?
  @exclusivity(unchecked) private var isOpen = true
  private var openCursors: [Unmanaged<LMDBCursor>] = []

  init(
    _ transaction: OpaquePointer, _ environment: Environment, _ catalog: Catalog, _ handles: [String: MDB_dbi]
  ) {
    self.transaction = transaction
    self.environment = environment
    self.catalog = catalog
    table = catalog.table
    newHandles = handles
  }

  /// Called when its body has returned: nothing may use it after that, and its cursors are given back before
  /// LMDB frees them.
  func bodyEnded() {
    isOpen = false
    for cursor in openCursors { cursor.takeUnretainedValue().close() }
    openCursors = []
  }

  func end() {}

  /// The handle of a keyspace, also when the body has returned.
  @inline(__always)
  func database(of keyspace: Keyspace) throws -> MDB_dbi {
    let handle = table.handle(of: keyspace.number)
    if handle == 0 { throw noSuchKeyspace(keyspace) }
    return handle
  }

  /// Whether a failure has made the transaction impossible to commit: LMDB then refuses its every use.
  var isBroken: Bool {
    guard failure != nil else { return false }
    var statistics = MDB_stat()
    return mdb_stat(transaction, 0, &statistics) == MDB_BAD_TXN
  }

  /// Takes over what a member kept.
  func adopt(_ member: LMDBWriteTransaction) {
    catalog = member.catalog
    newHandles = member.newHandles
    if member.hasWritten { hasWritten = true }
  }

  func track(_ cursor: LMDBCursor) { openCursors.append(.passUnretained(cursor)) }

  func forget(_ cursor: LMDBCursor) {
    let pointer = Unmanaged.passUnretained(cursor).toOpaque()
    openCursors.removeAll { $0.toOpaque() == pointer }
  }

  // MARK: - Reading

  @inline(__always)
  private func handle(of keyspace: Keyspace) throws -> MDB_dbi {
    precondition(isOpen, "a write transaction was used after its body had returned")
    let handle = table.handle(of: keyspace.number)
    if handle == 0 { throw noSuchKeyspace(keyspace) }
    return handle
  }

  func keyspace(named name: String) throws -> Keyspace? {
    precondition(isOpen, "a write transaction was used after its body had returned")
    return catalog.items[name]?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    precondition(isOpen, "a write transaction was used after its body had returned")
    return catalog.items.mapValues(\.keyspace)
  }

  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    let handle = try handle(of: keyspace)
    if !keyspace.takes(key) { throw invalidKey(key, keyspace) }
    var wanted = MDB_val(key)
    var value = MDB_val()
    let result = mdb_get(transaction, handle, &wanted, &value)
    if result == 0 { return UnsafeRawBufferPointer(found: value) }
    if result == MDB_NOTFOUND { return nil }
    throw failed(result, "a value could not be read")
  }

  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let cursor = try openCursor(try handle(of: keyspace))
    defer { mdb_cursor_close(cursor) }
    let result = try Scan.run(cursor, range, order, fetch, fetchesAhead: nil, body)
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a scan could not go on") }
  }

  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor {
    let handle = try handle(of: keyspace)
    return LMDBCursor(try openCursor(handle), handle, range, reader: nil, writer: self)
  }

  func count(of keyspace: Keyspace) throws -> Int {
    var statistics = MDB_stat()
    let result = mdb_stat(transaction, try handle(of: keyspace), &statistics)
    if result != 0 { throw failed(result, "entries could not be counted") }
    return statistics.ms_entries
  }

  private func openCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = mdb_cursor_open(transaction, database, &cursor)
    guard result == 0, let cursor else { throw failed(result, "a cursor could not be opened") }
    return cursor
  }

  // MARK: - Writing

  /// Puts and gives LMDB's result; whoever calls says what a failure means.
  @inline(__always)
  private func store(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ keyspace: Keyspace, _ flags: UInt32
  ) throws -> Int32 {
    let handle = try handle(of: keyspace)
    if !keyspace.takes(key) { throw invalidKey(key, keyspace) }
    if value.count > StorageLimits.maximumValueBytes { throw valueTooLarge(value) }
    var storedKey = MDB_val(key)
    var storedValue = MDB_val(value)
    let result = mdb_put(transaction, handle, &storedKey, &storedValue, flags)
    if result == 0 { hasWritten = true }
    return result
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let result = try store(key, value, keyspace, 0)
    if result != 0 { throw failed(result, "a value could not be put") }
  }

  func insert(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws -> Bool {
    let result = try store(key, value, keyspace, UInt32(MDB_NOOVERWRITE))
    if result == 0 { return true }
    if result == MDB_KEYEXIST { return false }
    throw failed(result, "a value could not be inserted")
  }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let result = try store(key, value, keyspace, UInt32(MDB_APPEND))
    if result != 0 {
      throw result == MDB_KEYEXIST ? outOfOrder() : failed(result, "a value could not be appended")
    }
  }

  @discardableResult
  func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool {
    let handle = try handle(of: keyspace)
    if !keyspace.takes(key) { throw invalidKey(key, keyspace) }
    var removedKey = MDB_val(key)
    let result = mdb_del(transaction, handle, &removedKey, nil)
    if result == 0 {
      hasWritten = true
      return true
    }
    if result == MDB_NOTFOUND { return false }
    throw failed(result, "an entry could not be deleted")
  }

  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    let handle = try handle(of: keyspace)
    if range == .all {
      let count = try count(of: keyspace)
      if count > 0 { try empty(handle) }
      return count
    }
    let cursor = try openCursor(handle)
    defer { mdb_cursor_close(cursor) }
    return try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in try deleteEntries(cursor, lower, upper) }
    }
  }

  /// A cursor whose entry was deleted stands on the one after it, which `MDB_NEXT` then gives.
  private func deleteEntries(_ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound) throws -> Int {
    var key = MDB_val()
    var count = 0
    var result = CursorMove.first(cursor, from: lower, &key, nil)
    while result == 0, !upper.isBelow(key) {
      // Emptying a page can make LMDB start anew at the keyspace's first entry.
      if lower.isAbove(key) {
        result = CursorMove.first(cursor, from: lower, &key, nil)
        continue
      }
      let deleted = mdb_cursor_del(cursor, 0)
      if deleted != 0 { throw failed(deleted, "a range could not be deleted") }
      hasWritten = true
      count += 1
      result = mdb_cursor_get(cursor, &key, nil, MDB_NEXT)
    }
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a range could not be deleted") }
    return count
  }

  private func empty(_ handle: MDB_dbi) throws {
    let result = mdb_drop(transaction, handle, 0)
    if result != 0 { throw failed(result, "a keyspace could not be emptied") }
    hasWritten = true
  }

  // MARK: - Keyspaces

  private var records: CatalogRecords {
    CatalogRecords(transaction: transaction, handle: environment.catalogHandle, path: environment.path)
  }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    precondition(isOpen, "a write transaction was used after its body had returned")
    try environment.checkName(name)
    if let found = catalog.items[name]?.keyspace {
      guard found.shape == shape else {
        throw environment.error(.shapeMismatch, "keyspace \(name) has shape \(found.shape), not \(shape)")
      }
      return found
    }
    guard catalog.items.count < StorageLimits.maximumKeyspaces else {
      throw environment.error(
        .tooManyKeyspaces, "keyspace \(name) would be one more than \(StorageLimits.maximumKeyspaces)")
    }
    return try makeKeyspace(name, shape: shape)
  }

  /// Makes a keyspace that isn't there, also one whose name users can't choose.
  func makeKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    let handle = try openHandle(name)
    let changed = catalog.adding(name, shape: shape, handle: handle)
    let keyspace = Keyspace(number: catalog.nextNumber, shape: shape)
    hasWritten = true
    try check(records.put(name, keyspace), name)
    try check(records.put(changed), name)
    catalog = changed
    return keyspace
  }

  private func check(_ result: Int32, _ name: String) throws {
    if result != 0 { throw failed(result, "keyspace \(name) could not be written into the catalog") }
  }

  /// The handle of the keyspace's named database: known already when the name was used before.
  private func openHandle(_ name: String) throws -> MDB_dbi {
    if let handle = newHandles[name] ?? environment.knownHandle(name) {
      newHandles[name] = handle
      return handle
    }
    var handle: MDB_dbi = 0
    var result = mdb_dbi_open(transaction, name, UInt32(MDB_CREATE), &handle)
    if result == MDB_DBS_FULL, environment.closeUnusedHandles(besides: newHandles) {
      result = mdb_dbi_open(transaction, name, UInt32(MDB_CREATE), &handle)
    }
    if result == MDB_DBS_FULL {
      throw environment.error(
        .tooManyKeyspaces,
        "keyspace \(name) needs a handle, and dropped ones keep theirs while snapshots are open")
    }
    if result != 0 { throw failed(result, "keyspace \(name) could not be made") }
    newHandles[name] = handle
    return handle
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    let handle = try handle(of: keyspace)
    guard let item = catalog.items.values.first(where: { $0.keyspace.number == keyspace.number }) else {
      throw environment.noSuchKeyspace(keyspace)
    }
    try empty(handle)
    let changed = catalog.removing(item.name)
    try check(records.remove(item.name), item.name)
    try check(records.put(changed), item.name)
    catalog = changed
  }

  // MARK: - Errors

  /// What LMDB's result means here. It only says "bad transaction" after the first failure, so that one is
  /// kept and told again.
  @inline(never)
  func failed(_ result: Int32, _ what: String) -> StorageError {
    if result == MDB_BAD_TXN, let failure { return failure }
    let error = environment.writeError(result, what)
    if failure == nil { failure = error }
    return error
  }

  @inline(never)
  private func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError { environment.noSuchKeyspace(keyspace) }

  @inline(never)
  private func invalidKey(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) -> StorageError {
    environment.invalidKey(key, keyspace)
  }

  @inline(never)
  private func valueTooLarge(_ value: UnsafeRawBufferPointer) -> StorageError {
    environment.valueTooLarge(value.count)
  }

  @inline(never)
  private func outOfOrder() -> StorageError {
    environment.error(.outOfOrder, "an appended key isn't greater than all others of its keyspace")
  }
}
