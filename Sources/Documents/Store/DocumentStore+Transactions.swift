import Blobs
import Fleece
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension DocumentStore {
  /// How often a transaction is run at most when the engine says `conflict`, and a read when it says `snapshotExpired`.
  public static let defaultAttempts = 10

  /// Runs `body` with the transaction to read in: the batch of this thread when one is open, else a snapshot. When that
  /// expires, `body` is run again on a new one, up to `attempts` times in all; then `snapshotExpired` is thrown.
  func reading<Result>(
    attempts: Int = DocumentStore.defaultAttempts, _ body: (any ReadTransaction, Context) throws -> Result
  ) throws -> Result {
    if isInBatch, let transaction = writer.transaction, let context = writer.contextOfNow {
      return try body(transaction, context)
    }
    return try withSnapshot(attempts: attempts, body)
  }

  /// Runs `body` while nothing is written and all that was is committed: for who replaces the engine. Throws
  /// `nestedWrite` inside a batch.
  public func exclusively(_ body: () throws -> Void) throws {
    guard !isInBatch else {
      throw StorageError(.nestedWrite, "this can't be done inside a batch", path: engine.location)
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
          // Nothing was written in it that could be rolled back.
        }
      }
    }
  }

  /// The run of the batch of this thread, for what is told to callers inside it; nil outside of one.
  var openRun: TransactionRun? { isInBatch ? writer.openRun : nil }

  /// Whether the calling thread is inside a batch of this store.
  public var isInBatch: Bool { batchThread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Runs `body` in one write transaction, all or nothing; inside a batch of the same thread it joins that.
  ///
  /// When the engine says that it met another transaction (`conflict`), nothing of it remains and `body` is run again, up
  /// to `attempts` times in all; then `conflict` is thrown.
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
      var installed: [BlobDigest] = []
      var isUnsequenced = false
      var result: Result?
      var committing = false
      var finished = FinishedTransaction()
      var run: TransactionRun?
      do {
        try context.engine.write { (transaction: any WriteTransaction) throws -> Void in
          if commitFailed.load(ordering: .acquiring) {
            commitFailed.store(false, ordering: .relaxed)
            writer.indexes = nil
          }
          try writer.begin(context.checked(transaction), context, isObserved: feed.isActive)
          batchThread.store(thread, ordering: .relaxed)
          defer {
            batchThread.store(0, ordering: .relaxed)
            run = writer.run
            writer.end(committing: committing)
          }
          do { result = try body(writer) } catch {
            // A body may have made another error of it.
            throw writer.metConflict ?? error
          }
          added = try writer.finish()
          installed = writer.installedBlobs
          isUnsequenced = writer.hasUnsequencedChanges
          // In here transactions are in order.
          finished = FinishedTransaction(writer, feed)
          committing = true
        }
      } catch {
        run?.undo()
        if committing { commitFailed.store(true, ordering: .releasing) }
        finished.hasFailed(feed)
        throw error
      }
      greatestSequence.max(finished.end, ordering: .relaxed)
      if isUnsequenced { unsequencedCommits.add(1, ordering: .acquiringAndReleasing) }
      if let added { publish(added) }
      if !installed.isEmpty { blobs?.commit(installed) }
      finished.isCommitted(feed, removedInAll: removedBodies, upkeep: { upkeep })
      // The body ran and did not throw, so it gave a result.
      return result.unsafelyUnwrapped
    }
  }

  /// Runs `body` in one transaction, all or nothing. What is read inside on the same thread sees what was
  /// written. Nested calls join it; one that throws makes the whole batch fail, also where its error is
  /// caught, for what it did can't be undone alone.
  ///
  /// **`body` may run more than once**: when the engine says that it met another transaction (`StorageError.conflict`),
  /// nothing of it remains and it is run again, up to `attempts` times in all; then `conflict` is thrown. (SQLite and LMDB
  /// never do.) So it should begin from what is stored, and change nothing outside that a second run would change again; a
  /// body that can't run twice gives `attempts: 1`. A `MutableDocument` that was saved in a run, or in a batch that
  /// failed, is based on the revision again that it was based on before; its properties stay as they are.
  @discardableResult
  public func inBatch<Result>(
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

/// Runs `body` again when the engine says `code`, up to `attempts` times in all, and no more once `canRepeat` says so.
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
  /// `read` for a body that can be run again when its snapshot expires.
  func readRepeating<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    try repeating(.snapshotExpired) { try read(body) }
  }

  /// `write` for a body that can be run again when it meets another transaction.
  func writeRepeating<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    try repeating(.conflict) { try write(body) }
  }
}
