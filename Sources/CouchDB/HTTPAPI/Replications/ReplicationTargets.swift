import Replication

/// Finds the databases that URLs lead to. Whoever has sockets gives one to the service.
package protocol ReplicationTargets: Sendable {
  /// The name of the database of this very server that the URL leads to; nil if it leads to another server.
  func ownName(of remote: RemoteDatabase) -> String?
  /// Why no replication may reach another server, or go through the proxy that leads there; nil if it may.
  func refusal(of remote: RemoteDatabase) -> String?
  /// What a replicator connects to. Throws an error whose description says why it can't.
  func target(of remote: RemoteDatabase) throws -> ReplicatorTarget
}

extension ReplicationTargets {
  /// Every server may be reached.
  package func refusal(of remote: RemoteDatabase) -> String? { nil }
}
