import CLMDB
import Storage

/// The write transaction, or a member's child transaction within it.
package final class LMDBWriteTransaction: LMDBTransaction, WriteTransaction {
  /// The catalog as this transaction sees and changes it.
  private(set) var catalog: Catalog {
    didSet { table = catalog.table }
  }
  /// The handles of keyspaces created in this transaction. Handles that LMDB opened in this transaction are
  /// closed unless it commits.
  var newHandles: [String: MDB_dbi]
  /// Whether anything was written. LMDB gives an empty commit no number.
  @exclusivity(unchecked) package var hasWritten = false
  /// The first failure that broke the transaction. Later failures of LMDB don't repeat the reason.
  private(set) var failure: StorageError?
  private var openCursors: [Unmanaged<LMDBCursor>] = []

  init(
    _ transaction: OpaquePointer, _ environment: Environment, _ catalog: Catalog, _ handles: [String: MDB_dbi]
  ) {
    self.catalog = catalog
    newHandles = handles
    super.init(transaction, environment, catalog.table, isOpen: true)
  }

  /// Ends the use of the transaction when its body has returned. Gives back its cursors before LMDB frees
  /// them.
  package func bodyEnded() {
    isOpen = false
    for cursor in openCursors { cursor.takeUnretainedValue().close() }
    openCursors = []
  }

  package func end() {}

  package var lineage: UInt64? { environment.queue.lineage }
  package var turn: UInt64? { environment.queue.turn }

  /// Returns the handle of a keyspace, even after the body has returned.
  package func database(of keyspace: Keyspace) throws -> MDB_dbi {
    let handle = table.handle(of: keyspace.number)
    if handle == 0 { throw environment.noSuchKeyspace(keyspace) }
    return handle
  }

  /// Whether a failure made a commit impossible. LMDB then refuses every use of the transaction.
  var isBroken: Bool {
    guard failure != nil else { return false }
    var statistics = MDB_stat()
    return mdb_stat(transaction, 0, &statistics) == MDB_BAD_TXN
  }

  /// Adopts the state of a member that was kept.
  func adopt(_ member: LMDBWriteTransaction) {
    catalog = member.catalog
    newHandles = member.newHandles
    writes &+= 1
    if member.hasWritten { hasWritten = true }
  }

  override func track(_ cursor: LMDBCursor) { openCursors.append(.passUnretained(cursor)) }

  override func forget(_ cursor: LMDBCursor) {
    let pointer = Unmanaged.passUnretained(cursor).toOpaque()
    openCursors.removeAll { $0.toOpaque() == pointer }
  }

  // MARK: - Reading

  package func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return catalog.items[name]?.keyspace
  }

  package func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return catalog.items.mapValues(\.keyspace)
  }

  // MARK: - Writing

  /// Prepares a write and makes cursor positions invalid. Even a write that changes nothing may move pages,
  /// because LMDB writes some pages to the file when it holds too many.
  @inline(__always)
  private func beginWrite() throws {
    if lendsBytes { throw lentBytes("a write") }
    writes &+= 1
  }

  /// Returns the handle of a keyspace to be changed.
  @inline(__always)
  private func changeableHandle(of keyspace: Keyspace) throws -> MDB_dbi {
    try beginWrite()
    return try handle(of: keyspace)
  }

  /// Puts an entry and returns LMDB's result. The caller turns a failure into an error.
  @inline(__always)
  private func store(
    _ key: RawSpan, _ value: RawSpan, _ keyspace: Keyspace, _ flags: UInt32
  ) throws -> Int32 {
    let handle = try changeableHandle(of: keyspace)
    return try withStored(key, value, keyspace) { mdb_put(transaction, handle, &$0, &$1, flags) }
  }

  /// Calls `body` with an entry in LMDB's form and returns its result.
  @inline(__always)
  private func withStored(
    _ key: RawSpan, _ value: RawSpan, _ keyspace: Keyspace,
    _ body: (_ key: inout MDB_val, _ value: inout MDB_val) -> Int32
  ) throws -> Int32 {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { value in
        if !keyspace.takes(key) { throw environment.invalidKey(key, keyspace) }
        if value.count > StorageLimits.maximumValueBytes { throw environment.valueTooLarge(value.count) }
        var storedKey = MDB_val(key)
        var storedValue = MDB_val(value)
        let result = body(&storedKey, &storedValue)
        if result == 0 { hasWritten = true }
        return result
      }
    }
  }

  package func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let result = try store(key, value, keyspace, 0)
    if result != 0 { throw failed(result, "a value could not be put") }
  }

  package func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let result = try store(key, value, keyspace, UInt32(MDB_NOOVERWRITE))
    if result == 0 { return true }
    if result == MDB_KEYEXIST { return false }
    throw failed(result, "a value could not be inserted")
  }

  package func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let result = try store(key, value, keyspace, UInt32(MDB_APPEND))
    if result != 0 { throw appendFailure(result) }
  }

  private func appendFailure(_ result: Int32) -> StorageError {
    result == MDB_KEYEXIST ? outOfOrder() : failed(result, "a value could not be appended")
  }

  /// Appends with one cursor, which stays at the end.
  package func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    let handle = try changeableHandle(of: keyspace)
    let cursor = try takeCursor(handle)
    // Blocks all other writes during the load.
    beginLending()
    defer {
      endLending()
      giveBack(cursor, handle)
    }
    try body { key, value in
      if lendsWhileLoading { throw lentBytes("a write") }
      writes &+= 1
      let result = try withStored(key, value, keyspace) {
        mdb_cursor_put(cursor, &$0, &$1, UInt32(MDB_APPEND))
      }
      if result != 0 { throw appendFailure(result) }
    }
  }

  @discardableResult
  package func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let handle = try changeableHandle(of: keyspace)
    let result = try key.withUnsafeBytes { key in
      if !keyspace.takes(key) { throw environment.invalidKey(key, keyspace) }
      var removedKey = MDB_val(key)
      return mdb_del(transaction, handle, &removedKey, nil)
    }
    if result == 0 {
      hasWritten = true
      return true
    }
    if result == MDB_NOTFOUND { return false }
    throw failed(result, "an entry could not be deleted")
  }

  @discardableResult
  package func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    let handle = try changeableHandle(of: keyspace)
    if range == .all {
      let count = try count(of: keyspace)
      if count > 0 { try empty(handle) }
      return count
    }
    let cursor = try takeCursor(handle)
    defer { giveBack(cursor, handle) }
    return try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in try deleteEntries(cursor, lower, upper) }
    }
  }

  /// Deletes the entries between two bounds. After a delete, the cursor stands on the next entry, and
  /// `MDB_NEXT` returns that one.
  private func deleteEntries(_ cursor: OpaquePointer, _ lower: KeyBound, _ upper: KeyBound) throws -> Int {
    var key = MDB_val()
    var count = 0
    var result = CursorMove.first(cursor, from: lower, &key, nil)
    while result == 0, !upper.isBelow(key) {
      // When a page becomes empty, LMDB may restart at the first entry of the keyspace.
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

  package func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try checkOpen()
    try KeyspaceName.check(name, path: environment.path)
    if let found = catalog.items[name]?.keyspace {
      guard found.shape == shape else {
        throw environment.error(.shapeMismatch, "keyspace \(name) has shape \(found.shape), not \(shape)")
      }
      return found
    }
    guard catalog.items.count < StorageLimits.maximumKeyspaces else {
      throw environment.error(
        .tooManyKeyspaces,
        "keyspace \(name) can't be made: there are \(StorageLimits.maximumKeyspaces) keyspaces, the maximum")
    }
    try beginWrite()
    return try makeKeyspace(name, shape: shape)
  }

  /// Creates a keyspace that doesn't exist. Accepts names that users can't choose.
  package func makeKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
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

  /// Returns the handle of the keyspace's named database. It is already known if the name was used before.
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
        "keyspace \(name) needs a handle, but dropped keyspaces keep theirs while snapshots are open")
    }
    if result != 0 { throw failed(result, "keyspace \(name) could not be made") }
    newHandles[name] = handle
    return handle
  }

  package func dropKeyspace(_ keyspace: Keyspace) throws {
    let handle = try changeableHandle(of: keyspace)
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

  /// Makes the error of a result of LMDB. After the first failure LMDB reports only "bad transaction", so the
  /// first error is stored and returned again.
  package override func failed(_ result: Int32, _ what: String) -> StorageError {
    if result == MDB_BAD_TXN, let failure { return failure }
    let error = environment.writeError(result, what)
    if failure == nil { failure = error }
    return error
  }

  @inline(never)
  private func outOfOrder() -> StorageError {
    environment.error(.outOfOrder, "an appended key isn't greater than all others of its keyspace")
  }
}
