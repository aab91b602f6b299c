import Documents
import Storage

// What replications need of a database. A close waits for the step that runs, and the next step throws `closed`.

extension Database {
  /// Runs one step of a replication on the documents. Steps must not be nested.
  package func replicating<Result>(_ body: (DocumentStore) throws -> Result) throws -> Result {
    try liveRuns.run { try body(store) }
  }

  /// Runs one step of a replication that writes.
  package func replicatingChanges<Result>(_ body: (DocumentStore) throws -> Result) throws -> Result {
    try liveRuns.run { try body(writable) }
  }

  /// Whether a close waits for steps that run.
  package var isClosing: Bool { liveRuns.isClosing }

  /// Whether the database isn't closed.
  package var isOpenForReplication: Bool { (try? store) != nil }

  /// Calls `handler` on a background thread after commits, until the observer is cancelled. It begins in a step, since it
  /// reads the last sequence.
  package func observeForReplication(_ handler: @escaping @Sendable () -> Void) throws -> ChangeObserver {
    try replicating { try $0.observe(owner: ObjectIdentifier(self)) { _ in handler() } }
  }

  /// Calls `handler` once after the database was closed. Returns a number for `removeCloseHandler`.
  package func addCloseHandler(_ handler: @escaping @Sendable () -> Void) -> Int {
    closeHandlers.withLock { state in
      state.next += 1
      state.handlers[state.next] = handler
      return state.next
    }
  }

  /// Removes a handler that wasn't called yet.
  package func removeCloseHandler(_ number: Int) {
    closeHandlers.withLock { $0.handlers[number] = nil }
  }
}
