import Bytes
import Documents
import Fleece
import Storage

/// Reads the rows of a view in one snapshot. Used on one thread at a time, while the snapshot lasts.
package final class ViewReader {
  let name: String
  let snapshot: DocumentSnapshot
  let transaction: any ReadTransaction
  private let store: DocumentStore
  let record: ViewRecord
  let tables: ViewTables
  let encoder: ViewKeyEncoder
  let reducer: (any Reducer)?

  /// Returns nil if the view isn't whole.
  convenience init?(_ view: View, _ reducer: ViewReduce?, _ snapshot: DocumentSnapshot) throws {
    try self.init(rowsOf: view.name, in: view.indexes, reducer, snapshot)
  }

  /// Returns nil if the view with this name isn't whole.
  init?(rowsOf name: String, in indexes: ViewIndexes, _ reducer: ViewReduce?, _ snapshot: DocumentSnapshot)
    throws
  {
    let transaction = try snapshot.storage
    guard let record = try ViewRecord.read(name, in: transaction), record.stage == .whole else {
      return nil
    }
    self.name = name
    store = indexes.store
    self.snapshot = snapshot
    self.transaction = transaction
    self.record = record
    tables = try ViewTables(record, of: name, in: transaction)
    encoder = try ViewKeyEncoder(record.collation)
    self.reducer = reducer?.reducer
    // The view may not have been updated since the reducer was set, or another process has another one.
    let stored = Array(ReductionTree.identity(of: self.reducer).utf8)
    tree = tables.tree(self.reducer, readsPartials: record.reducer == stored, in: snapshot)
  }

  /// Whether documents have changed since the view was brought up to date.
  var isStale: Bool {
    get throws { try record.lastSequence < snapshot.lastSequence || record.purge < snapshot.newestPurge }
  }

  // MARK: Rows

  /// Calls `body` with each selected row as it was emitted, until it returns false. With `last`, the row key of a row of a
  /// range, it begins behind that row.
  func forEachRow(
    _ selection: ViewSelection, after last: [UInt8]? = nil, _ body: (StoredRow) throws -> Bool
  ) throws {
    var skip = selection.skip
    var left = selection.limit ?? .max
    guard left > 0 else { return }
    for var range in try selection.ranges(encoder) where left > 0 {
      if let last {
        if selection.isDescending { range.upper = .exclusive(last) } else { range.lower = .exclusive(last) }
      }
      try tables.rows.scan(range, order: selection.isDescending ? .descending : .ascending, in: transaction) {
        key, value in
        if let prefix = selection.documentPrefix, try !StoredRow(key, value).isOfDocument(prefix) {
          return true
        }
        if skip > 0 {
          skip -= 1
          return true
        }
        left -= 1
        return try body(StoredRow(key, value)) && left > 0
      }
    }
  }

  /// The number of rows of the view.
  func rowCount() throws -> Int { try tree.count(in: transaction) }

  /// The number of rows before the first selected one, in the order of the rows; what is skipped counts, also beyond the range.
  func offset(_ selection: ViewSelection) throws -> Int {
    guard let range = try selection.ranges(encoder).first else { return 0 }
    let before: Int
    if selection.isDescending {
      before = try tree.count(of: range.above, in: transaction)
    } else {
      before = try tree.count(of: range.below, in: transaction)
    }
    guard selection.skip > 0 else { return before }
    let (offset, overflows) = before.addingReportingOverflow(selection.skip)
    let total = try rowCount()
    return overflows ? total : Swift.min(total, offset)
  }

  // MARK: Groups

  /// Calls `body` with the key and the result of each selected group, as JSON, until it returns false. Without a
  /// reducer the result is empty.
  func forEachGroup(
    _ selection: ViewSelection, _ body: (_ key: [UInt8], _ result: Result<[UInt8], any Error>) throws -> Bool
  ) throws {
    var skip = selection.skip
    var left = selection.limit ?? .max
    guard left > 0, let grouping = selection.grouping else { return }
    if let prefix = selection.documentPrefix {
      return try forEachGroup(selection, grouping, of: prefix, body)
    }
    let ranges = try selection.ranges(encoder)
    let level: Int
    switch grouping {
    case .all:
      let result = Result { try tree.reduce(ranges, in: transaction) }
      if case .success(nil) = result { return }
      if skip == 0 { _ = try body(Array("null".utf8), result.map { $0 ?? [] }) }
      return
    case .level(let items): level = items
    case .keys: level = .max
    }
    for range in ranges {
      let groups = try tree.groups(range, level: level, descending: selection.isDescending, in: transaction)
      func key() -> [UInt8] {
        let whole = groups.lastKeyJSON
        return level == .max ? whole : KeyText.firstItems(level, of: whole.span.bytes)
      }
      while skip > 0 {
        guard try groups.skip() else { break }
        skip -= 1
      }
      while true {
        let group: ReductionGroups.Group?
        do { group = try groups.next() } catch let error as ViewReduceError {
          left -= 1
          guard try body(key(), .failure(error)), left > 0 else { return }
          continue
        }
        guard let group else { break }
        left -= 1
        guard try body(key(), .success(group.json)), left > 0 else { return }
      }
    }
  }

  /// The partial reductions.
  let tree: ReductionTree

  // MARK: Results

  /// Runs a query.
  func run(_ query: ViewQuery) throws -> ViewResults {
    let selection = query.selection(hasReducer: reducer != nil)
    var collector = RowCollector(store, limit: query.memoryLimit, view: name)
    if query.readsSpecialKeys {
      try collectSpecial(query, selection, into: &collector)
    } else if selection.grouping != nil {
      try forEachGroup(selection) { key, result in
        try collector.add(key: key, reduced: reducer == nil ? nil : failing(result))
        return true
      }
    } else {
      try forEachRow(selection) { row in
        try add(row, to: &collector)
        return true
      }
    }
    let isLater = query.filter != nil || !query.sort.isEmpty
    if isLater { try collector.choose(query, encoder) }
    let (buffer, chosen) = collector.finished
    let prefetched = try query.prefetches ? chosen.map { try prefetch($0) } : nil
    return ViewResults(
      buffer, store, prefetched: prefetched, sequence: try snapshot.lastSequence, changedAt: record.changedAt,
      totalRows: try rowCount(), wasStale: try isStale)
  }

  /// Calls `body` with each row of a query until it returns false.
  func forEach(_ query: ViewQuery, _ body: (ViewRow) throws -> Bool) throws {
    let selection = query.selection(hasReducer: reducer != nil)
    if selection.grouping != nil {
      try forEachGroup(selection) { key, result in
        let reduced = reducer == nil ? nil : try failing(result)
        var collector = RowCollector(store, limit: query.memoryLimit, view: name)
        try collector.add(key: key, reduced: reduced)
        return try collector.finished.1.first.map(body) ?? true
      }
    } else {
      try forEachRow(selection) { row in
        var collector = RowCollector(store, limit: query.memoryLimit, view: name)
        try add(row, to: &collector)
        guard let found = collector.finished.1.first else { return true }
        return try body(query.prefetches ? found.prefetching(prefetch(found)) : found)
      }
    }
  }

  private func add(_ row: StoredRow, to collector: inout RowCollector) throws {
    if row.kind == .document {
      let document = try DocumentValue.json(of: row, in: snapshot)
      try collector.add(row, value: document.span.bytes)
    } else {
      try collector.add(row, value: row.valueJSON)
    }
  }

  /// The result of a group. Throws the error with the view's name.
  private func failing(_ result: Result<[UInt8], any Error>) throws -> [UInt8] {
    do { return try result.get() } catch let error as ViewReduceError {
      throw ViewError(.reduceFailed, error.message, view: name, documentID: error.documentID)
    }
  }

  private func prefetch(_ row: ViewRow) throws -> Document? {
    guard let id = row.documentID else { return nil }
    do { return try snapshot.document(id) } catch let error as DocumentError
      where error.code == .invalidDocumentID
    {
      return nil
    }
  }
}

