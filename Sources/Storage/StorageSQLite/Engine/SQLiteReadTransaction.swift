import Storage

/// A snapshot. It holds a connection of the reader pool until it ends.
final class SQLiteReadTransaction: SQLiteTransaction, ReadTransaction {
  private let pool: ReaderPool

  init(_ connection: EngineConnection, _ pool: ReaderPool) {
    self.pool = pool
    super.init(connection, name: "the snapshot")
  }

  deinit { end() }

  func end() {
    guard close() else { return }
    connection.whenReturned { [pool, connection] in pool.give(connection) }
  }

  var snapshotVersion: SnapshotVersion? {
    isOpen ? SnapshotVersion(engine: pool.engineNumber, number: connection.kept.number) : nil
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
}
