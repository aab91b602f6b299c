import Synchronization

/// Does background work when the documents need it. Called after commits, on the writer's thread.
package protocol DocumentUpkeep: AnyObject, Sendable {
  /// A transaction gave documents expiration times. `milliseconds` is the earliest of them, since 1970.
  func expirationWasSet(_ milliseconds: Int64)
  /// Some thousands of changes were made since the last call, or purges and expirations removed bodies.
  func manyChangesWereMade()
}

/// The work that remains after the commit of a transaction. Without observers it is five numbers.
struct FinishedTransaction {
  /// The last sequence before the transaction.
  private(set) var begin: UInt64 = 0
  /// The last sequence after the transaction.
  private(set) var end: UInt64 = 0
  private var earliestExpiration: Int64?
  private var commit: ObservedCommit?
  private var isInLine = false
  private var isUnsequenced = false
  /// The number of bodies that it has removed.
  private(set) var removedBodies = 0

  /// Upkeep looks at the database each time that the sequence has passed a multiple of this.
  private static let changesBetweenLooks: UInt64 = 4_096
  /// The purge of a document takes no sequence. So upkeep also looks each time that this many bodies were removed.
  private static let removedBodiesBetweenLooks: UInt64 = 1_024

  init() {}

  /// Called at the end of a transaction, inside it.
  init(_ writer: DocumentWriter, _ notifier: ObserverNotifier) {
    (begin, end) = writer.span
    earliestExpiration = writer.earliestExpiration
    removedBodies = writer.removedBodies
    // Queries of `system:indexes` tell of indexes.
    isUnsequenced =
      writer.hasUnsequencedChanges || writer.hasChangedExpirations || writer.hasChangedIndexes
    isInLine = notifier.isActive
    guard isInLine || writer.notes.hasUnstored else { return }
    commit = writer.notes.commit(
      after: begin, upTo: end, isUnsequenced: isUnsequenced, purges: writer.recordedPurges?.numbers)
    if isInLine, let commit { notifier.enqueue(commit) }
  }

  func hasFailed(_ notifier: ObserverNotifier) {
    if isInLine, let commit { notifier.resolve(commit, isCommitted: false) }
  }

  @inline(__always)
  func isCommitted(
    _ notifier: ObserverNotifier, removedInAll: borrowing Atomic<UInt64>, upkeep: () -> (any DocumentUpkeep)?
  ) {
    if notifier.isActive { tell(notifier) }
    var areMany = end / Self.changesBetweenLooks != begin / Self.changesBetweenLooks
    if removedBodies > 0 {
      let (before, after) = removedInAll.add(UInt64(removedBodies), ordering: .relaxed)
      areMany =
        areMany || after / Self.removedBodiesBetweenLooks != before / Self.removedBodiesBetweenLooks
    }
    if areMany { upkeep()?.manyChangesWereMade() }
    if let earliestExpiration { upkeep()?.expirationWasSet(earliestExpiration) }
  }

  private func tell(_ notifier: ObserverNotifier) {
    if isInLine {
      if let commit { notifier.resolve(commit, isCommitted: true) }
    } else if let commit {
      notifier.publishLate(commit)
    } else if end > begin || isUnsequenced {
      // The first observer was added while this transaction was being committed.
      notifier.publishLate(
        ObservedCommit(after: begin, upTo: end, notes: nil, unstored: [], isUnsequenced: isUnsequenced))
    }
  }
}
