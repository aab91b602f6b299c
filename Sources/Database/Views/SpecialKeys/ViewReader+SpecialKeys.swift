import Bytes
import Documents
import FullText
import Storage

extension ViewReader {
  /// Collects the rows of a query of an index of special keys: of the places first, if it asks for both.
  func collectSpecial(_ query: ViewQuery, _ selection: ViewSelection, into collector: inout RowCollector)
    throws
  {
    if let area = query.boundingBox {
      try collect(area, query, selection, into: &collector)
    } else if let text = query.fullTextQuery {
      try collect(text, query, selection, into: &collector)
    }
  }

  // MARK: Boxes

  private func collect(
    _ area: GeoRect, _ query: ViewQuery, _ selection: ViewSelection, into collector: inout RowCollector
  ) throws {
    guard area.x0 <= area.x1, area.y0 <= area.y1 else {
      throw ViewError(
        .invalidArgument,
        "the corners of a bounding box must be numbers in order, x0 ≤ x1 and y0 ≤ y1, not \(area)",
        view: name)
    }
    var found = OrderedMatches(memoryLimit: query.memoryLimit, view: name)
    if selection.grouping == nil { found.keep(selection) }
    if let boxes = try transaction.keyspace(named: record.boxesName) {
      let search = GeoSearch(boxes: LongKeyspace(boxes), area: area)
      try search.forEach(in: transaction, check: checkCancellation) { entry in
        try found.append(entry.orderKey)
        return true
      }
    }
    found.finish(selection)
    guard selection.grouping != nil else {
      for key in found.keys { try add(rowEnding: key[GeoEntry.rowOffset...], to: &collector) }
      return
    }
    // All keys are null: there is one group.
    guard !found.keys.isEmpty, selection.skip == 0, selection.limit != 0 else { return }
    guard let reduction = try tree.reducer?.makeReduction() else {
      return try collector.add(key: Array("null".utf8), reduced: nil)
    }
    do {
      for key in found.keys {
        try withRow(ending: key[GeoEntry.rowOffset...]) { try reduction.add($0, expanding: tree.expanding) }
      }
      var json: [UInt8] = []
      try reduction.result(to: &json)
      try collector.add(key: Array("null".utf8), reduced: json)
    } catch let error as ViewReduceError {
      throw ViewError(.reduceFailed, error.message, view: name, documentID: error.documentID)
    }
  }

  // MARK: Texts

  private func collect(
    _ text: String, _ query: ViewQuery, _ selection: ViewSelection, into collector: inout RowCollector
  ) throws {
    let options = record.textOptions
    let match: MatchQuery
    do {
      match = try TextAnalyzers.withAnalyzer(options) {
        try MatchQuery(parsing: text, columns: ["content"], analyzer: $0)
      }
    } catch let error as MatchError {
      throw ViewError(.invalidArgument, "the full-text query can't be read: \(error)", view: name)
    }
    collector.highlights = TextHighlights(match, options, hasSnippets: query.fullTextSnippets)
    guard try transaction.keyspace(named: record.textName) != nil else { return }
    let reader = try InvertedIndexReader(named: record.textName, in: transaction)
    reader.check = checkCancellation
    var taken = 0
    let (limit, name) = (query.memoryLimit, name)
    reader.take = { bytes in
      taken += bytes
      guard taken <= limit else { throw OrderedMatches.tooMany(limit, name) }
    }
    let search = try MatchSearch(match, in: reader)
    var found = OrderedMatches(memoryLimit: limit, view: name)
    found.keep(selection)
    if query.fullTextRanking {
      if let count = found.kept, !selection.isDescending {
        try search.forEachBest(count) { row, rank in
          try found.append(OrderedMatches.number(descending: rank), row)
          return true
        }
      } else {
        try search.forEachRanked { row, rank in
          try found.append(OrderedMatches.number(descending: rank), row)
          return true
        }
      }
    } else {
      // The rows give their sequences, so they are read after the search.
      var rows: [[UInt8]] = []
      try search.forEach { row in
        rows.append([UInt8](copying: row))
        taken += row.byteCount + 32
        guard taken <= limit else { throw OrderedMatches.tooMany(limit, name) }
        return true
      }
      for row in rows {
        var sequence: UInt64 = 0
        try withRow(ending: row[...]) { sequence = $0.sequence }
        try found.append(sequence, row.span.bytes)
      }
    }
    found.finish(selection)
    for key in found.keys { try add(rowEnding: key[8...], to: &collector) }
  }

