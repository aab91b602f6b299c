import Storage

/// A transaction of the server that sees one commit, and the snapshots that share it.
///
/// `@unchecked Sendable`: `users` is used under the lock of the pool, and the connection under the session's own.
final class ReadSession: @unchecked Sendable {
  private let connection: Connection
  private let lock = Lock(())
  /// What the transaction sees.
  let row: DatabaseRow
  /// The number of snapshots.
  var users = 1

  init(_ connection: Connection, _ row: DatabaseRow) {
    self.connection = connection
    self.row = row
  }

  /// Runs `body` while no other snapshot uses the connection.
  func locked<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    try lock.withLock { _ in try body(connection) }
  }

  var isLost: Bool { connection.isClosed }

  /// Ends the transaction and returns the connection. Nobody waits for the server to say so.
  func end() -> Connection {
    connection.sendEnding("COMMIT")
    return connection
  }
}
