import Bytes
import Documents
import Logs
import Storage
import Touchstone

/// Replicates a database with another one.
///
/// ```swift
/// let replicator = Replicator(ReplicatorConfiguration(notes, .database(copy)))
/// replicator.start()
/// for await status in replicator.statusChanges where status.activity == .stopped { break }
/// ```
///
/// It works on threads of its own, and may be used from any thread. It ends when it is stopped, when its database is
/// closed, and when the last reference to it goes.
public final class Replicator: Sendable {
  /// What it does. A copy: later changes of the original have no effect.
  public let configuration: ReplicatorConfiguration
  private let runner: ReplicatorRunner

  /// Creates a replicator. It does nothing until `start()`.
  public init(_ configuration: ReplicatorConfiguration) {
    self.configuration = configuration
    runner = ReplicatorRunner(configuration)
  }

  deinit { runner.stop() }

  /// Starts it. Does nothing if it runs. The local database must stay open.
  public func start() { runner.start() }

  /// Stops it: what has begun to be stored is stored, and the checkpoint is saved. Returns at once; the status says when
  /// it has stopped.
  public func stop() { runner.stop() }

  /// Makes the next start forget how far earlier replications came.
  public func resetCheckpoint() { runner.resetCheckpoint() }

  /// Says that the network is there, or has changed: a lost connection is made again at once.
  public func networkChanged() { runner.networkChanged() }

  /// The present status.
  public var status: ReplicatorStatus { runner.status }

  /// The present status and those that follow. A slow reader gets the latest one. After `start()`, the next `stopped` is
  /// the end of what was started.
  public var statusChanges: AsyncStream<ReplicatorStatus> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let token = runner.observe { continuation.yield($0) }
      continuation.yield(runner.status)
      continuation.onTermination = { _ in token.cancel() }
    }
  }

  /// Calls `handler` on a background thread with each new status, one call at a time, until the token is cancelled or
  /// released.
  public func observeStatus(_ handler: @escaping @Sendable (ReplicatorStatus) -> Void) -> ReplicatorToken {
    ReplicatorToken(runner.observe(handler))
  }

  /// Calls `handler` on a background thread with the documents that were replicated, or couldn't be, until the token is
  /// cancelled or released.
  public func observeDocuments(_ handler: @escaping @Sendable ([ReplicatedDocument]) -> Void)
    -> ReplicatorToken
  {
    ReplicatorToken(runner.observeDocuments(handler))
  }

  /// The bytes that were sent and received over the network since the replicator was made, with all its connections. Zeros
  /// for a database of this process.
  public var transferredBytes: (sent: UInt64, received: UInt64) {
    let traffic = runner.traffic
    return (traffic.sentBytes, traffic.receivedBytes)
  }

  /// The messages that were sent and received over the network since the replicator was made, as the protocol counts
  /// them.
  package var transferredMessages: (sent: UInt64, received: UInt64) {
    let traffic = runner.traffic
    return (traffic.sentMessages, traffic.receivedMessages)
  }

  /// How far it has come, as the local database has it stored: the local sequence up to which all is pushed, and the remote
  /// one up to which all is stored here; zero and nil at the beginning.
  package func savedCheckpoint() throws -> (pushed: UInt64, pulled: RemoteSequence?) {
    let checkpoint = try runner.savedCheckpoint() ?? Checkpoint()
    return (checkpoint.pushed, checkpoint.pulled)
  }

  /// The IDs of documents whose current revision isn't pushed yet, as far as is known. Where it is doubted whether the other side still
  /// has what was pushed, that is pending until the other side has said so. Empty if the replicator doesn't push.
  public func pendingDocumentIDs() throws -> Set<String> { try runner.pendingDocumentIDs() }

  /// Whether the current revision of the document isn't pushed yet.
  public func isDocumentPending(_ id: String) throws -> Bool { try runner.isPending(id) }
}

/// Ends the calls of a handler, also when the last reference to it goes.
public final class ReplicatorToken: Sendable {
  private let token: TimerToken

  package init(_ token: TimerToken) { self.token = token }
  deinit { token.cancel() }

  /// Ends the calls. One that has begun completes.
  public func cancel() { token.cancel() }
}
