import Views

// Whether clients may change documents and databases. Each call that does asks first.

extension DatabaseService {
  /// Throws 403 if clients only read.
  func checkWritable() throws {
    if configuration.isReadOnly { throw CouchDBError(403, "forbidden", "this server only lets you read") }
  }
}

extension DatabaseCall {
  /// Throws 403 if clients only read.
  func checkWritable() throws { try service.checkWritable() }
}
