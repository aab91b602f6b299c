import Synchronization

/// One run of a transaction. A caller's document that was saved in it uses it to find out whether the save
/// still holds.
final class TransactionRun: Sendable {
  private let undone = Atomic<Bool>(false)

  /// Whether the run was rolled back. False while it is open.
  var isUndone: Bool { undone.load(ordering: .acquiring) }

  func undo() { undone.store(true, ordering: .releasing) }
}

/// The revision that a caller's document is based on. It reverts to the earlier revision when the transaction
/// that saved it is rolled back.
struct DocumentBase: Sendable {
  private struct Noted: Sendable {
    var revisionID: RevisionID?
    var sequence: UInt64 = 0
  }

  /// The committed base.
  private var committed = Noted()
  /// The base in a transaction that may still be rolled back.
  private var saved: (run: TransactionRun, noted: Noted)?

  init(_ revisionID: RevisionID? = nil, _ sequence: UInt64 = 0) {
    committed = Noted(revisionID: revisionID, sequence: sequence)
  }

  private var current: Noted { saved.flatMap { $0.run.isUndone ? nil : $0.noted } ?? committed }

  var revisionID: RevisionID? { current.revisionID }
  var sequence: UInt64 { current.sequence }

  /// Records a save: for good if `run` is nil, otherwise as long as `run` isn't undone.
  mutating func note(_ revision: SavedRevision, in run: TransactionRun?) {
    let noted = Noted(revisionID: revision.revisionID, sequence: revision.sequence)
    // When a run is undone, all of its saves are undone.
    if saved?.run !== run { committed = current }
    if let run { saved = (run, noted) } else { (committed, saved) = (noted, nil) }
  }
}
