import Logs
import Storage

/// Tells an update with scripts, which may take long, that its rows aren't needed any more. Used on the thread of the update.
final class UpdateWatch {
  /// The design document was changed or deleted.
  struct DesignChanged: Error {}

  /// How often the design document is looked at, in nanoseconds.
  private static let interval: UInt64 = 250_000_000

  private let cancellation: JobCancellation?
  private let isWanted: () -> Bool
  /// The design document that is watched.
  private(set) var design: DesignDocument?
  private var indexes: ViewIndexes?
  private var checkedAt: UInt64?

  init(_ cancellation: JobCancellation?, _ isWanted: @escaping () -> Bool) {
    self.cancellation = cancellation
    self.isWanted = isWanted
  }

  /// Watches a design document from now on.
  func begin(_ design: DesignDocument, _ indexes: ViewIndexes) {
    self.design = design
    self.indexes = indexes
  }

  /// Throws if nobody waits for the rows, if the database is to be closed, or if the design document is another one by now.
  func check() throws {
    try cancellation?.check()
    guard isWanted() else { throw StorageError(.closed, "the database is being closed") }
    guard let design, let indexes else { return }
    let now = LogClock.now
    if let checkedAt, now - checkedAt < Self.interval { return }
    checkedAt = now
    guard try indexes.isCurrent(design) else { throw DesignChanged() }
  }
}
