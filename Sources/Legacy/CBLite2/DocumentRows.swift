import Bytes
import CSQLite
import SQLiteLibrary

/// Reads the rows of a document table by row ID. The bytes of a row are valid until the next row.
final class DocumentRows {
  private let statement: Statement
  /// The expirations of 2.0 and 2.1, which have their own table.
  private let oldExpirations: Statement?
  private let hasExtra: Bool
  private let hasExpiration: Bool

  init(_ source: CBLite2Source, table: String) throws {
    let columns = try source.columns(of: table)
    guard columns.isSuperset(of: ["key", "sequence", "flags", "version", "body"]) else {
      throw CBLite2Error(.damaged, "the table \(table) doesn't have all of its columns", path: source.path)
    }
    hasExtra = columns.contains("extra")
    hasExpiration = columns.contains("expiration")
    statement = try source.connection.prepare(
      """
      SELECT key, sequence, flags, version, body, \(hasExtra ? "extra" : "NULL"),
        \(hasExpiration ? "expiration" : "NULL") FROM \(Connection.quoted(table)) WHERE rowid = ?
      """)
    let isOld = try table == "kv_default" && source.columns(of: "kv_expiry").isSuperset(of: ["key", "body"])
    oldExpirations = isOld ? try source.connection.prepare("SELECT body FROM kv_expiry WHERE key = ?") : nil
  }

  func close() {
    statement.finalize()
    oldExpirations?.finalize()
  }

  func go(to rowID: Int) throws -> Bool {
    statement.reset()
    try statement.bind(1, rowID)
    return try statement.step()
  }

  func reset() { statement.reset() }

  private func blob(_ column: Int32) -> UnsafeRawBufferPointer? {
    statement.type(column) == SQLITE_BLOB ? statement.bytes(column) : nil
  }

  /// The UTF-8 of the ID, not checked. Nil if the column isn't text.
  var id: UnsafeRawBufferPointer? { statement.type(0) == SQLITE_TEXT ? statement.bytes(0) : nil }
  /// The ID for messages.
  var idText: String { statement.string(0) ?? "a row without an ID" }
  /// The sequence, or 0 if the column isn't a positive number.
  var sequence: UInt64 { statement.type(1) == SQLITE_INTEGER ? UInt64(max(0, statement.integer(1))) : 0 }
  /// 1 deleted, 2 conflicted, 4 has blobs, 8 synced. Bits above the lowest 16 have other uses and are
  /// removed.
  var flags: Int { statement.integer(2) & 0xFFFF }
  /// The binary ID of the current revision.
  var version: UnsafeRawBufferPointer? { blob(3) }
  var body: UnsafeRawBufferPointer? { blob(4) }
  /// The revision tree of a 3.x row.
  var extra: UnsafeRawBufferPointer? { blob(5) }

  /// Returns the time at which the document expires, in milliseconds since 1970, or nil.
  func expiration() throws -> Int64? {
    if hasExpiration, statement.type(6) == SQLITE_INTEGER { return Int64(statement.integer(6)) }
    guard let oldExpirations, let id else { return nil }
    oldExpirations.reset()
    try oldExpirations.bindStaticText(1, id)
    guard try oldExpirations.step(), oldExpirations.type(0) == SQLITE_BLOB else { return nil }
    var bytes = oldExpirations.bytes(0)
    guard let seconds = bytes.takeVarint(), seconds <= UInt64(Int64.max) / 1_000 else { return nil }
    return Int64(seconds) * 1_000
  }
}
