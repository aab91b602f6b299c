import Documents
import Storage

/// An `AsyncSequence` of committed changes. Each element holds what changed since the previous one.
///
/// It starts when it is made (`Database.changes`) and ends when the database is closed. Use it in one loop
/// only; make another one for another loop. It keeps the database open.
public struct DatabaseChanges: AsyncSequence, Sendable {
  fileprivate let observation: Observation

  /// Returns the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let observation: Observation

    /// Returns what changed since the last call, and waits until something has. Nil after the end, and if the
    /// task is cancelled.
    public mutating func next() async -> DatabaseChange? { await observation.observer.next() }
  }

  /// Makes an iterator, for `for await`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observation: observation) }
}

/// An `AsyncSequence` of the changes of one document. Each element is the latest change since the previous
/// one.
public struct DocumentChanges: AsyncSequence, Sendable {
  fileprivate let observation: Observation

  /// Returns the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let observation: Observation

    /// Returns the latest change since the last call, and waits for one. Nil after the end, and if the task
    /// is cancelled.
    public mutating func next() async -> DocumentChange? {
      while let change = await observation.observer.next() {
        if let last = change.changes.last { return last }
      }
      return nil
    }
  }

  /// Makes an iterator, for `for await`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(observation: observation) }
}

/// Keeps an observer running until it is released.
fileprivate final class Observation: Sendable {
  let observer: ChangeObserver
  private let database: Database?

  init(_ observer: ChangeObserver, _ database: Database?) {
    self.observer = observer
    self.database = database
  }

  deinit { observer.cancel() }
}

/// Stops a callback when it is cancelled, or when the last reference to it goes. See `Database.observe(_:)`.
public final class ObservationToken: Sendable {
  private let observation: Observation

  fileprivate init(_ observation: Observation) { self.observation = observation }

  /// Stops the callback. A call in progress completes; no call follows it. May be called inside the callback.
  public func cancel() { observation.observer.cancel() }
}

extension Database {
  /// The changes of all documents that are committed from now on.
  ///
  /// ```swift
  /// for await change in try travel.changes { print(change.documentIDs) }
  /// ```
  ///
  /// Each element holds what was committed since the previous element, including purges and expirations. Each
  /// document appears once, with its latest change, in commit order. A slow observer doesn't block writers
  /// and loses nothing: above one megabyte of queued changes it reads the missed ones from the database.
  /// Changes by other processes arrive with the next write of this process, or at `noticeChanges()`; with
  /// `DatabaseOptions.watchesOtherProcesses` they arrive by themselves, purges too.
  public var changes: DatabaseChanges {
    get throws { DatabaseChanges(observation: try observation(nil)) }
  }

  /// The changes of one document that are committed from now on. The document need not exist yet.
  public func changes(of id: String) throws -> DocumentChanges {
    DocumentChanges(observation: try observation(id))
  }

  /// Calls `handler` with the changes committed from now on, until the token is cancelled or released.
  ///
  /// Keep the token: when the last reference to it goes, for example at the end of a function, the calls end at
  /// once. Assigning it to `_` ends them before the first one.
  ///
  /// The database calls it on its own threads, one call at a time, with all changes since the last call; see
  /// `changes`. It may use the database. At most four handlers of a database run at the same time.
  public func observe(_ handler: @escaping @Sendable (DatabaseChange) -> Void) throws -> ObservationToken {
    try observe(includesUnsequenced: false, handler)
  }

  /// The same, but also reports commits that changed only data without a sequence, as a change without
  /// documents (`DocumentStore.observe`).
  func observe(
    includesUnsequenced: Bool, _ handler: @escaping @Sendable (DatabaseChange) -> Void
  ) throws -> ObservationToken {
    let observer = try store.observe(
      owner: ObjectIdentifier(self), includesUnsequenced: includesUnsequenced, handler: handler)
    return ObservationToken(Observation(observer, nil))
  }

  /// Calls `handler` with the latest change of one document, until the token is cancelled or released.
  ///
  /// Keep the token: when the last reference to it goes, the calls end at once.
  public func observe(_ id: String, _ handler: @escaping @Sendable (DocumentChange) -> Void) throws
    -> ObservationToken
  {
    let observer = try store.observe(id, owner: ObjectIdentifier(self)) { change in
      if let last = change.changes.last { handler(last) }
    }
    return ObservationToken(Observation(observer, nil))
  }

  /// Looks for changes committed by other processes, and reports them to observers. Costs one read. Purges are found
  /// only if the database records them (`DatabaseOptions.watchesOtherProcesses`).
  public func noticeChanges() throws { try store.noticeChanges() }

  private func observation(_ id: String?) throws -> Observation {
    Observation(try store.observe(id, owner: ObjectIdentifier(self)), self)
  }
}
