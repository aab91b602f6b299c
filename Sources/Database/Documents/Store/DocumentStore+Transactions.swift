import Blobs
import Fleece
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension DocumentStore {
  /// The default number of attempts for a transaction when the engine throws `conflict`, and for a read when
  /// it throws `snapshotExpired`.
  package static let defaultAttempts = 10

  /// Runs `body` with a transaction for reading: the batch that this thread has open, or else a snapshot.
  /// When the snapshot expires, `body` runs again on a new one, up to `attempts` times in all. Then
  /// `snapshotExpired` is thrown.
  func reading<Result>(
    attempts: Int = DocumentStore.defaultAttempts, _ body: (any ReadTransaction, Context) throws -> Result
  ) throws -> Result {
    if isInBatch, let transaction = writer.openTransaction, let context = writer.contextOfNow {
      try writer.writePending()
      return try body(transaction, context)
    }
    return try withSnapshot(attempts: attempts, body)
  }

  /// Runs `body` while no write is in progress and all earlier writes are committed. Used to replace the
  /// engine. Throws `nestedWrite` inside a batch.
  package func exclusively(_ body: () throws -> Void) throws {
    guard !isInBatch else {
      throw StorageError(.nestedWrite, "this operation isn't possible inside a batch", path: engine.location)
    }
    try gate.alone {
      var isDone = false
      try repeating(.conflict) {
        do {
          try context.engine.write { (_: any WriteTransaction) throws -> Void in
            isDone = false
            try body()
            isDone = true
          }
        } catch let error as StorageError where error.code == .conflict && isDone {
          // `body` ran, and the transaction had no writes that could have been rolled back.
        }
      }
    }
  }

  /// The run of the batch that this thread has open, or nil. Callers keep it to know whether the batch's
  /// results hold.
  var openRun: TransactionRun? { isInBatch ? writer.openRun : nil }

  /// Whether the calling thread is inside a batch of this store.
  package var isInBatch: Bool { batchThread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Runs `body` in one write transaction, all or nothing. Inside a batch of the same thread it joins the
  /// batch's transaction.
  ///
  /// When the engine reports a conflict with another transaction (`conflict`), the transaction is rolled back
  /// and `body` runs again, up to `attempts` times in all. Then `conflict` is thrown. That is also what happens
  /// to a `body` that threw because of what others in its commit had written, when that commit fails.
  func writing<Result>(
    attempts: Int = DocumentStore.defaultAttempts, _ body: (DocumentWriter) throws -> Result
  ) throws -> Result {
    if isInBatch { return try writer.joined(body) }
    return try repeating(.conflict, attempts: attempts) { try writingOnce(body) }
  }

  private func writingOnce<Result>(_ body: (DocumentWriter) throws -> Result) throws -> Result {
    let thread = UInt(pthread_self())
    return try gate.pass {
      let context = context
      var added: SharedKeys?
      var foundDepth: KnownTreeDepth?
      var installed: [BlobDigest] = []
      var claimed: [BlobDigest] = []
      var isUnsequenced = false
      var result: Result?
      var committing = false
      var finished = FinishedTransaction()
      var run: TransactionRun?
      var times = TransactionTimes()
      do {
        try context.engine.write { (transaction: any WriteTransaction) throws -> Void in
          times.begin()
          try writer.begin(context.checked(transaction), context, isObserved: notifier.isActive)
          writer.thread.enter()
          writer.validations = currentValidations
          batchThread.store(thread, ordering: .relaxed)
          defer {
            batchThread.store(0, ordering: .relaxed)
            run = writer.run
            claimed = writer.claimedBlobs
            writer.end(committing: committing)
            writer.thread.leave()
          }
          do { result = try body(writer) } catch {
            // The body may have replaced the conflict with another error.
            throw writer.metConflict ?? error
          }
          added = try writer.finish()
          installed = writer.installedBlobs
          isUnsequenced = writer.hasUnsequencedChanges
          foundDepth = writer.foundDepth
          // Inside the write transaction, transactions are ordered.
          finished = FinishedTransaction(writer, notifier)
          committing = true
        }
      } catch {
        run?.undo()
        for digest in claimed { blobs?.discard(digest) }
        finished.hasFailed(notifier)
        times.hasFailed(self, error)
        throw error
      }
      greatestSequence.max(finished.end, ordering: .relaxed)
      if isUnsequenced { unsequencedCommits.add(1, ordering: .acquiringAndReleasing) }
      if let added { publish(added) }
      if let foundDepth { publish(foundDepth) }
      if !installed.isEmpty { blobs?.commit(installed) }
      finished.isCommitted(notifier, removedInAll: removedBodies, upkeep: { upkeep })
      times.isCommitted(self, finished)
      // The body ran without throwing, so it set a result.
      return result.unsafelyUnwrapped
    }
  }

  /// Runs `body` in one transaction. Nested calls join it, and fail it when they throw.
  @discardableResult
  package func inBatch<Result>(
    attempts: Int = DocumentStore.defaultAttempts, _ body: () throws -> Result
  ) throws -> Result {
    let isNested = isInBatch
    return try writing(attempts: attempts) { writer in
      do { return try body() } catch {
        if isNested { writer.fail(error) }
        throw error
      }
    }
  }
}

/// Runs `body` again when it throws a `StorageError` with `code`, up to `attempts` times in all, as long as
/// `canRepeat` returns true.
@inline(__always)
package func repeating<Result>(
  _ code: StorageError.Code, attempts: Int = DocumentStore.defaultAttempts,
  while canRepeat: () -> Bool = { true }, _ body: () throws -> Result
) throws -> Result {
  var runs = 1
  while true {
    do { return try body() } catch let error as StorageError
      where error.code == code && runs < attempts && canRepeat()
    {
      runs += 1
    }
  }
}

extension StorageEngine {
  /// Runs `read` again when the snapshot expires. `body` must be able to run more than once.
  func readRepeating<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    try repeating(.snapshotExpired) { try read(body) }
  }

  /// Runs `write` again after a conflict with another transaction. `body` must be able to run more than once.
  func writeRepeating<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    try repeating(.conflict) { try write(body) }
  }
}
