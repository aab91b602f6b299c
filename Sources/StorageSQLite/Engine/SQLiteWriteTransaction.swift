import Storage

/// The write transaction as one writer sees it: the whole transaction for the first writer, or the part of a
/// writer that joined its commit.
final class SQLiteWriteTransaction: WriteTransaction {
  private let writer: SQLiteWriter
  private let connection: EngineConnection
  private var isOpen = true

  init(_ writer: SQLiteWriter) {
    self.writer = writer
    connection = writer.connection
  }

  /// Marks the transaction as ended. The writer calls it at the end of the part.
  func invalidate() { isOpen = false }

  /// Does nothing: the engine ends the transaction.
  func end() {}

  @inline(__always)
  private func open() throws -> EngineConnection {
    guard isOpen else {
      throw StorageError(.closed, "a write transaction is used after its end", path: connection.path)
    }
    return connection
  }

  // MARK: Reading

  func keyspace(named name: String) throws -> Keyspace? {
    let connection = try open()
    return try CatalogTable.keyspace(named: name, in: connection)?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    let connection = try open()
    return try CatalogTable.keyspaces(in: connection)
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try open().read(key, in: keyspace, body)
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try open().scan(keyspace, range, order: order, fetch: fetch, body)
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try SQLiteCursor(open(), keyspace, range)
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    .exact(try open().count(of: keyspace))
  }

  // MARK: Writing

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
