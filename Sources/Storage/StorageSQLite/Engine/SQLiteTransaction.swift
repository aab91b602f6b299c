import Storage

/// The base class of snapshots and write transactions of SQLite. It implements their reads.
class SQLiteTransaction {
  final let connection: EngineConnection
  /// What errors call the transaction: `a snapshot`.
  private final let name: StaticString
  private(set) final var isOpen = true

  init(_ connection: EngineConnection, name: StaticString) {
    self.connection = connection
    self.name = name
  }

  /// Marks the transaction as ended. Returns whether it was open.
  final func close() -> Bool {
    defer { isOpen = false }
    return isOpen
  }

  @inline(__always)
  final func open() throws -> EngineConnection {
    guard isOpen else { throw ended() }
    return connection
  }

  @inline(never)
  private final func ended() -> StorageError {
    StorageError(.closed, "\(name) was used after its end", path: connection.path)
  }

  final func keyspace(named name: String) throws -> Keyspace? {
    let connection = try open()
    return try CatalogTable.keyspace(named: name, in: connection)?.keyspace
  }

  final func keyspaces() throws -> [String: Keyspace] {
    let connection = try open()
    return try CatalogTable.keyspaces(in: connection)
  }

  final func read(
    _ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void
  ) throws -> Bool {
    try open().read(key, in: keyspace, body)
  }

  final func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try open().scan(keyspace, range, order: order, fetch: fetch, body)
  }

  final func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try SQLiteCursor(self, keyspace, range)
  }

  final func entryCount(of keyspace: Keyspace) throws -> EntryCount { .exact(try open().count(of: keyspace)) }
}
