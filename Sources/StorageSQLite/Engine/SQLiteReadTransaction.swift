import Storage

/// A snapshot. It holds a connection of the reader pool until it ends.
final class SQLiteReadTransaction: ReadTransaction {
  private let connection: EngineConnection
  private let pool: ReaderPool
  private var isOpen = true

  init(_ connection: EngineConnection, _ pool: ReaderPool) {
    self.connection = connection
    self.pool = pool
  }

  deinit { end() }

  func end() {
    guard isOpen else { return }
    isOpen = false
    connection.whenReturned { [pool, connection] in pool.give(connection) }
  }

  @inline(__always)
  private func open() throws -> EngineConnection {
    guard isOpen else {
      throw StorageError(.closed, "a snapshot is used after its end", path: connection.path)
    }
    return connection
  }

  func keyspace(named name: String) throws -> Keyspace? {
    let connection = try open()
    return try CatalogTable.keyspace(named: name, in: connection)?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    let connection = try open()
    return try CatalogTable.keyspaces(in: connection)
  }

  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    let connection = try open()
    guard keyspace.shape == .entries, target.shape == .documents else {
      return try followByReading(keyspace, range, order: order, into: target, reference: reference, body)
    }
    try connection.follow(keyspace, range, order: order, into: target, reference: reference, body)
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

  func entryCount(of keyspace: Keyspace) throws -> EntryCount { .exact(try open().count(of: keyspace)) }
}
