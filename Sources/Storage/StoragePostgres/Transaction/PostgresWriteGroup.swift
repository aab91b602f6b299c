import Storage
import StorageMemory

/// The write group with which `GroupCommit` runs the writes of a `PostgresEngine`: one transaction of the server.
final class PostgresWriteGroup: WriteGroup {
  /// How often a server may refuse the beginning of a transaction because of another one.
  private static let beginnings = 20

  private let engine: PostgresEngine
  private var connection: Connection?
  private var writer: PostgresWriter?
  /// The number of the last commit, by somebody else or this engine.
  private var row: DatabaseRow?
  private var failure: StorageError?

  private var memory: WriterMemory { engine.writing }

  init(_ engine: PostgresEngine) { self.engine = engine }

  var isBroken: Bool { breakage != nil }
  var breakage: StorageError? { failure ?? writer?.breakage }

  // MARK: Beginning

  func begin() throws -> any WriteTransaction {
    failure = nil
    let (connection, row, isSame) = try reporting("a write transaction can't be begun", engine.location) {
      try lock()
    }
    self.connection = connection
    self.row = row
    do {
      // A server that has taken over may lack the last commits, and have others with the same numbers.
      if !isSame || memory.commits != row.commits {
        engine.queue.breakLineage()
        memory.forget()
        memory.commits = row.commits
      }
      let state = WriterState(try catalog(row, connection, isSame), greatest: memory.greatest)
      let writer = PostgresWriter(engine, connection, state, isPart: false)
      self.writer = writer
      return writer
    } catch {
      abort()
      throw error
    }
  }

  /// Begins a transaction and waits for its turn among the writers of all processes. Says whether it has the connection of the
  /// last transaction.
  private func lock() throws -> (Connection, DatabaseRow, isSame: Bool) {
    if let connection = memory.connection {
      memory.connection = nil
      do {
        let (connection, row) = try Self.lock(connection, engine.location)
        return (connection, row, true)
      } catch let error as PostgresError where error.isPassing {
        connection.close()
      }
    }
    let (connection, row) = try engine.pool.withConnection { try Self.lock($0, engine.location) }
    return (connection, row, false)
  }

  private static func lock(_ connection: Connection, _ location: String) throws -> (Connection, DatabaseRow) {
    for attempt in 1... {
      do {
        let answers = try connection.exchange([
          .text("BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED"), .prepared(.lock, []),
        ])
        return (connection, try DatabaseRow(answers[1], location))
      } catch {
        connection.sendEnding("ROLLBACK")
        // A server may refuse instead of waiting. Nothing was done yet.
        guard let error = error as? PostgresError, error.code == .conflict, attempt < beginnings else {
          throw error
        }
      }
    }
    throw PostgresError(nil, "the transaction can't be begun", isLost: false)
  }

  private func catalog(_ row: DatabaseRow, _ connection: Connection, _ isSame: Bool) throws -> PostgresCatalog
  {
    if isSame, let catalog = engine.knownCatalog(row.catalog) { return catalog }
    let answer = try reporting("the keyspaces can't be read", engine.location, lost: .conflict) {
      try connection.run(.keyspaces, [])
    }
    connection.hasReadCatalog = true
    return try PostgresCatalog(row, answer, engine.location)
  }

  // MARK: Ending

  func commit() throws {
    guard let connection, let writer, let row else { return }
    var state = writer.state
    writer.close()
    self.writer = nil
    guard state.isChanged else { return abort() }
    if state.changesCatalog { state.catalog.version += 1 }
    let number = row.commits + 1
    do {
      try send(state, number, connection, notifies: row.isListened && connection.hasSettings)
    } catch let error as PostgresError {
      memory.forget()
      guard error.isLost else {
        abort()
        throw error.storageError("a commit has failed", engine.location)
      }
      self.connection = nil
      try findOut(number, error)
    }
    remember(state, number)
    if let connection = self.connection { memory.connection = connection }
    self.connection = nil
  }

