// What the processes of replicas are told beside the operations on one database, as values.

package enum ReplicaOperation: Codable, Equatable, Sendable {
  /// Listens on a port of this machine, for WebSockets and HTTP.
  case serve
  /// Ends that, and with it all connections.
  case stopServing
  case replicate(ReplicaOrder)
  /// All documents with their trees.
  case state
}

/// A replication with another replica.
package struct ReplicaOrder: Codable, Equatable, Sendable {
  package enum Target: Codable, Equatable, Sendable {
    /// The database `test` in a directory, opened by the same process.
    case local(engine: String, directory: String)
    /// A listener, over BLIP.
    case webSocket(port: Int)
    /// A listener, over CouchDB's protocol.
    case http(port: Int)
  }

  package enum Direction: Codable, Equatable, Sendable { case both, push, pull }

  /// Who decides in a conflict.
  package enum Resolver: Codable, Equatable, Sendable {
    case standard
    case local
    case remote
    /// Takes the words of one side and the rest of the other one.
    case merge
  }

  package var target: Target
  package var remoteID: String
  package var direction: Direction
  package var resolver: Resolver
  package var resets: Bool
}

package enum ReplicaAnswer: Codable, Equatable, Sendable {
  case done
  case serving(port: Int)
  case replicated(ReplicaOutcome)
  case state(ReplicaState)
}

/// How a replication ended.
package struct ReplicaOutcome: Codable, Equatable, Sendable {
  package var error: String?
  /// Documents with their errors.
  package var failed: [String: String]
}

/// What a replica holds.
package struct ReplicaState: Codable, Equatable, Sendable {
  /// A leaf with its ancestors, itself first.
  package struct Branch: Codable, Equatable, Sendable {
    package var leaf: Leaf
    package var history: [String]
  }

  package struct Document: Codable, Equatable, Sendable {
    /// The current revision's branch first.
    package var branches: [Branch]
    package var sequence: UInt64

    var current: Leaf { branches[0].leaf }
    var nodes: Set<String> { Set(branches.flatMap(\.history)) }
  }

  package var documents: [String: Document]
  package var lastSequence: UInt64
}
