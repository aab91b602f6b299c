import Documents
import Storage

/// A query of all documents, in the form of a view's query. Set its options, then run it, as often as wanted.
///
/// ```swift
/// var notes = try database.allDocuments(AllDocuments(prefix: "note_"))
/// notes.filter = { row in row.document?["done"].bool != true }
/// for row in try await notes.run() { print(row.key) }
/// ```
public struct AllDocumentsQuery: Sendable {
  private let store: DocumentStore
  private let workers: Workers

  /// Which documents, in which order.
  public var documents: AllDocuments
  /// Rows that it returns false for are left out. `skip` and `limit` of the selection count what is left.
  public var filter: (@Sendable (AllDocumentsRow) throws -> Bool)?

  init(_ documents: AllDocuments, _ store: DocumentStore, _ workers: Workers) {
    self.documents = documents
    self.store = store
    self.workers = workers
  }

  /// Returns the rows. In a batch, they are those of the batch.
  public func run() throws -> AllDocumentsResults { try run(cancellation: nil) }

  /// Runs the query on a thread of the database. A cancelled task ends it soon, with `CancellationError`.
  public func run() async throws -> AllDocumentsResults {
    try await workers.run { try self.run(cancellation: $0) }
  }

  /// Runs the query if the database has changed since it had `sequence`: that of an earlier result. Returns nil if it
  /// hasn't. The purge of a document isn't a change: it has no sequence.
  public func runIfChanged(since sequence: UInt64) throws -> AllDocumentsResults? {
    try store.read { try $0.lastSequence } > sequence ? run() : nil
  }

  private func run(cancellation: JobCancellation?) throws -> AllDocumentsResults {
    try store.read(attempts: DocumentStore.defaultAttempts, cancellation: cancellation) { snapshot in
      var rows: [AllDocumentsRow] = []
      var selection = documents
      if filter != nil { (selection.skip, selection.limit) = (0, .max) }
      var skip = max(0, documents.skip)
      if documents.limit > 0 {
        try snapshot.enumerateRows(selection) { row in
          if let filter {
            guard try filter(row) else { return true }
            if skip > 0 {
              skip -= 1
              return true
            }
          }
          rows.append(row)
          return rows.count < documents.limit
        }
      }
      return AllDocumentsResults(rows, sequence: try snapshot.lastSequence, store)
    }
  }
}

/// The rows of a query of all documents, as they were when it ran.
///
/// Two results are equal if their rows have the same keys, revisions, conflicting revisions and errors.
public struct AllDocumentsResults: Sendable, Equatable, RandomAccessCollection {
  private let rows: [AllDocumentsRow]
  private let store: DocumentStore
  /// The database's last sequence when the query ran.
  public let sequence: UInt64

  init(_ rows: [AllDocumentsRow], sequence: UInt64, _ store: DocumentStore) {
    self.rows = rows
    self.sequence = sequence
    self.store = store
  }

  /// Whether the database has changed since the query ran. The rows may be the same nevertheless.
  public var isStale: Bool { get throws { try store.read { try $0.lastSequence } > sequence } }

  /// 0.
  public var startIndex: Int { 0 }
  /// The number of rows.
  public var endIndex: Int { rows.count }
  /// The row at an index.
  public subscript(index: Int) -> AllDocumentsRow { rows[index] }

  /// Compares the rows.
  public static func == (left: AllDocumentsResults, right: AllDocumentsResults) -> Bool {
    left.rows.elementsEqual(right.rows) { left, right in
      left.key.hasSameBytes(as: right.key) && left.revisionID == right.revisionID
        && (left.documentID == nil) == (right.documentID == nil) && left.isDeleted == right.isDeleted
        && left.conflictingRevisions.map(\.id) == right.conflictingRevisions.map(\.id)
        && left.error?.code == right.error?.code
    }
  }
}

/// A query of all documents that runs again after commits, until it is cancelled or released. See
/// `Database.observe(_:updateInterval:on:_:)`.
public final class LiveAllDocumentsQuery: Sendable {
  /// The result of a run: the rows, or the error.
  public typealias Outcome = Result<AllDocumentsResults, any Error>

  private let runs: RepeatedRun<AllDocumentsResults>

  init(
    _ query: AllDocumentsQuery, of database: Database, interval: Duration, on executor: CallbackExecutor,
    _ handler: @escaping @Sendable (Outcome) -> Void
  ) throws {
    runs = RepeatedRun("of all documents", of: database, interval: interval, on: executor, handler) {
      try query.run()
    }
    try runs.begin(database)
  }

  /// Stops the live query. A call of the handler in progress completes; no call follows it.
  public func cancel() { runs.cancel() }
}

extension Database {
  /// Returns a query of all documents, or of a selection of them.
  public func allDocuments(_ documents: AllDocuments = AllDocuments()) throws -> AllDocumentsQuery {
    AllDocumentsQuery(documents, try store, open.asyncReaders)
  }

  /// Calls `handler` with the rows of a query of all documents of this database: first with the current rows, then
  /// whenever a commit has changed them. It ends when the live query is cancelled or released, or when the database is
  /// closed.
  ///
  /// A run begins `updateInterval` after the last one at the earliest; commits that come meanwhile share it. `handler` is
  /// called on `executor`, one call at a time, and gets the latest rows. A failed run is reported too; the next commit
  /// tries again.
  public func observe(
    _ query: AllDocumentsQuery, updateInterval: Duration = .milliseconds(200),
    on executor: CallbackExecutor = .background,
    _ handler: @escaping @Sendable (LiveAllDocumentsQuery.Outcome) -> Void
  ) throws -> LiveAllDocumentsQuery {
    try LiveAllDocumentsQuery(query, of: self, interval: updateInterval, on: executor, handler)
  }

  /// The same with a handler on the main actor.
  public func observe(
    _ query: AllDocumentsQuery, updateInterval: Duration = .milliseconds(200), on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (LiveAllDocumentsQuery.Outcome) -> Void
  ) throws -> LiveAllDocumentsQuery {
    try observe(query, updateInterval: updateInterval, on: .main) { outcome in
      MainActor.assumeIsolated { handler(outcome) }
    }
  }
}
