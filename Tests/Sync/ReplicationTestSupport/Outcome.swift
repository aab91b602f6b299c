import Foundation
import Replication
import Storage
import TestSupport
import Testing
import Touchstone

/// The pairs of engines on which all must be alike.
package let enginePairs: [(EngineName, EngineName)] =
  onlyEngines?.flatMap { [($0, $0), (.lmdb, $0)] }
  ?? (isStrict || isShort
    ? [(.sqlite, .lmdb), (.lmdb, .sqlite)]
    : [(.sqlite, .sqlite), (.lmdb, .lmdb), (.sqlite, .lmdb), (.lmdbEncrypted, .sqlcipher)])

/// The result of a one-shot replication.
package struct Outcome {
  package var status: ReplicatorStatus
  package var documents: [ReplicatedDocument]
  package var traffic = PeerTraffic()

  package init(
    status: ReplicatorStatus, documents: [ReplicatedDocument], traffic: PeerTraffic = PeerTraffic()
  ) {
    (self.status, self.documents, self.traffic) = (status, documents, traffic)
  }

  package var pushed: [String] { documents.filter { $0.isPush && $0.error == nil }.map(\.id).sorted() }
  package var pulled: [String] { documents.filter { !$0.isPush && $0.error == nil }.map(\.id).sorted() }
  package var failed: [String: ReplicationError] {
    Dictionary(documents.compactMap { document in document.error.map { (document.id, $0) } }) { $1 }
  }
}

/// Runs a replication until it has stopped.
@discardableResult
package func run(
  _ configuration: ReplicatorConfiguration, sourceLocation: SourceLocation = #_sourceLocation
) throws -> Outcome {
  let replicator = Replicator(configuration)
  let documents = Lock<[ReplicatedDocument]>([])
  let stopped = CountingSemaphore()
  let tokens = [
    replicator.observeDocuments { new in documents.withLock { $0 += new } },
    replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } },
  ]
  replicator.start()
  if !stopped.wait(seconds: 120) {
    Issue.record("the replication doesn't stop: \(replicator.status)", sourceLocation: sourceLocation)
    replicator.stop()
  }
  for token in tokens { token.cancel() }
  let (bytes, messages) = (replicator.transferredBytes, replicator.transferredMessages)
  return Outcome(
    status: replicator.status, documents: documents.withLock { $0 },
    traffic: PeerTraffic(
      sentBytes: bytes.sent, receivedBytes: bytes.received, sentMessages: messages.sent,
      receivedMessages: messages.received))
}