/// The documents that rows have as their values.
enum DocumentValue {
  /// Returns the JSON of the document that a row has as its value: the revision that was mapped, `null` if it isn't
  /// stored any more.
  static func json(of row: borrowing StoredRow, in snapshot: DocumentSnapshot) throws -> [UInt8] {
    var id: [UInt8] = []
    StoredRow.unescape(row.escapedID, into: &id)
    let keys = try snapshot.sharedKeys
    var json: [UInt8] = []
    let found: Void? = try snapshot.withRevision(of: id.span.bytes, sequence: row.sequence) {
      value, revisionID in
      try MapInput.writeJSON(id: id.span.bytes, revisionID: revisionID, value, sharedKeys: keys, into: &json)
    }
    return found == nil ? Array("null".utf8) : json
  }
}

/// Collects the rows of a result.
struct RowCollector {
  private let store: DocumentStore
  private let limit: Int
  private let view: String
  private var bytes: [UInt8] = []
  private var places: [RowBuffer.Place] = []
  /// Of a full-text query.
  var highlights: TextHighlights?

  init(_ store: DocumentStore, limit: Int, view: String) {
    self.store = store
    self.limit = limit
    self.view = view
  }

  mutating func add(_ row: borrowing StoredRow, value: RawSpan, keepsSpecial: Bool = false) throws {
    let start = bytes.count
    append(row.keyJSON)
    let keyEnd = bytes.count
    append(value)
    let valueEnd = bytes.count
    StoredRow.unescape(row.escapedID, into: &bytes)
    let end = bytes.count
    if keepsSpecial { append(row.special) }
    try add(
      RowBuffer.Place(
        start: start, keyEnd: keyEnd, valueEnd: valueEnd, end: end, sequence: row.sequence, kind: row.kind,
        isReduced: false, specialEnd: bytes.count, specialKind: keepsSpecial ? row.specialKind : .none))
  }

