import Documents
import Fleece
import Storage

/// A query of a view. Set its options, then run it, as often as wanted.
///
/// ```swift
/// var query = byCity.query()
/// query.startKey = ["France"]
/// query.endKey = ["France"]
/// query.prefixMatchLevel = 1
/// for row in try query.run() { print(row.key, row.documentID ?? "") }
/// ```
public struct ViewQuery: Sendable {
  /// The view.
  public let view: View

  /// The first key, in the order of the rows: the highest one if they descend. Nil: no bound. `.null` is a key.
  public var startKey: JSONValue?
  /// The last key, in the order of the rows. Nil: no bound.
  public var endKey: JSONValue?
  /// Among the rows with `startKey`, the first document's ID. Ignored without `startKey`, and if that isn't included.
  public var startKeyDocumentID: String?
  /// Among the rows with `endKey`, the last document's ID. Ignored without `endKey`, and if that isn't included.
  public var endKeyDocumentID: String?
  /// Whether rows with `startKey` itself belong to the result.
  public var includesStart = true
  /// Whether rows with `endKey` itself belong to the result.
  public var includesEnd = true
  /// Makes the upper bound a prefix: `endKey`, or `startKey` if the rows descend. 0: no. 1: a string stands for all
  /// strings that begin with it, an array for all arrays that begin with its items. 2: the last item of an array is such
  /// a prefix, and so on.
  public var prefixMatchLevel = 0
  /// Only rows with one of these keys, in the order of this list. The bounds are ignored then.
  public var keys: [JSONValue]?
  /// Whether the order is reversed.
  public var isDescending = false
  /// The number of rows to leave out at the beginning.
  public var skip = 0
  /// The maximum number of rows; 0 for all.
  public var limit = 0
  /// Whether rows are given as they were emitted, although the view has a reducer.
  public var mapOnly = false
  /// With a reducer: 0 reduces all rows to one; n makes one row of those whose array keys agree in their first n items.
  /// Keys that are no arrays are compared as a whole.
  public var groupLevel = 0
  /// With a reducer: makes one row of those with equal keys, whatever `groupLevel` is.
  public var groupsByKey = false
  /// Only rows whose special key is a place that meets this box, ordered by y0, x0 and the document's ID. Keys, their
  /// bounds and `groupLevel` aren't used then (docs/view-geo-text.md).
  ///
  /// Edges don't count: a box that only touches this one isn't found, nor a point on its edge.
  public var boundingBox: GeoRect?
  /// Only rows whose special key is a text that matches this query, in the language of docs/fulltext.md. Keys, their
  /// bounds and the reducer aren't used then. Ignored with `boundingBox`.
  public var fullTextQuery: String?
  /// Whether rows of `fullTextQuery` are ordered by rank, the best first. Otherwise they are ordered by the sequence of
  /// the revision that was mapped.
  public var fullTextRanking = true
  /// Whether rows of `fullTextQuery` have a `snippet`.
  public var fullTextSnippets = false
  /// Whether the documents are loaded with the rows.
  public var prefetches = false
  /// When the index is brought up to date.
  public var updateMode = ViewUpdateMode.before
  /// Rows that it returns false for are left out. `skip` and `limit` count what is left.
  public var filter: (@Sendable (ViewRow) throws -> Bool)?
  /// Sorts the rows again. `skip` and `limit` count the sorted rows.
  public var sort: [ViewSort] = []
  /// The memory that the rows may take, in bytes. More throws `tooManyRows`.
  public var memoryLimit = 512 << 20

  package init(_ view: View) { self.view = view }

  // MARK: Running

  /// Brings the view up to date as `updateMode` says, and returns the rows.
  ///
  /// - Throws: `ViewError`, and what reading and writing the database throws. In a batch, the rows are those of the
  ///   batch.
  public func run() throws -> ViewResults { try run(cancellation: nil) }

