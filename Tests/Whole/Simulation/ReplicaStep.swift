/// A step of a simulation of several replicas. Replicas are counted from 0.
package enum ReplicaStep: Codable, Equatable, Sendable {
  /// A replica does a step of its own.
  case one(replica: Int, Step)
  case replicate(ReplicaRun)
  /// A document is purged and made again: with this content, or with that of its first revision.
  case remake(replica: Int, id: String, Content?)
}

/// A replication of two replicas.
package struct ReplicaRun: Codable, Equatable, Sendable {
  package enum Transport: Codable, Equatable, Sendable { case local, webSocket, http }

  /// What ends it too early, so long after it has begun.
  package enum Cut: Codable, Equatable, Sendable {
    /// The target stops to listen, and cuts the connections.
    case connection(microseconds: Int)
    /// The process that runs the replication is killed.
    case source(microseconds: Int)
    /// The process that listens is killed.
    case target(microseconds: Int)
  }

  package var source: Int
  package var target: Int
  package var transport: Transport
  package var direction: ReplicaOrder.Direction
  package var resolver = ReplicaOrder.Resolver.standard
  package var resets = false
  package var cut: Cut?
}
