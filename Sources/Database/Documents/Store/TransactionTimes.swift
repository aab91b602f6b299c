import Logs
import Storage

extension DocumentError: LoggedError {
  package var isDamage: Bool { code == .damaged }

  /// The code and the document's ID. The messages of damage and of formats name entries by their keys and
  /// nothing more; other messages may quote a body.
  package var logText: String {
    switch code {
    case .damaged, .unsupportedVersion: description
    default: "\(code)" + (documentID.map { " (document '\($0)')" } ?? "")
    }
  }
}

/// The times of a write transaction, for the log. They are taken only if an entry could follow.
struct TransactionTimes {
  /// A transaction that waits longer for its turn is logged, in nanoseconds.
  static let longWait: UInt64 = 1_000_000_000

  private let asked: UInt64
  private var began: UInt64 = 0

  @inline(__always)
  init() { asked = Log.isWritten(.warning, .database) ? LogClock.now : 0 }

  /// It is the writer from now on.
  @inline(__always)
  mutating func begin() { if asked != 0 { began = LogClock.now } }

  /// It is committed.
  @inline(__always)
  func isCommitted(_ store: DocumentStore, _ finished: FinishedTransaction) {
    guard began != 0 else { return }
    if began - asked >= TransactionTimes.longWait { logWait(store) }
    if Log.isWritten(.debug, .database) { logCommit(store, finished) }
  }

  @inline(never)
  private func logWait(_ store: DocumentStore) {
    Log.write(
      .warning, .database, store.logPath,
      "a write transaction waited \(LogText.milliseconds(began - asked)) for others, and took \(LogText.milliseconds(LogClock.now - began))"
    )
  }

  @inline(never)
  private func logCommit(_ store: DocumentStore, _ finished: FinishedTransaction) {
    Log.write(
      .debug, .database, store.logPath,
      "committed the sequences after \(finished.begin) up to \(finished.end) in \(LogText.milliseconds(LogClock.now - began))"
    )
  }

  /// It was rolled back. The caller gets the error, so only failures of the engine are warnings.
  @inline(never)
  func hasFailed(_ store: DocumentStore, _ error: any Error) {
    var level = LogText.isDamage(error) ? LogLevel.error : .verbose
    switch (error as? StorageError)?.code {
    case .diskFull, .mapFull, .ioError, .busy, .engineFailure, .permissionDenied, .transactionTooLarge:
      level = .warning
    default: break
    }
    Log.write(
      level, .database, store.logPath, "a write transaction was rolled back: \(LogText.of(error))")
  }
}
