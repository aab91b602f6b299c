import Storage

/// What an engine sets on its connections.
struct PostgresSettings: Sendable {
  let location: PostgresLocation
  var isReadOnly = false
  /// Whether the connections are for what stands beside the entries (`PostgresHome`), and so prepare the statements of that.
  var isOfHome = false
  /// The setting `synchronous_commit`.
  var synchronousCommit = "local"
  /// The time that a connection may take to come about, in seconds.
  var connectSeconds = 10
  /// The time that a server may take for an answer, in seconds. Longer than a lock is waited for.
  var answerSeconds = 120
  /// The time that a writer waits for other writers, in seconds.
  var lockSeconds = 60
  /// The time for which a lost server is looked for, in seconds: it restarts, or another one takes over.
  var reconnectSeconds = 30

  /// The number of snapshots that have a connection of their own. Further ones share a connection with a snapshot of the
  /// same commit.
  static let ownConnections = 16
  /// The maximum number of connections for snapshots.
  static let maximumConnections = 64
  /// The number of unused connections that are kept.
  static let idleConnections = 8
  /// The maximum number of open snapshots.
  static let maximumReaders = 8_192

  /// The level of `synchronous_commit` for a durability (docs/storage-postgres.md).
  static func synchronousCommit(_ durability: Durability) -> String {
    switch durability {
    case .full: "on"
    case .normal: "local"
    case .none: "off"
    }
  }
}