  // MARK: Rows

  private func checkCancellation() throws { _ = try snapshot.storage }

  /// Lends the row whose key ends so.
  private func withRow(ending end: ArraySlice<UInt8>, _ body: (borrowing StoredRow) throws -> Void) throws {
    let key = try ViewSelection.encode(.null, encoder) + end
    let isThere = try tables.rows.read(key.span.bytes, in: transaction) { value in
      try body(StoredRow(key.span.bytes, value))
    }
    guard isThere else { throw ViewError(.damaged, "a row that an index names is missing", view: name) }
  }

  private func add(rowEnding end: ArraySlice<UInt8>, to collector: inout RowCollector) throws {
    try withRow(ending: end) { row in
      if row.kind == .document {
        let document = try DocumentValue.json(of: row, in: snapshot)
        try collector.add(row, value: document.span.bytes, keepsSpecial: true)
      } else {
        try collector.add(row, value: row.valueJSON, keepsSpecial: true)
      }
    }
  }
}

/// What a search finds, until it is in order: bytes whose order is that of the results.
struct OrderedMatches {
  private(set) var keys: [[UInt8]] = []
  private let memoryLimit: Int
  private let view: String
  private var bytes = 0
  private var isDescending = false
  /// The number of matches that are wanted in all; nil for all.
  private(set) var kept: Int?

  init(memoryLimit: Int, view: String) {
    self.memoryLimit = memoryLimit
    self.view = view
  }

  static func tooMany(_ limit: Int, _ view: String) -> ViewError {
    ViewError(
      .tooManyRows,
      "the matches take more than \(limit) bytes: set a limit, or raise the query's memoryLimit", view: view)
  }

  /// The bits of a rank, the highest rank first. Ranks aren't negative.
  static func number(descending rank: Double) -> UInt64 { ~rank.bitPattern }

  /// Keeps no more matches than a selection needs.
  mutating func keep(_ selection: ViewSelection) {
    isDescending = selection.isDescending
    kept = selection.limit.map { limit in
      let (sum, isOver) = limit.addingReportingOverflow(selection.skip)
      return isOver ? .max : sum
    }
  }

  mutating func append(_ number: UInt64, _ row: RawSpan) throws {
    var key = [UInt8]()
    key.reserveCapacity(8 + row.byteCount)
    withUnsafeBytes(of: number.bigEndian) { key.append(contentsOf: $0) }
    row.withUnsafeBytes { key.append(contentsOf: $0) }
    try append(key)
  }

  mutating func append(_ key: RawSpan) throws { try append([UInt8](copying: key)) }

  private mutating func append(_ key: [UInt8]) throws {
    keys.append(key)
    bytes += key.count + 40
    if let kept, kept < Int.max / 4, keys.count >= 2 * kept + 1_024 { cut(kept) }
    if bytes > memoryLimit { throw OrderedMatches.tooMany(memoryLimit, view) }
  }

  private mutating func cut(_ count: Int) {
    sort()
    keys.removeSubrange(min(count, keys.count)...)
    bytes = keys.reduce(0) { $0 + $1.count + 40 }
  }

  private mutating func sort() {
    let isDescending = isDescending
    keys.sort { left, right in
      let order = left.withUnsafeBytes { left in right.withUnsafeBytes { compareBytes(left, $0) } }
      return isDescending ? order > 0 : order < 0
    }
  }

  /// Puts the matches in order. Skips and limits them, unless they are to be reduced.
  mutating func finish(_ selection: ViewSelection) {
    isDescending = selection.isDescending
    sort()
    guard selection.grouping == nil else { return }
    keys = Array(keys.dropFirst(selection.skip).prefix(selection.limit ?? .max))
  }
}