  mutating func add(key: [UInt8], reduced: [UInt8]?) throws {
    let start = bytes.count
    bytes += key
    let keyEnd = bytes.count
    bytes += reduced ?? []
    try add(
      RowBuffer.Place(
        start: start, keyEnd: keyEnd, valueEnd: bytes.count, end: bytes.count, sequence: 0,
        kind: reduced == nil ? .none : .json, isReduced: true, specialEnd: bytes.count))
  }

  private mutating func append(_ span: RawSpan) { span.withUnsafeBytes { bytes.append(contentsOf: $0) } }

  private mutating func add(_ place: RowBuffer.Place) throws {
    places.append(place)
    guard bytes.count + places.count * MemoryLayout<RowBuffer.Place>.stride <= limit else {
      throw ViewError(
        .tooManyRows,
        "the rows take more than \(limit) bytes: set a limit or a range, or raise the query's memoryLimit",
        view: view)
    }
  }

  /// Filters and sorts the rows, then skips and limits them.
  mutating func choose(_ query: ViewQuery, _ encoder: ViewKeyEncoder) throws {
    let buffer = RowBuffer(bytes, places, highlights)
    var indexes = Array(places.indices)
    if let filter = query.filter { indexes = try indexes.filter { try filter(ViewRow(buffer, $0, store)) } }
    if !query.sort.isEmpty {
      let paths = try query.sort.map { (try SortPath($0.path), $0.isAscending) }
      let keys = try indexes.map { index in
        try paths.map { path, _ in
          try ViewSelection.encode(path.value(of: ViewRow(buffer, index, store)), encoder)
        }
      }
      let order = indexes.indices.sorted { left, right in
        for (place, (_, isAscending)) in paths.enumerated() {
          let (a, b) = (keys[left][place], keys[right][place])
          if a != b { return a.lexicographicallyPrecedes(b) == isAscending }
        }
        return left < right
      }
      indexes = order.map { indexes[$0] }
    }
    indexes = Array(indexes.dropFirst(max(0, query.skip)).prefix(query.limit > 0 ? query.limit : .max))
    places = indexes.map { places[$0] }
  }

  /// The rows, and as rows of that buffer.
  var finished: (RowBuffer, LazyMapSequence<Range<Int>, ViewRow>) {
    let buffer = RowBuffer(bytes, places, highlights)
    let store = store
    return (buffer, (0..<places.count).lazy.map { ViewRow(buffer, $0, store) })
  }
}

/// A path of `ViewSort`.
struct SortPath {
  private enum Step {
    case member(String)
    case item(Int)
  }

  private let root: String
  private var steps: [Step] = []

  init(_ path: String) throws {
    let invalid = ViewError(
      .invalidArgument,
      "rows can be sorted by key, value, documentID and paths like value.name or key[1], not by '\(path)'")
    var parts = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    func name(_ part: String) throws -> (String, [Int]) {
      guard let bracket = part.firstIndex(of: "[") else { return (part, []) }
      var indexes: [Int] = []
      for piece in part[bracket...].split(separator: "]", omittingEmptySubsequences: true) {
        guard piece.first == "[", let index = Int(piece.dropFirst()), index >= 0 else { throw invalid }
        indexes.append(index)
      }
      return (String(part[..<bracket]), indexes)
    }
    let (first, items) = try name(parts.removeFirst())
    guard ["key", "value", "documentID"].contains(first) else { throw invalid }
    root = first
    steps = items.map { .item($0) }
    for part in parts {
      let (member, items) = try name(part)
      guard !member.isEmpty else { throw invalid }
      steps.append(.member(member))
      steps += items.map { .item($0) }
    }
  }

  func value(of row: ViewRow) -> JSONValue {
    var value =
      root == "key" ? row.key : root == "value" ? row.value : row.documentID.map { .string($0) } ?? .null
    for step in steps {
      switch (step, value) {
      case (.member(let name), .object(let members)): value = members[name] ?? .null
      case (.item(let index), .array(let items)) where items.indices.contains(index): value = items[index]
      default: value = .null
      }
    }
    return value
  }
}

extension ReductionTree {
  /// Reduces the rows of several ranges to one result. Returns nil if there are none.
  func reduce(_ ranges: [KeyRange], in transaction: any ReadTransaction) throws -> [UInt8]? {
    let reader = ReductionReader(self, transaction, try reducer?.makeReduction())
    for range in ranges {
      let (from, to) = range.keys
      try reader.add(from: from, to: to)
    }
    guard reader.count > 0 else { return nil }
    var json: [UInt8] = []
    try reader.reduction?.result(to: &json)
    return json
  }
}
