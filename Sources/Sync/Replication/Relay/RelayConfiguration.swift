import Fleece
import Storage

/// A replication that runs, whatever its sides are.
package protocol RunningReplication: AnyObject, Sendable {
  var status: ReplicatorStatus { get }
  func start()
  /// Returns at once; the status says when it has stopped.
  func stop()
  func observeStatus(_ handler: @escaping @Sendable (ReplicatorStatus) -> Void) -> ReplicatorToken
  func observeDocuments(_ handler: @escaping @Sendable ([ReplicatedDocument]) -> Void) -> ReplicatorToken
}

extension Replicator: RunningReplication {}

/// What a relay does.
package struct RelayConfiguration: Sendable {
  package var source: ReplicatorTarget
  package var target: ReplicatorTarget
  /// How connections to each side are made.
  package var sourceConnection = ConnectionOptions()
  package var targetConnection = ConnectionOptions()
  /// What the source is asked for. Its `since` is where a relay begins that has no checkpoint.
  package var request = PullRequest()
  /// The name of the local documents in which both sides keep how far it has come; nil: nothing is kept.
  package var checkpointName: String?
  /// As those of `ReplicatorConfiguration`.
  package var maximumRetries: Int?
  package var maximumRetryWait = 600.0
  package var checkpointDelay = 5.0
  package var timer: any CallTimer = SystemTimer()

  package init(from source: ReplicatorTarget, to target: ReplicatorTarget) {
    (self.source, self.target) = (source, target)
  }
}

/// Decides what the local documents of a relay say. Calls come on a thread of the relay, one at a time.
package protocol RelayRecorder: AnyObject, Sendable {
  /// Compares the documents of both sides at the beginning of a connection. Returns the sequence of the
  /// source up to which both say that all is done; nil if there is none.
  func agree(source: JSONObject?, target: JSONObject?) -> RemoteSequence?
  /// What both documents are to say now that this sequence is reached; nil if they say so already.
  func record(at sequence: RemoteSequence?) -> JSONObject?
}

/// A side of a relay.
package enum RelaySide: Sendable {
  case source, target
}
