import CTouchstone
import TestSupport
import Testing
import Touchstone
import TouchstoneC

// The interface is tested from Python and C (docs/c.md). Here is what needs Swift, or what every build should notice.

@Suite struct HandleTests {
  /// Calls `body` with a database in memory.
  private func withDatabase(_ body: (OpaquePointer?) throws -> Void) rethrows {
    var database: OpaquePointer?
    let status = touchstone_open(nil, 0, "{\"inMemory\": true}", -1, &database, nil)
    expect(status, equals: 0)
    defer { touchstone_database_free(database) }
    try body(database)
  }

  /// The kind, the code and the message of the error that a call makes.
  private func error(
    _ call: (UnsafeMutablePointer<UnsafeMutablePointer<touchstone_error>?>) -> Int32
  ) -> (status: Int32, code: String, message: String) {
    var error: UnsafeMutablePointer<touchstone_error>?
    let status = call(&error)
    defer { touchstone_error_free(error) }
    guard let value = error?.pointee else { return (status, "", "") }
    expect(value.kind, equals: status)
    return (status, String(cString: value.code), String(cString: value.message))
  }

  @Test func theVersionIsThatOfTheCommand() throws {
    let version = String(cString: try #require(touchstone_version()))
    expect(version, equals: touchstoneVersion)
  }

  @Test func documentsAreSavedAndReadIntoABuffer() throws {
    withDatabase { database in
      var saved = touchstone_revision()
      expect(touchstone_save(database, "a", -1, "{\"n\":1}", -1, nil, 0, 0, &saved, nil), equals: 0)
      expect(saved.sequence, equals: 1)
      var buffer = [UInt8](repeating: 0, count: 7)
      var read = touchstone_revision()
      expect(touchstone_read(database, "a", 1, &buffer, 6, &read, nil), equals: 7)
      expect(buffer, equals: [UInt8](repeating: 0, count: 7))
      expect(touchstone_read(database, "a", 1, &buffer, 7, &read, nil), equals: 7)
      expect(String(decoding: buffer, as: UTF8.self), equals: "{\"n\":1}")
      expect(read.revision_length, equals: saved.revision_length)
      expect(touchstone_read(database, "b", 1, &buffer, 7, nil, nil), equals: -404)
    }
  }

  @Test func errorsTellCodeMessageAndPlace() {
    withDatabase { database in
      var query: OpaquePointer?
      var made: UnsafeMutablePointer<touchstone_error>?
      expect(touchstone_query_new(database, "SELECT (", -1, nil, 0, &query, &made), equals: 400)
      expect(made?.pointee.line, equals: 1)
      expect(made.map { String(cString: $0.pointee.code) }, equals: "QueryError.syntax")
      touchstone_error_free(made)
      let purged = error { touchstone_purge(database, "a", -1, nil, 0, $0) }
      expect(purged.status, equals: 404)
      expect(purged.code, equals: "DocumentError.notFound")
      let unknown = error { touchstone_open("x", -1, "{\"engin\": \"lmdb\"}", -1, &query, $0) }
      expect(unknown.status, equals: 400)
      expect(unknown.message.contains("\"engin\""), "\(unknown.message)")
      expect(error { touchstone_close(nil, $0) }.status, equals: 400)
    }
  }

  @Test func aBatchOfTheThreadIsCommittedOrRolledBack() {
    withDatabase { database in
      expect(touchstone_begin(database, nil), equals: 0)
      expect(touchstone_save(database, "a", -1, "{}", -1, nil, 0, 0, nil, nil), equals: 0)
      expect(touchstone_count(database, nil), equals: 1)
      expect(error { touchstone_begin(database, $0) }.status, equals: 591)
      expect(touchstone_rollback(database, nil), equals: 0)
      expect(touchstone_count(database, nil), equals: 0)
      expect(error { touchstone_commit(database, $0) }.status, equals: 591)
      let status = touchstone_batch(
        database,
        { database in
          let database = database.map { OpaquePointer($0) }
          return touchstone_save(database, "b", -1, "{}", -1, nil, 0, 0, nil, nil) == 0 ? 7 : 1
        }, database.map { UnsafeMutableRawPointer($0) }, 1, nil)
      expect(status, equals: 7)
      expect(touchstone_count(database, nil), equals: 0)
    }
  }

  @Test func rowsAreReadOneByOneInPiecesAndAsColumns() throws {
    try withDatabase { database in
      let texts = "a{\"n\":1,\"s\":\"x\"}b{\"n\":2}"
      let lengths: [UInt64] = [1, 15, 1, 7]
      expect(touchstone_save_many(database, texts, lengths, 2, 0, nil, nil, nil), equals: 0)
      var query: OpaquePointer?
      expect(
        touchstone_query_new(database, "SELECT n, s FROM _ ORDER BY n", -1, nil, 0, &query, nil), equals: 0)
      defer { touchstone_query_free(query) }
      for run in [touchstone_query_run, touchstone_query_stream] {
        var rows: OpaquePointer?
        expect(run(query, nil, 0, &rows, nil), equals: 0)
        defer { touchstone_rows_free(rows) }
        expect(touchstone_rows_next(rows, nil), equals: 1)
        expect(touchstone_row_int64(rows, 0), equals: 1)
        try expect(String(cString: #require(touchstone_row_text(rows, 1, nil))), equals: "x")
        var json: UnsafePointer<CChar>?
        expect(touchstone_rows_json(rows, 100, &json, nil, nil), equals: 1)
        try expect(String(cString: #require(json)), equals: "[{\"n\":2}]")
        expect(touchstone_rows_next(rows, nil), equals: 0)
      }
      var rows: OpaquePointer?
      expect(touchstone_query_run(query, nil, 0, &rows, nil), equals: 0)
      defer { touchstone_rows_free(rows) }
      var column = touchstone_column()
      expect(touchstone_rows_column(rows, 1, &column, nil), equals: 0)
      expect(column.type, equals: 5)
      expect(column.null_count, equals: 1)
      expect(column.validity?[0], equals: 1)
      expect(column.offsets?[2], equals: 1)
    }
  }
}
