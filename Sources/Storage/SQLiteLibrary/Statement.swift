import CSQLite

/// A compiled statement of a connection. One thread at a time.
///
/// Columns are numbered from 0 and parameters from 1, as in the library. A buffer of a column is valid until
/// the next `step`, `reset` or `finalize`.
package final class Statement {
  /// The connection of the statement.
  package let connection: Connection
  private let functions: UnsafePointer<CSQLiteFunctions>
  private var handle: OpaquePointer?

  init(_ handle: OpaquePointer, of connection: Connection) {
    self.handle = handle
    self.connection = connection
    functions = connection.functions
  }

  deinit { finalize() }

  /// Frees the statement. A second call does nothing.
  package func finalize() {
    guard let handle else { return }
    self.handle = nil
    _ = csqlite_finalize(functions, handle)
  }

  /// The SQL text of the statement.
  package var sql: String { text(csqlite_sql(functions, handle)) ?? "" }

  /// Moves to the next row. Returns false if no row is left.
  package func step() throws -> Bool {
    connection.beginStep()
    let code = csqlite_step(functions, handle)
    if code == SQLITE_ROW { return true }
    guard code == SQLITE_DONE else {
      let error = connection.error(code, sql)
      _ = csqlite_reset(functions, handle)
      throw error
    }
    return false
  }

  /// Steps to the end and resets the statement.
  package func run() throws {
    while try step() {}
    reset()
  }

  /// Resets the statement so that it can run again. Bindings stay. Doesn't throw: the last `step` has already
  /// thrown its error.
  package func reset() { _ = csqlite_reset(functions, handle) }

  // MARK: Parameters

  /// Binds an integer.
  package func bind(_ index: Int32, _ value: Int) throws {
    try check(csqlite_bind_int64(functions, handle, index, sqlite3_int64(value)))
  }

  /// Binds a double.
  package func bind(_ index: Int32, _ value: Double) throws {
    try check(csqlite_bind_double(functions, handle, index, value))
  }

  /// Binds a copy of a string.
  package func bind(_ index: Int32, _ value: String) throws {
    var value = value
    try check(
      value.withUTF8 { utf8 in
        utf8.withMemoryRebound(to: CChar.self) {
          // A null pointer would bind NULL.
          csqlite_bind_transient_text(functions, handle, index, $0.baseAddress ?? emptyText, Int32($0.count))
        }
      })
  }

  /// Binds a copy of the bytes.
  package func bind(_ index: Int32, _ value: UnsafeRawBufferPointer) throws {
    guard let start = value.baseAddress, !value.isEmpty else {
      return try check(csqlite_bind_zeroblob(functions, handle, index, 0))
    }
    try check(csqlite_bind_transient_blob(functions, handle, index, start, Int32(clamping: value.count)))
  }

  /// Binds a copy of the bytes.
  package func bind(_ index: Int32, _ value: [UInt8]) throws {
    try value.withUnsafeBytes { try bind(index, $0) }
  }

  /// Binds ASCII or UTF-8 text without a copy. The bytes must stay valid until the statement has run and the
  /// parameter is bound again.
  package func bindStaticText(_ index: Int32, _ text: UnsafeRawBufferPointer) throws {
    try check(
      csqlite_bind_static_text(
        functions, handle, index, text.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(text.count)))
  }

  /// Binds NULL.
  package func bindNull(_ index: Int32) throws {
    try check(csqlite_bind_null(functions, handle, index))
  }

  // MARK: Columns

  /// The number of columns.
  package var columnCount: Int { Int(csqlite_column_count(functions, handle)) }

  /// Returns the type of a column: `SQLITE_INTEGER`, `SQLITE_FLOAT`, `SQLITE_TEXT`, `SQLITE_BLOB` or
  /// `SQLITE_NULL`.
  package func type(_ index: Int32) -> Int32 { csqlite_column_type(functions, handle, index) }

  /// Returns whether the column is NULL.
  package func isNull(_ index: Int32) -> Bool { type(index) == SQLITE_NULL }

  /// Returns the column as an integer. SQL's rules convert other types.
  package func integer(_ index: Int32) -> Int { Int(csqlite_column_int64(functions, handle, index)) }

  /// Returns the column as a double. SQL's rules convert other types.
  package func double(_ index: Int32) -> Double { csqlite_column_double(functions, handle, index) }

  /// Returns the column as text, or nil if it is NULL. Invalid UTF-8 is repaired.
  package func string(_ index: Int32) -> String? {
    guard let start = csqlite_column_text(functions, handle, index) else { return nil }
    let count = Int(csqlite_column_bytes(functions, handle, index))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// Returns the column as UTF-8 in the library's memory. The UTF-8 isn't validated. SQL's rules convert
  /// other types. Empty if the column is NULL.
  package func utf8(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = csqlite_column_text(functions, handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(csqlite_column_bytes(functions, handle, index)))
  }

  /// Returns the bytes of the column in the library's memory. Empty if the column is NULL.
  package func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = csqlite_column_blob(functions, handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(csqlite_column_bytes(functions, handle, index)))
  }

  private func check(_ code: Int32) throws {
    guard code == SQLITE_OK else { throw connection.error(code, sql) }
  }
}

/// The text that an empty string is bound as.
private nonisolated(unsafe) let emptyText: UnsafePointer<CChar> = {
  let text = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
  text.initialize(to: 0)
  return UnsafePointer(text)
}()
