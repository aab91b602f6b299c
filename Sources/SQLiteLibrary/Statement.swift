import CSQLite

/// A compiled statement of a connection, used by one thread at a time.
///
/// Columns are numbered from 0 and parameters from 1, as in the library. What a column hands out as a buffer
/// is valid until the next `step`, `reset` or `finalize`.
public final class Statement {
  /// The connection it belongs to.
  public let connection: Connection
  private let functions: UnsafePointer<CSQLiteFunctions>
  private var handle: OpaquePointer?

  init(_ handle: OpaquePointer, of connection: Connection) {
    self.handle = handle
    self.connection = connection
    functions = connection.functions
  }

  deinit { finalize() }

  /// Frees it. A second call does nothing.
  public func finalize() {
    guard let handle else { return }
    self.handle = nil
    _ = csqlite_finalize(functions, handle)
  }

  /// Its text.
  public var sql: String { text(csqlite_sql(functions, handle)) ?? "" }

  /// Moves to the next row. False when there is none left.
  public func step() throws -> Bool {
    let code = csqlite_step(functions, handle)
    if code == SQLITE_ROW { return true }
    guard code == SQLITE_DONE else {
      let error = connection.error(code, sql)
      _ = csqlite_reset(functions, handle)
      throw error
    }
    return false
  }

  /// Steps to the end and makes it ready to run again.
  public func run() throws {
    while try step() {}
    reset()
  }

  /// Makes it ready to run again; bindings stay. An error of the last step was thrown by that step.
  public func reset() { _ = csqlite_reset(functions, handle) }

  // MARK: Parameters

  /// Binds a value, of which the library keeps a copy.
  public func bind(_ index: Int32, _ value: Int) throws {
    try check(csqlite_bind_int64(functions, handle, index, sqlite3_int64(value)))
  }

  /// Binds a value, of which the library keeps a copy.
  public func bind(_ index: Int32, _ value: Double) throws {
    try check(csqlite_bind_double(functions, handle, index, value))
  }

  /// Binds a value, of which the library keeps a copy.
  public func bind(_ index: Int32, _ value: String) throws {
    var value = value
    try check(
      value.withUTF8 { utf8 in
        utf8.withMemoryRebound(to: CChar.self) {
          // A null pointer would bind NULL.
          csqlite_bind_transient_text(functions, handle, index, $0.baseAddress ?? emptyText, Int32($0.count))
        }
      })
  }

  /// Binds a copy of bytes.
  public func bind(_ index: Int32, _ value: UnsafeRawBufferPointer) throws {
    guard let start = value.baseAddress, !value.isEmpty else {
      return try check(csqlite_bind_zeroblob(functions, handle, index, 0))
    }
    try check(csqlite_bind_transient_blob(functions, handle, index, start, Int32(clamping: value.count)))
  }

  /// Binds a value, of which the library keeps a copy.
  public func bind(_ index: Int32, _ value: [UInt8]) throws {
    try value.withUnsafeBytes { try bind(index, $0) }
  }

  /// Binds ASCII or UTF-8 as text where it lies: it must stay until the statement has run and is bound anew.
  public func bindStaticText(_ index: Int32, _ text: UnsafeRawBufferPointer) throws {
    try check(
      csqlite_bind_static_text(
        functions, handle, index, text.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(text.count)))
  }

  /// Binds NULL.
  public func bindNull(_ index: Int32) throws {
    try check(csqlite_bind_null(functions, handle, index))
  }

  // MARK: Columns

  /// Columns of a row.
  public var columnCount: Int { Int(csqlite_column_count(functions, handle)) }

  /// `SQLITE_INTEGER`, `SQLITE_FLOAT`, `SQLITE_TEXT`, `SQLITE_BLOB` or `SQLITE_NULL`.
  public func type(_ index: Int32) -> Int32 { csqlite_column_type(functions, handle, index) }

  /// Whether the column is NULL.
  public func isNull(_ index: Int32) -> Bool { type(index) == SQLITE_NULL }

  /// The column as an integer, converted as SQL does.
  public func integer(_ index: Int32) -> Int { Int(csqlite_column_int64(functions, handle, index)) }

  /// The column as a double, converted as SQL does.
  public func double(_ index: Int32) -> Double { csqlite_column_double(functions, handle, index) }

  /// The column as text, invalid UTF-8 repaired, or nil when it is null.
  public func string(_ index: Int32) -> String? {
    guard let start = csqlite_column_text(functions, handle, index) else { return nil }
    let count = Int(csqlite_column_bytes(functions, handle, index))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// The column as UTF-8 where the library has it, not checked; other types converted as SQL does. Empty when it is null.
  public func utf8(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = csqlite_column_text(functions, handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(csqlite_column_bytes(functions, handle, index)))
  }

  /// The column's bytes where the library has them. Empty when it is null.
  public func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = csqlite_column_blob(functions, handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(csqlite_column_bytes(functions, handle, index)))
  }

  private func check(_ code: Int32) throws {
    guard code == SQLITE_OK else { throw connection.error(code, sql) }
  }
}

/// What an empty string is bound as.
private nonisolated(unsafe) let emptyText: UnsafePointer<CChar> = {
  let text = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
  text.initialize(to: 0)
  return UnsafePointer(text)
}()