  /// Sends everything and the commit at once.
  private func send(
    _ state: WriterState, _ number: Int, _ connection: Connection, notifies: Bool
  ) throws {
    let channel = CommitListener.channel(of: engine.place.schema)
    try memory.id.withUnsafeBytes { id in
      _ = try connection.exchange(
        state.requests() + [
          .prepared(
            .commit, [.integer(number), .integer(state.catalog.version), .integer(state.catalog.lastNumber)]),
          .prepared(.noteCommit, [.bytes(id), .integer(number)]),
        ] + (notifies ? [.prepared(.notify, [.text(channel)])] : [])
          + (memory.isNoted ? [] : [.prepared(.forgetOldWriters, [])]) + [.text("COMMIT")])
    }
  }

  /// Finds out whether a commit was made whose answer was lost. Returns if it was.
  ///
  /// The row's lock is free only when the server has ended the transaction, so what is found then is final.
  private func findOut(_ number: Int, _ lost: PostgresError) throws {
    let noted: Int?
    do {
      noted = try memory.id.withUnsafeBytes { id in
        try engine.pool.withConnection { connection in
          _ = try Self.lock(connection, engine.location)
          let answer = try connection.run(.notedCommit, [.bytes(id)])
          let noted = answer.count == 1 ? answer.integer(0, 0) : nil
          if noted == number {
            _ = try connection.exchange([.text("COMMIT")])
          } else {
            connection.sendEnding("ROLLBACK")
          }
          self.connection = connection
          return noted
        }
      }
    } catch let error as PostgresError {
      throw StorageError(
        .ioError,
        """
        the connection was lost while the server committed, and the server can't be asked whether it did: \
        read what was written before writing it again
        """, path: engine.location, engineMessage: error.message)
    }
    guard noted == number else {
      throw lost.storageError(
        "the connection was lost before the server committed: run the transaction again", engine.location,
        lost: .conflict)
    }
  }

  /// Keeps what the next transaction can use.
  private func remember(_ state: WriterState, _ number: Int) {
    if state.hasSent {
      // What the server did with ranges isn't known here.
      memory.forget()
    } else {
      for (keyspace, records) in state.entries {
        var place = records.start
        while place < records.end {
          let record = records[place]
          place = records.after(place)
          record.withBytes { key, value in
            if UnsentMark.isPut(record.mark) {
              memory.note(key, value, keyspace)
            } else {
              memory.noteAbsent(key, keyspace)
            }
          }
        }
      }
      memory.greatest = state.greatest
    }
    memory.commits = number
    memory.isNoted = true
    if state.changesCatalog { engine.remember(state.catalog) }
  }

  func abort() {
    if breakage != nil { memory.forget() }
    writer?.close()
    writer = nil
    guard let connection else { return }
    self.connection = nil
    connection.sendEnding("ROLLBACK")
    memory.connection = connection.isClosed ? nil : connection
  }

  // MARK: Parts

  func beginMember() throws -> any WriteTransaction {
    guard let connection, let last = writer else {
      throw StorageError(.closed, "the transaction has ended", path: engine.location)
    }
    last.close()
    let next = PostgresWriter(engine, connection, last.state, isPart: true)
    writer = next
    return next
  }

  func keepMember() throws { writer?.close() }

  func abortMember() {
    guard let connection, let last = writer, let before = last.before else { return }
    failure = failure ?? last.breakage
    last.close()
    if last.hasSavepoint {
      connection.sendEnding("ROLLBACK TO SAVEPOINT part")
      if connection.isClosed {
        failure =
          failure ?? StorageError(.conflict, "the connection to the server was lost", path: engine.location)
      }
    }
    // What follows goes on where the part began.
    let kept = PostgresWriter(engine, connection, before, isPart: false)
    kept.close()
    writer = kept
  }
}
