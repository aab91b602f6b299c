import Foundation
import Storage
import TestSupport
import Touchstone
import TouchstoneServer
import TouchstoneSync

/// Does what a simulation tells a replica.
extension SimulatedDatabase {
  func result(_ operation: ReplicaOperation) throws -> ReplicaAnswer {
    switch operation {
    case .serve: return .serving(port: try serve())
    case .stopServing: stopServing()
    case .replicate(let order): return .replicated(try replicate(order))
    case .state: return .state(try state())
    }
    return .done
  }

  private func serve() throws -> Int {
    var configuration = SyncListenerConfiguration(databases: ["test": database])
    configuration.servesHTTP = true
    let new = SyncListener(configuration)
    try new.start()
    listener.withLock { $0 = new }
    return new.port ?? 0
  }

  package func stopServing() {
    listener.withLock { $0.take() }?.stop(graceSeconds: 0)
    door.withLock { $0 = nil }
  }

  private func replicate(_ order: ReplicaOrder) throws -> ReplicaOutcome {
    var other: Database?
    let target: ReplicatorTarget
    switch order.target {
    case .local(let engine, let directory):
      let opened = try SimulatedPlace(directory).open(EngineName(rawValue: engine))
      other = opened
      target = .database(opened)
    case .webSocket(let port): target = try .url("ws://127.0.0.1:\(port)/test")
    case .http(let port): target = try .url("http://127.0.0.1:\(port)/test")
    }
    defer { try? other?.close() }
    var configuration = ReplicatorConfiguration(database, target)
    configuration.remoteID = order.remoteID
    configuration.resetsCheckpoint = order.resets
    configuration.maximumRetries = 0
    configuration.skipsTombstonesOfFirstPull = false
    switch order.direction {
    case .both: configuration.direction = .pushAndPull
    case .push: configuration.direction = .push
    case .pull: configuration.direction = .pull
    }
    if order.resolver != .standard {
      configuration.conflictResolver = .custom(ClosureConflictResolver { order.resolver.resolve($0) })
    }
    return try run(Replicator(configuration))
  }

  private func run(_ replicator: Replicator) throws -> ReplicaOutcome {
    let failed = Lock<[String: String]>([:])
    let stopped = CountingSemaphore()
    let tokens = [
      replicator.observeDocuments { documents in
        failed.withLock { failed in
          for document in documents { failed[document.id] = document.error.map { "\($0)" } }
        }
      },
      replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } },
    ]
    replicator.start()
    stopped.wait()
    for token in tokens { token.cancel() }
    return ReplicaOutcome(
      error: replicator.status.error.map { "\($0)" }, failed: failed.withLock { $0 })
  }

  private func state() throws -> ReplicaState {
    var documents: [String: ReplicaState.Document] = [:]
    for change in try database.changes() {
      guard let revisions = try database.revisions(of: change.documentID) else { continue }
      let parents = Dictionary(revisions.map { ("\($0.id)", $0.parent.map { "\($0)" }) }) { first, _ in first
      }
      let branches = try revisions.filter(\.isLeaf).map { revision -> ReplicaState.Branch in
        var history = ["\(revision.id)"]
        while let parent = parents[history[history.count - 1]] ?? nil { history.append(parent) }
        let content = revision.isDeleted ? nil : try revision.body.map(content)
        return ReplicaState.Branch(
          leaf: Leaf(revision: history[0], isDeleted: revision.isDeleted, content: content), history: history)
      }
      documents[change.documentID] = ReplicaState.Document(branches: branches, sequence: change.sequence)
    }
    return ReplicaState(documents: documents, lastSequence: try database.lastSequence)
  }
}

extension ReplicaOrder.Resolver {
  func resolve(_ conflict: Conflict) -> ConflictResolution {
    switch self {
    case .standard: return DefaultConflictResolver().resolve(conflict)
    case .local: return .local
    case .remote: return .remote
    case .merge:
      guard var body = conflict.remote.body, !conflict.remote.isDeleted, !conflict.local.isDeleted else {
        return .local
      }
      body["words"] = conflict.local.body?["words"] ?? .null
      return .merged(body)
    }
  }
}
