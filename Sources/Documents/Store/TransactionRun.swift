import Synchronization

/// One run of a transaction, for the documents of callers that were saved in it: whether what they were told holds.
final class TransactionRun: Sendable {
  private let undone = Atomic<Bool>(false)

  /// Whether nothing of it remains. While it is open, what it did holds.
  var isUndone: Bool { undone.load(ordering: .acquiring) }

  func undo() { undone.store(true, ordering: .releasing) }
}

/// The revision that a document of a caller is based on. It goes back to an earlier one when the transaction that
/// saved it is rolled back.
struct DocumentBase: Sendable {
  private struct Noted: Sendable {
    var revisionID: RevisionID?
    var sequence: UInt64 = 0
  }

  /// Of what is committed.
  private var committed = Noted()
  /// Of a transaction that may still be rolled back.
  private var saved: (run: TransactionRun, noted: Noted)?

  init(_ revisionID: RevisionID? = nil, _ sequence: UInt64 = 0) {
    committed = Noted(revisionID: revisionID, sequence: sequence)
  }

  private var current: Noted { saved.flatMap { $0.run.isUndone ? nil : $0.noted } ?? committed }

  var revisionID: RevisionID? { current.revisionID }
  var sequence: UInt64 { current.sequence }

  /// Takes note of a save: for good, or as long as `run` isn't undone.
  mutating func note(_ revision: SavedRevision, in run: TransactionRun?) {
    let noted = Noted(revisionID: revision.revisionID, sequence: revision.sequence)
    // Of several saves in one run all are undone.
    if saved?.run !== run { committed = current }
    if let run { saved = (run, noted) } else { (committed, saved) = (noted, nil) }
  }
}
