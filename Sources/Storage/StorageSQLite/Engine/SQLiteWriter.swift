import CSQLite
import SQLiteLibrary
import Storage

/// The connection that writes. `GroupCommit` drives it.
final class SQLiteWriter: WriteGroup, @unchecked Sendable {
  private enum Control: String, CaseIterable {
    case begin = "BEGIN IMMEDIATE"
    case commit = "COMMIT"
    case rollback = "ROLLBACK"
    case savepoint = "SAVEPOINT part"
    case release = "RELEASE part"
    case rollbackPart = "ROLLBACK TO part"
  }

  let connection: EngineConnection
  let snapshot: WriterSnapshot
  private let functions: UnsafePointer<CSQLiteFunctions>
  private let statements: [Control: OpaquePointer]
  private let beginStatement: OpaquePointer
  private let commitStatement: OpaquePointer
  private let counts: EngineConnection.CountStatements
  private let checkpoints: Checkpoints
  let queue: GroupCommit
  /// `PRAGMA data_version`. It changes when another connection commits.
  private let versionStatement: OpaquePointer
  /// The version at the last look, and whether the open transaction has looked.
  private var version: Int64?
  private var hasLooked = false
  private var transaction: SQLiteWriteTransaction?
  private var isClosed = false
  /// Begins and ends a transaction.
  private let thread = ThreadChecker("a write transaction of SQLite")
  /// Whether this writer has read since its first commit.
  private var isMarked = false
  /// The smallest number for a new keyspace. It is above the numbers from rolled-back transactions, because
  /// callers may still hold handles with those numbers.
  private var nextNumber = 1

  init(
    _ connection: EngineConnection, _ queue: GroupCommit, _ log: WriteAheadLog,
    timer: any CallTimer = SystemTimer()
  ) throws {
    self.connection = connection
    snapshot = WriterSnapshot(connection, timer: timer)
    self.queue = queue
    functions = connection.functions
    var statements: [Control: OpaquePointer] = [:]
    for control in Control.allCases {
      statements[control] = try connection.connection.prepareRaw(control.rawValue)
    }
    self.statements = statements
    guard let begin = statements[.begin], let commit = statements[.commit] else {
      preconditionFailure("all control statements were compiled")
    }
    beginStatement = begin
    commitStatement = commit
    counts = EngineConnection.CountStatements(
      add: try connection.connection.prepareRaw(EngineConnection.CountStatements.add),
      append: try connection.connection.prepareRaw(EngineConnection.CountStatements.append),
      set: try connection.connection.prepareRaw(EngineConnection.CountStatements.set))
    versionStatement = try connection.connection.prepareRaw("PRAGMA data_version")
    checkpoints = Checkpoints(connection.connection, log)
  }

  /// Closes the connection. Call it only inside the queue, when no writer is active.
  func close() {
    isClosed = true
    snapshot.close()
    checkpoints.beforeClosing()
    for statement in Array(statements.values) + [counts.add, counts.append, counts.set, versionStatement] {
      _ = csqlite_finalize(functions, statement)
    }
    connection.close()
    checkpoints.deallocate()
  }

  /// Leaves all resources untouched, for a forked child process.
  func abandon() { connection.abandon() }

  private func run(_ control: Control, _ tried: String) throws {
    guard let statement = statements[control] else { return }
    try run(statement, tried)
  }

  @inline(__always)
  private func run(_ statement: OpaquePointer, _ tried: String) throws {
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_DONE else { throw failed(code, statement, tried) }
    _ = csqlite_reset(functions, statement)
  }

  private func failed(_ code: Int32, _ statement: OpaquePointer, _ tried: String) -> StorageError {
    let error = connection.connection.error(
      code, csqlite_sql(functions, statement).map { String(cString: $0) })
    _ = csqlite_reset(functions, statement)
    let failure = StorageError(error, tried, path: connection.path)
    connection.noteLoss(failure)
    return failure
  }

  // MARK: WriteGroup

  func begin() throws -> any WriteTransaction {
    guard !isClosed else {
      throw StorageError(.closed, "the database is closed and can't be written", path: connection.path)
    }
    snapshot.use()
    do { try beginTransaction() } catch {
      snapshot.leave(afterCommit: false)
      throw error
    }
    thread.enter()
    connection.state.pointee.isLost = false
    connection.isWriting = true
    connection.hasDropped = false
    hasLooked = false
    let transaction = SQLiteWriteTransaction(self)
    self.transaction = transaction
    return transaction
  }

  private func beginTransaction() throws {
    if snapshot.isHeld {
      let code = csqlite_step(functions, beginStatement)
      _ = csqlite_reset(functions, beginStatement)
      if code == SQLITE_DONE { return }
      // Another process writes, or has committed since the snapshot began. The library waits only for a transaction that
      // begins without a snapshot.
      snapshot.giveUp()
    }
    try run(beginStatement, "beginning to write")
  }

  func commit() throws {
    endPart()
    do {
      if connection.state.pointee.isLost { throw connection.lostTransaction() }
      connection.keepCounts()
      try connection.writeCounts(counts)
      // The first commit is followed by a read of its own.
      if isMarked { snapshot.hold() }
      let code = csqlite_step_commit(functions, connection.connection.handle, commitStatement)
      guard code == SQLITE_DONE else { throw failed(code, commitStatement, "committing") }
      _ = csqlite_reset(functions, commitStatement)
    } catch {
      rollBack()
      throw error
    }
    finish()
    if !isMarked { markLog() }
    checkpoints.afterCommit()
    snapshot.leave(afterCommit: true)
  }