  /// Runs the query on a thread of the database. A cancelled task ends it soon, with `CancellationError`.
  public func run() async throws -> ViewResults {
    try await view.indexes.workers.run { try self.run(cancellation: $0) }
  }

  /// Runs the query if the view's rows have changed since the update at `sequence`: `lastSequenceChangedAt` of an
  /// earlier result. Returns nil if they haven't.
  public func runIfChanged(since sequence: UInt64) throws -> ViewResults? {
    try update(nil)
    guard try view.lastSequenceChangedAt > sequence else { return nil }
    return try run(cancellation: nil)
  }

  /// Brings the view up to date as `updateMode` says, and calls `body` with each row until it returns false.
  ///
  /// The rows aren't collected, so that any number of them takes no more memory than one, unless they are sorted or
  /// filtered, or found by `boundingBox` or `fullTextQuery`. `body` runs while the database is being read: it must not write to it.
  public func forEach(_ body: (ViewRow) throws -> Bool) throws {
    guard filter == nil, sort.isEmpty, !readsSpecialKeys else {
      for row in try run() where try !body(row) { return }
      return
    }
    try update(nil)
    try reading(nil) { try $0.forEach(self, body) }
  }

  func run(cancellation: JobCancellation?) throws -> ViewResults {
    try update(cancellation)
    let results = try reading(cancellation) { try $0.run(self) }
    if updateMode == .after, results.wasStale { view.indexes.updateLater(view.name) }
    return results
  }

  private func update(_ cancellation: JobCancellation?) throws {
    if updateMode == .before {
      _ = try view.indexes.update(view.name, cancellation: cancellation)
    }
  }

  /// Runs `body` on a snapshot in which the view is whole.
  private func reading<Result>(_ cancellation: JobCancellation?, _ body: (ViewReader) throws -> Result) throws
    -> Result
  {
    var attempts = 0
    while true {
      let reduce = try view.reduce
      let result = try view.indexes.store.read(cancellation: cancellation) { snapshot in
        try ViewReader(view, reduce, snapshot).map(body)
      }
      if let result { return result }
      // It was never indexed, or another process has dropped the rows meanwhile.
      attempts += 1
      guard attempts < 10 else { throw ViewError(.busy, "its rows vanish again and again", view: view.name) }
      _ = try view.indexes.update(view.name, cancellation: cancellation)
    }
  }

  /// Whether rows are found by special keys.
  var readsSpecialKeys: Bool { boundingBox != nil || fullTextQuery != nil }

  /// What is to be read.
  func selection(hasReducer: Bool) -> ViewSelection {
    var selection = ViewSelection()
    selection.start = startKey.map {
      .init($0, documentID: includesStart ? startKeyDocumentID : nil, isInclusive: includesStart)
    }
    selection.end = endKey.map {
      .init($0, documentID: includesEnd ? endKeyDocumentID : nil, isInclusive: includesEnd)
    }
    selection.keys = keys?.map { .value($0) }
    selection.prefixMatchLevel = prefixMatchLevel
    selection.isDescending = isDescending
    let isLater = filter != nil || !sort.isEmpty
    selection.skip = isLater ? 0 : max(0, skip)
    selection.limit = isLater || limit <= 0 ? nil : limit
    if groupsByKey {
      selection.grouping = .keys
    } else if groupLevel > 0 {
      selection.grouping = .level(groupLevel)
    } else if hasReducer, !mapOnly {
      selection.grouping = .all
    }
    return selection
  }
}

/// A key or a part of the value to sort rows by.
public struct ViewSort: Sendable, Hashable {
  /// `key`, `value`, `documentID`, or a path into key or value: `value.name`, `key[1]`.
  public var path: String
  /// Whether the lowest comes first.
  public var isAscending: Bool

  /// Sorts by a path.
  public init(_ path: String, ascending: Bool = true) {
    self.path = path
    isAscending = ascending
  }
}
