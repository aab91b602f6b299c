import CSQLite

/// A connection to one file. One thread at a time.
///
/// The connection is opened without the library's own mutex. Threads that share it must pass it on under a
/// lock. Finalize its statements before you close it.
package final class Connection {
  /// The library of the connection.
  package let library: Library
  /// The path or URI that the connection was opened with.
  package let path: String
  /// The functions of the library.
  package let functions: UnsafePointer<CSQLiteFunctions>
  /// The library's handle of the connection, for code that calls the library's functions directly.
  package let handle: OpaquePointer
  private var isOpen = true
  private var busyWait: UnsafeMutablePointer<BusyWait>?
  // What is left of the work that one step may cost, in calls of the library's progress handler.
  private var stepBudget: UnsafeMutablePointer<StepBudget>?

  /// Opens the file at `path`.
  ///
  /// `flags` are the library's flags (`SQLITE_OPEN_READWRITE`, …). `vfs` names one of the library's file
  /// system layers, or nil for the default one. Opening reads nothing: a file that isn't a database fails at
  /// the first statement.
  package init(_ path: String, library: Library, flags: Int32, vfs: String? = nil) throws {
    self.library = library
    self.path = path
    functions = library.functions
    var handle: OpaquePointer?
    let code = csqlite_open_v2(functions, path, &handle, flags | SQLITE_OPEN_NOMUTEX, vfs)
    guard code == SQLITE_OK, let handle else {
      var error = SQLiteError(
        extendedCode: code, message: text(csqlite_errstr(functions, code)) ?? "", statement: "open")
      if let handle {
        error = SQLiteError(
          extendedCode: csqlite_extended_errcode(functions, handle),
          message: text(csqlite_errmsg(functions, handle)) ?? "", statement: "open",
          systemError: csqlite_system_errno(functions, handle))
        _ = csqlite_close_v2(functions, handle)
      }
      throw error
    }
    self.handle = handle
    _ = csqlite_extended_result_codes(functions, handle, 1)
  }

  deinit { close() }

  /// Closes the connection. A second call does nothing.
  package func close() {
    guard isOpen else { return }
    isOpen = false
    _ = csqlite_close_v2(functions, handle)
    busyWait?.deallocate()
    busyWait = nil
    stepBudget?.deallocate()
    stepBudget = nil
  }

  /// Makes an error from the result of the last call. `statement` is what was tried.
  package func error(_ code: Int32, _ statement: String?) -> SQLiteError {
    // The connection knows the extended code and the message only of its last call.
    let last = csqlite_extended_errcode(functions, handle)
    let isLast = last & 0xFF == code & 0xFF
    let isSystem = [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL].contains(code & 0xFF)
    return SQLiteError(
      extendedCode: isLast ? last : code,
      message: text(isLast ? csqlite_errmsg(functions, handle) : csqlite_errstr(functions, code)) ?? "",
      statement: statement,
      systemError: isSystem ? csqlite_system_errno(functions, handle) : 0)
  }

  /// The library's words for a code that it gives.
  package func words(of code: Int32) -> String { text(csqlite_errstr(functions, code)) ?? "" }

  /// Compiles one statement.
  package func prepare(_ sql: String) throws -> Statement {
    Statement(try prepareRaw(sql), of: self)
  }

  /// Compiles one statement for code that steps it directly. The caller must finalize it.
  package func prepareRaw(_ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    let code = csqlite_prepare_v2(functions, handle, sql, -1, &statement, nil)
    guard code == SQLITE_OK else { throw error(code, sql) }
    guard let statement else {
      throw SQLiteError(extendedCode: SQLITE_MISUSE, message: "the statement is empty", statement: sql)
    }
    return statement
  }

  /// Runs one or more statements and ignores their rows.
  package func execute(_ sql: String) throws {
    let code = csqlite_exec(functions, handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code, sql) }
  }

  /// Returns the first column of the first row, or nil if there is no row or the column is NULL.
  package func integer(_ sql: String) throws -> Int? {
    let statement = try prepare(sql)
    defer { statement.finalize() }
    return try statement.step() && !statement.isNull(0) ? statement.integer(0) : nil
  }

  /// Returns the first column of the first row as text, or nil if there is no row or the column is NULL.
  package func string(_ sql: String) throws -> String? {
    let statement = try prepare(sql)
    defer { statement.finalize() }
    return try statement.step() ? statement.string(0) : nil
  }

  /// Returns the first column of all rows as text.
  package func strings(_ sql: String) throws -> [String] {
    let statement = try prepare(sql)
    defer { statement.finalize() }
    var strings: [String] = []
    while try statement.step() { strings.append(statement.string(0) ?? "") }
    return strings
  }

  /// The number of rows that the last statement changed.
  package var changes: Int { Int(csqlite_changes(functions, handle)) }

  /// Whether a transaction is open. The library ends a transaction by itself when a disk is full.
  package var isInTransaction: Bool { csqlite_get_autocommit(functions, handle) == 0 }

  /// Sets the key of an encrypted file, in one of SQLCipher's text forms.
  ///
  /// Call this before anything reads the file. The library checks the key at the first read.
  package func setKey(_ key: UnsafeRawBufferPointer) throws {
    guard library.hasKeys else {
      throw SQLiteError(
        extendedCode: SQLITE_MISUSE, message: "the library has no encryption", statement: "key")
    }
    let code = csqlite_key(functions, handle, key.baseAddress, Int32(key.count))
    guard code == SQLITE_OK else { throw error(code, "key") }
  }

  /// Reads bytes of the file through the library's own descriptor, without decryption. Returns nil if they
  /// can't be read. Bytes past the end of the file are zeros.
  package func readFile(count: Int, at offset: Int = 0) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let code = csqlite_read_file(functions, handle, &bytes, Int32(count), sqlite3_int64(offset))
    return code == SQLITE_OK ? bytes : nil
  }

  /// Sets how long a call waits for another process before it fails with `SQLITE_BUSY`. The pauses between
  /// attempts grow from a tenth of a millisecond to 20 ms.
  package func waitWhenBusy(upTo limit: Duration) {
    let wait = busyWait ?? .allocate(capacity: 1)
    busyWait = wait
    wait.initialize(to: BusyWait(limit: limit))
    let handler: @convention(c) (UnsafeMutableRawPointer?, Int32) -> Int32 = { context, count in
      guard let wait = context?.assumingMemoryBound(to: BusyWait.self) else { return 0 }
      return wait.pointee.waitsAgain(count: count) ? 1 : 0
    }
    _ = csqlite_busy_handler(functions, handle, handler, wait)
  }

  /// Limits what one step of a statement may cost, in instructions of the library's virtual machine. A step that costs
  /// more fails with `SQLITE_INTERRUPT`.
  package func limitSteps(to instructions: Int) {
    let each = 100_000
    let budget = stepBudget ?? .allocate(capacity: 1)
    stepBudget = budget
    budget.initialize(to: StepBudget(limit: max(instructions / each, 1)))
    let handler: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
      guard let budget = context?.assumingMemoryBound(to: StepBudget.self) else { return 0 }
      budget.pointee.left -= 1
      return budget.pointee.left < 0 ? 1 : 0
    }
    csqlite_progress_handler(functions, handle, Int32(each), handler, budget)
  }

  /// Gives the next step all that `limitSteps(to:)` allows.
  func beginStep() {
    guard let stepBudget else { return }
    stepBudget.pointee.left = stepBudget.pointee.limit
  }

  /// Runs a checkpoint of the write-ahead log. Returns the number of pages in the log, and how many of them
  /// are now in the file.
  @discardableResult
  package func checkpoint(_ mode: Int32) throws -> (log: Int, done: Int) {
    var log: Int32 = 0
    var done: Int32 = 0
    let code = csqlite_wal_checkpoint_v2(functions, handle, "main", mode, &log, &done)
    guard code == SQLITE_OK else { throw error(code, "checkpoint") }
    return (Int(log), Int(done))
  }
}

/// How often the library may still call the progress handler of a connection before it stops the step.
private struct StepBudget {
  let limit: Int
  var left: Int

  init(limit: Int) {
    self.limit = limit
    left = limit
  }
}