  /// Reads once after the first commit. A reader of a new log has to note in the shared memory up to where it reads. A
  /// process that may not write the shared memory can only use the note of somebody else.
  private func markLog() {
    isMarked = true
    try? connection.beginSnapshot()
    connection.endSnapshot()
  }

  func abort() {
    endPart()
    rollBack()
  }

  private func rollBack() {
    snapshot.giveUp()
    if connection.connection.isInTransaction { try? run(.rollback, "rolling back") }
    finish()
    snapshot.leave(afterCommit: false)
  }

  private func finish() {
    thread.leave()
    connection.isWriting = false
    connection.clearCounts()
  }

  /// Ends the transaction object and the cursors of the current part.
  private func endPart() {
    transaction?.invalidate()
    transaction = nil
    connection.endCursors()
  }

  /// The lineage of the open transaction. Looking for commits of other connections takes a statement, so this
  /// is done once a transaction, and only if somebody asks.
  func lineage() throws -> UInt64 {
    if !hasLooked {
      let code = csqlite_step(functions, versionStatement)
      guard code == SQLITE_ROW else {
        throw failed(code, versionStatement, "looking for changes of others")
      }
      let now = csqlite_column_int64(functions, versionStatement, 0)
      _ = csqlite_reset(functions, versionStatement)
      if now != version { queue.breakLineage() }
      version = now
      hasLooked = true
    }
    return queue.lineage
  }

  func beginMember() throws -> any WriteTransaction {
    endPart()
    if connection.state.pointee.isLost { throw connection.lostTransaction() }
    connection.keepCounts()
    try run(.savepoint, "beginning to write")
    let transaction = SQLiteWriteTransaction(self)
    self.transaction = transaction
    return transaction
  }

  func keepMember() throws {
    endPart()
    if connection.state.pointee.isLost { throw connection.lostTransaction() }
    try run(.release, "writing")
    connection.keepCounts()
  }

  func abortMember() {
    endPart()
    connection.dropPartCounts()
    // If the library has ended the whole transaction, there is no part to undo. The commit will report it.
    guard !connection.state.pointee.isLost else { return }
    snapshot.giveUp()
    do {
      try run(.rollbackPart, "rolling back")
      try run(.release, "rolling back")
    } catch {
      // The part couldn't be undone, so the whole transaction must not be committed.
      giveUp(error as? StorageError)
    }
  }

  /// Whether the library or a failed rollback has ended the whole transaction.
  var isBroken: Bool { connection.state.pointee.isLost }

  var breakage: StorageError? { isBroken ? connection.lostTransaction() : nil }

  private func giveUp(_ reason: StorageError?) {
    snapshot.giveUp()
    if connection.connection.isInTransaction { try? run(.rollback, "rolling back") }
    connection.noteLoss(
      reason ?? StorageError(.engineFailure, "the rollback of a transaction failed", path: connection.path))
  }

  // MARK: Keyspaces

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try connection.beginWrite()
    try KeyspaceName.check(name, path: connection.path)
    let database = connection.connection
    if let row = try CatalogTable.keyspace(named: name, in: connection) {
      guard row.shape == shape else {
        throw StorageError(
          .shapeMismatch, "the keyspace “\(name)” has the shape \(row.shape), not \(shape)",
          path: connection.path)
      }
      return row.keyspace
    }
    return try changing("making a keyspace") {
      guard try database.integer("SELECT count(*) FROM keyspaces") ?? 0 < StorageLimits.maximumKeyspaces
      else {
        throw StorageError(
          .tooManyKeyspaces, "there are \(StorageLimits.maximumKeyspaces) keyspaces, the maximum",
          path: connection.path)
      }
      let number = max(nextNumber, try database.integer("SELECT next FROM layout") ?? 1)
      guard number <= EngineConnection.highestNumber else {
        throw StorageError(.tooManyKeyspaces, "all numbers of keyspaces are used", path: connection.path)
      }
      nextNumber = number + 1
      let insert = try database.prepare("INSERT INTO keyspaces VALUES (?1, ?2, ?3, 0, NULL)")
      defer { insert.finalize() }
      try insert.bind(1, number)
      try insert.bind(2, name)
      try insert.bind(3, Int(shape.rawValue))
      try insert.run()
      try database.execute(
        """
        UPDATE layout SET next = \(number + 1);
        \(SQLiteLayout.tableCreation(number, shape: shape));
        """)
      return Keyspace(number: number, shape: shape)
    }
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    try connection.beginWrite()
    let slot = try connection.slot(of: keyspace)
    // A table can't be dropped while any statement reads.
    connection.releaseCursors(ending: slot)
    snapshot.giveUp()
    slot.pointee.finalizeStatements(functions)
    slot.pointee.lastKeyCount = -1
    connection.hasDropped = true
    let database = connection.connection
    try changing("dropping a keyspace") {
      try database.execute("DELETE FROM keyspaces WHERE number = \(keyspace.number)")
      guard database.changes == 1 else { throw connection.noSuchKeyspace(keyspace) }
      try database.execute("DROP TABLE \(SQLiteLayout.table(keyspace.number))")
    }
  }

  /// Runs statements that belong together. If one of them fails, the whole transaction is rolled back.
  private func changing<Result>(_ tried: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      let failure = StorageError(error, tried, path: connection.path)
      giveUp(failure)
      throw failure
    }
  }
}
