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

  /// The turn to do work that lasts in the background, of all processes and of all that ask here. Take it with `take(_:)`. Throws
  /// `closed`, and `readOnly` if the database was opened for reading only.
  package func workTurn(for purpose: String) throws -> any WorkTurn {
    _ = try writable
    return open.home.workTurn(for: purpose)
  }

  /// Takes a turn of this database if nobody has it, and returns whether it is held. It is a step, since it may make a file.
  package func take(_ turn: any WorkTurn) throws -> Bool { try replicatingChanges { _ in try turn.take() } }

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
