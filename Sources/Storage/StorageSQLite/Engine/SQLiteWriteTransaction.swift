import Storage

/// The write transaction as one writer sees it: the whole transaction for the first writer, or the part of a
/// writer that joined its commit.
final class SQLiteWriteTransaction: SQLiteTransaction, WriteTransaction {
  private let writer: SQLiteWriter

  init(_ writer: SQLiteWriter) {
    self.writer = writer
    super.init(writer.connection, name: "the write transaction")
  }

  /// Marks the transaction as ended. The writer calls it at the end of the part.
  func invalidate() { _ = close() }

  /// Does nothing: the engine ends the transaction.
  func end() {}

  var lineage: UInt64? {
    get throws {
      _ = try open()
      return try writer.lineage()
    }
  }

  var turn: UInt64? { writer.queue.turn }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    _ = try open()
    return try writer.createKeyspace(name, shape: shape)
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    _ = try open()
    try writer.dropKeyspace(keyspace)
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let connection = try open()
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { try connection.put(key, $0, in: keyspace) }
    }
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let connection = try open()
    return try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { try connection.insert(key, $0, in: keyspace) }
    }
  }

  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let connection = try open()
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { try connection.append(key, $0, in: keyspace) }
    }
  }

  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws { try open().load(keyspace, body) }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let connection = try open()
    return try key.withUnsafeBytes { try connection.delete($0, in: keyspace) }
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try open().deleteRange(range, in: keyspace)
  }
}
