import Documents
import Storage

/// What is committed, as it comes: an `AsyncSequence` whose elements hold what changed since the last one.
///
/// It begins where it is made (`Database.changes`), and ends when the database is closed. One loop takes from it; for
/// another, make another. While it is used the database stays open.
public struct DatabaseChanges: AsyncSequence, Sendable {
  fileprivate let observation: Observation

  /// Takes the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let observation: Observation

    /// What changed since the last call; waits until something has. Nil after the end, and when the task is cancelled.
    public mutating func next() async -> DatabaseChange? { await observation.observer.next() }
  }

  /// An iterator, for `for await`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observation: observation) }
}

/// The changes of one document, as they come: the latest since the last element.
public struct DocumentChanges: AsyncSequence, Sendable {
  fileprivate let observation: Observation

  /// Takes the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let observation: Observation

    /// The latest change since the last call; waits for one. Nil after the end, and when the task is cancelled.
    public mutating func next() async -> DocumentChange? {
      while let change = await observation.observer.next() {
        if let last = change.changes.last { return last }
      }
      return nil
    }
  }

  /// An iterator, for `for await`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observation: observation) }
}

/// Keeps an observer going as long as it is held.
fileprivate final class Observation: Sendable {
  let observer: ChangeObserver
  private let database: Database?

  init(_ observer: ChangeObserver, _ database: Database?) {
    self.observer = observer
    self.database = database
  }

  deinit { observer.cancel() }
}

/// Ends a callback: when it is told to, and when it is released. See `Database.observe(_:)`.
public final class ObservationToken: Sendable {
  private let observation: Observation

  fileprivate init(_ observation: Observation) { self.observation = observation }

  /// Ends it. A call that is going on goes on, and none comes after it. May be called inside the callback.
  public func cancel() { observation.observer.cancel() }
}

extension Database {
  /// The changes of all documents that are committed from now on.
  ///
  /// ```swift
  /// for await change in try travel.changes { print(change.documentIDs) }
  /// ```
  ///
  /// Each element holds what was committed since the last, each document once with its latest change, in the order of
  /// the commits; purges and expirations too. An observer that is slow holds no writer up, and loses nothing: past a
  /// megabyte of notes it reads what it missed from the database. Changes of other processes come when this one
  /// writes next, or at `noticeChanges()`, but for purges.
  public var changes: DatabaseChanges {
    get throws { DatabaseChanges(observation: try observation(nil)) }
  }

  /// The changes of one document that are committed from now on, there or not.
  public func changes(of id: String) throws -> DocumentChanges {
    DocumentChanges(observation: try observation(id))
  }

  /// Calls `handler` with what is committed from now on, until the token is told to end it or is released.
  ///
  /// It is called on a thread of the database's, one call at a time, with all that came since the last call; see
  /// `changes`. It may use the database. At most four handlers of a database run at the same time.
  public func observe(_ handler: @escaping @Sendable (DatabaseChange) -> Void) throws -> ObservationToken {
    try observe(includesUnsequenced: false, handler)
  }

  /// The same, with a change without documents for each commit that changed what has no sequence
  /// (`DocumentStore.observe`).
  func observe(
    includesUnsequenced: Bool, _ handler: @escaping @Sendable (DatabaseChange) -> Void
  ) throws -> ObservationToken {
    let observer = try store.observe(
      owner: ObjectIdentifier(self), includesUnsequenced: includesUnsequenced, handler: handler)
    return ObservationToken(Observation(observer, nil))
  }

  /// Calls `handler` with the latest change of one document, until the token is told to end it or is released.
  public func observe(_ id: String, _ handler: @escaping @Sendable (DocumentChange) -> Void) throws
    -> ObservationToken
  {
    let observer = try store.observe(id, owner: ObjectIdentifier(self)) { change in
      if let last = change.changes.last { handler(last) }
    }
    return ObservationToken(Observation(observer, nil))
  }

  /// Looks whether another process has committed changes, and tells observers. Costs a read.
  public func noticeChanges() throws { try store.noticeChanges() }

  private func observation(_ id: String?) throws -> Observation {
    Observation(try store.observe(id, owner: ObjectIdentifier(self)), self)
  }

  // MARK: Asynchronous writing

  /// Runs `body` in one transaction, all or nothing, on the database's thread for asynchronous writes: nothing of it
  /// blocks the cooperative pool. Returns when it is committed.
  ///
  /// Inside, the synchronous calls of the database join the transaction. Such writes run one after another, in the
  /// order in which they were asked for. A task that is cancelled before its turn throws `CancellationError`.
  @discardableResult
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    _ = try writable
    let turn = Lock(false)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        open.asyncWriter.enqueue {
          guard !turn.withLock({ $0 }) else { return continuation.resume(throwing: CancellationError()) }
          continuation.resume(with: Swift.Result { try self.inBatch { try body(self) } })
        }
      }
    } onCancel: {
      turn.withLock { $0 = true }
    }
  }
}
