import Documents
import Storage

// Transactions and snapshots. The synchronous calls run on the calling thread and block it. The asynchronous
// ones run on threads of the database, so they never block Swift's cooperative pool.

extension Database {
  // MARK: Synchronous

  /// Runs `body` in one transaction, all or nothing, and returns its result after the commit. If `body`
  /// throws, nothing has changed.
  ///
  /// ```swift
  /// try notes.write { transaction in
  ///   try transaction.save("note_1", ["text": "Buy groceries"])
  ///   try transaction.delete("note_0")
  /// }
  /// ```
  ///
  /// Calls of the database on the same thread join the transaction too, as in `inBatch`. A nested `write`
  /// joins the outer one; if it throws, the whole transaction fails, even if the error is caught.
  ///
  /// **`body` may run more than once**, at most `attempts` times; see `inBatch(attempts:_:)`.
  @discardableResult
  public func write<Result>(
    attempts: Int = 10, _ body: (borrowing Transaction) throws -> Result
  ) throws -> Result {
    try writable.inBatch(attempts: attempts) { try body(Transaction(self, nil)) }
  }

  /// Runs `body` in one transaction, all or nothing. Reads inside `body` on the same thread see its writes.
  /// Nested calls join the transaction. If a nested call throws, the whole batch fails, even if the error is
  /// caught.
  ///
  /// **`body` may run more than once.** It sees the writes of others that share its commit. If it throws, and
  /// their commit fails, it runs again. The same happens if the engine reports a conflict with another
  /// transaction (`StorageError.conflict`). `body` runs at most `attempts` times in all. Then `conflict` is
  /// thrown.
  ///
  /// `body` should therefore start from stored data, and have no outside effects that a second run would
  /// repeat. If it can't run twice, pass `attempts: 1`. After a failed run or batch, a `MutableDocument`
  /// saved in it is again based on the revision it had before. Its properties stay as they are.
  @discardableResult
  public func inBatch<Result>(
    attempts: Int = 10, _ body: () throws -> Result
  ) throws -> Result {
    try writable.inBatch(attempts: attempts, body)
  }

  /// Runs `body` on one snapshot. Writes by others don't change what it reads.
  ///
  /// Some engines limit the age of snapshots and throw `StorageError.snapshotExpired` after it. `attempts` is
  /// the maximum number of times that `body` is run then. Snapshots of SQLite and LMDB never expire.
  public func read<Result>(attempts: Int = 1, _ body: (DocumentSnapshot) throws -> Result) throws -> Result {
    try store.read(attempts: attempts, body)
  }

  /// The same for a `body` that may always run again.
  func snapshot<Result>(_ body: (DocumentSnapshot) throws -> Result) throws -> Result {
    try store.read(attempts: DocumentStore.defaultAttempts, body)
  }

  // MARK: Asynchronous

  /// Runs `body` in one transaction, all or nothing, on the database's thread for asynchronous writes, and
  /// returns its result after the commit.
  ///
  /// Asynchronous writes run one after another, in the order of the calls. If the task is cancelled before
  /// the commit, everything is rolled back and the call throws `CancellationError`: at once if `body` hasn't
  /// started, otherwise at the next call of the transaction or at its end. A commit that has begun completes,
  /// and the call returns its result. For `attempts` see `inBatch(attempts:_:)`.
  @discardableResult
  public func write<Result: Sendable>(
    attempts: Int = 10, _ body: @escaping @Sendable (borrowing Transaction) throws -> Result
  ) async throws -> Result {
    try await transaction(attempts) { try body(Transaction(self, $0)) }
  }

  /// Runs `body` in one transaction, as the asynchronous `write(attempts:_:)` does. The synchronous calls of
  /// the database inside `body` join the transaction. If the task is cancelled while `body` runs, `body` runs
  /// to its end, and then everything is rolled back.
  @discardableResult
  public func inBatch<Result: Sendable>(
    attempts: Int = 10, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await transaction(attempts) { _ in try body() }
  }

  private func transaction<Result: Sendable>(
    _ attempts: Int, _ body: @escaping @Sendable (JobCancellation) throws -> Result
  ) async throws -> Result {
    _ = try writable
    return try await open.asyncWriter.run { cancellation in
      try self.writable.inBatch(attempts: attempts) {
        let result = try body(cancellation)
        // The last moment at which the transaction can be rolled back.
        try cancellation.check()
        return result
      }
    }
  }

  /// Runs `body` on one snapshot, on one of the database's threads for asynchronous reads: one a processor
  /// core, at least two.
  ///
  /// If the task is cancelled, the call throws `CancellationError`: at once if `body` hasn't started,
  /// otherwise at the next use of the snapshot; a scan ends at its next document. For `attempts` see the
  /// synchronous `read(attempts:_:)`.
  public func read<Result: Sendable>(
    attempts: Int = 1, _ body: @escaping @Sendable (DocumentSnapshot) throws -> Result
  ) async throws -> Result {
    _ = try store
    return try await open.asyncReaders.run { cancellation in
      try self.store.read(attempts: attempts, cancellation: cancellation, body)
    }
  }
}
