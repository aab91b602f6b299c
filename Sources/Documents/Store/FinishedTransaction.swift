import Synchronization

/// Who does work in the background when the documents ask for it. Called after commits, on the writer's thread.
public protocol DocumentUpkeep: AnyObject, Sendable {
  /// A document was given a time to expire, in milliseconds since 1970; the earliest of a transaction.
  func expirationWasSet(_ milliseconds: Int64)
  /// Some thousands of changes were made since the last call, or bodies removed by purges and expirations.
  func manyChangesWereMade()
}

/// What a transaction leaves to be done after its commit. Without observers it is five numbers.
struct FinishedTransaction {
  private var begin: UInt64 = 0
  /// The last sequence that it left.
  private(set) var end: UInt64 = 0
  private var earliestExpiration: Int64?
  private var commit: ObservedCommit?
  private var isInLine = false
  private var isUnsequenced = false
  /// How many bodies it has removed.
  private(set) var removedBodies = 0

  init() {}

  /// Called at the end of a transaction, inside it.
  init(_ writer: DocumentWriter, _ feed: ChangeFeed) {
    (begin, end) = writer.span
    earliestExpiration = writer.earliestExpiration
    removedBodies = writer.removedBodies
    isUnsequenced = writer.hasUnsequencedChanges || writer.hasChangedExpirations
    isInLine = feed.isActive
    guard isInLine || writer.notes.hasUnstored else { return }
    commit = writer.notes.commit(after: begin, upTo: end, isUnsequenced: isUnsequenced)
    if isInLine, let commit { feed.enqueue(commit) }
  }

  func hasFailed(_ feed: ChangeFeed) {
    if isInLine, let commit { feed.resolve(commit, isCommitted: false) }
  }

  @inline(__always)
  func isCommitted(
    _ feed: ChangeFeed, removedInAll: borrowing Atomic<UInt64>, upkeep: () -> (any DocumentUpkeep)?
  ) {
    if feed.isActive { tell(feed) }
    // Every 4,096 changes. A purge takes no sequence, so what was removed is counted as well: every 1,024 bodies.
    var areMany = end >> 12 != begin >> 12
    if removedBodies > 0 {
      let (before, after) = removedInAll.add(UInt64(removedBodies), ordering: .relaxed)
      areMany = areMany || after >> 10 != before >> 10
    }
    if areMany { upkeep()?.manyChangesWereMade() }
    if let earliestExpiration { upkeep()?.expirationWasSet(earliestExpiration) }
  }

  private func tell(_ feed: ChangeFeed) {
    if isInLine {
      if let commit { feed.resolve(commit, isCommitted: true) }
    } else if let commit {
      feed.publishLate(commit)
    } else if end > begin || isUnsequenced {
      // The first observer came while this was being committed.
      feed.publishLate(
        ObservedCommit(after: begin, upTo: end, notes: nil, unstored: [], isUnsequenced: isUnsequenced))
    }
  }
}
