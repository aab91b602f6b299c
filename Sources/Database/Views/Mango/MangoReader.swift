import Bytes
import Documents
import Fleece
import Storage

/// Reads the documents that a query chooses, in slices, and writes them as JSON.
///
/// Each slice is of a snapshot of its own, which ends before anything is sent. So whoever takes the answer slowly doesn't keep an engine
/// from using freed space again. An answer of one slice shows one moment. Used by one thread at a time.
package final class MangoReader {
  /// A slice ends when it has this many bytes, or when this many documents and keys were looked at.
  static let sliceBytes = 256 << 10
  private static let sliceSteps = 20_000

  package let plan: MangoPlan
  let indexes: ViewIndexes
  private let matcher: MangoMatcher
  private let fields: [MangoField]?
  /// The members of documents that the selector needs; nil: all.
  private let selectorNames: Set<ByteString>?
  /// The members that the answer needs.
  private let fieldNames: Set<ByteString>
  /// Runs each step that uses the database.
  package var around: (() throws -> Void) throws -> Void = { try $0() }
  /// Whether somebody waits for the answer: an update of an index ends otherwise.
  package var isWanted: () -> Bool = { true }
  /// Whether nobody waits for this answer any more. A slice ends then, also within a document.
  package var isCancelled: () -> Bool {
    get { matcher.isCancelled }
    set { matcher.isCancelled = newValue }
  }
  /// Only documents whose IDs begin with these bytes, those of the partition; nil: all.
  private let documentPrefix: [UInt8]?

  /// The documents of the last slice, with commas between them.
  package private(set) var text = JSONWriter(capacity: 4 << 10)
  package private(set) var isDone = false
  package private(set) var keysExamined = 0
  package private(set) var documentsExamined = 0
  package private(set) var results = 0

  private var steps = 0
  private var skip: Int
  /// The last row that was looked at: its key in the rows, or the ID.
  private var last: [UInt8]?
  private var lastResult: MangoBookmark?

  package init(_ plan: MangoPlan, _ indexes: ViewIndexes) throws {
    self.plan = plan
    self.indexes = indexes
    skip = plan.query.skip
    let partition = plan.query.partition
    documentPrefix = partition.isEmpty ? nil : Array(partition.utf8) + [UInt8(ascii: ":")]
    matcher = try MangoMatcher(plan.query.selector)
    fields = try plan.query.fields?.map { try MangoField($0) }
    selectorNames = plan.query.selector.names
    fieldNames = Set((fields ?? []).compactMap { $0.parts.first.map { ByteString($0) } })
  }

  /// Where the next answer may go on. CouchDB has the word "nil" for none.
  package var bookmark: String { lastResult?.text ?? plan.query.bookmarkText ?? "nil" }

  /// Reads the next slice: `text` has its documents afterwards.
  package func read() throws {
    text.removeAll()
    guard !plan.isEmpty, plan.query.limit > results, let index = plan.index else {
      isDone = true
      return
    }
    steps = 0
    if index.isOfAllDocuments { try around { try readAllDocuments() } } else { try readRows(index) }
  }

  /// Whether a scan goes on after a row. Everything was read if it comes to its own end, or if there are enough results.
  private func continueScan() -> Bool {
    guard !matcher.wasCancelled else {
      isDone = false
      return false
    }
    let isFull = results >= plan.query.limit
    let goesOn = !isFull && text.count < Self.sliceBytes && steps < Self.sliceSteps
    isDone = isFull || goesOn
    return goesOn
  }

  // MARK: All documents

  private func readAllDocuments() throws {
    let order: ScanOrder = plan.query.isDescending ? .descending : .ascending
    guard let range = idRange() else { return isDone = true }
    try indexes.store.read { snapshot in
      let writer = try writer(snapshot)
      let keys = try snapshot.sharedKeys
      isDone = true
      try snapshot.forEachDocument(in: range, order: order) { document in
        steps += 1
        // As in CouchDB, design documents aren't found.
        guard !document.idBytes.withUnsafeBytes({ $0.starts(with: DocumentID.designPrefix) }) else {
          return true
        }
        keysExamined += 1
        try take(document, keys, writer) { Array(OrderedJSON.scalar(.string(document.id)).jsonText) }
        let goesOn = continueScan()
        if !goesOn { last = [UInt8](copying: document.idBytes) }
        return goesOn
      }
    }
  }

  /// The IDs that are looked at next; nil if there are none.
  private func idRange() -> KeyRange? {
    var range = KeyRange.all
    let bounds = plan.ranges.first
    // Other values come before all IDs, or behind them; the selector sees to those.
    if let low = bounds?.lower?.operand.value.string { range.lower = .inclusive(Array(low.utf8)) }
    if let high = bounds?.upper?.operand.value {
      switch high {
      case .string(let high): range.upper = .inclusive(Array(high.utf8))
      case .array, .object: break
      default: return nil
      }
    }
    if let documentPrefix { range = range.intersection(prefix: documentPrefix) }
    let start = last ?? plan.query.bookmark.map { Array($0.id.utf8) }
    guard let start else { return range }
    if plan.query.isDescending { range.upper = .exclusive(start) } else { range.lower = .exclusive(start) }
    return range
  }

  // MARK: Rows of an index

  private func readRows(_ index: MangoIndex) throws {
    let name = ViewName.joined(index.design, index.name)
    let query = plan.query
    let updates = query.updates && !query.allowsStale
    var attempts = 0
    while true {
      if updates, last == nil { try around { try indexes.update(name, isWanted: isWanted) } }
      let version = try indexes.mapVersion(of: name)
      var isRead = false
      try around {
        try indexes.store.read { snapshot in
          guard let reader = try ViewReader(rowsOf: name, in: indexes, nil, snapshot),
            reader.record.mapVersion == version
          else { return }
          isRead = true
          try readRows(reader, index, snapshot)
        }
      }
      if isRead { return }
      guard updates, last == nil, attempts < 10 else { return isDone = true }
      attempts += 1
    }
  }

  private func readRows(_ reader: ViewReader, _ index: MangoIndex, _ snapshot: DocumentSnapshot) throws {
    let writer = try writer(snapshot)
    let keys = try snapshot.sharedKeys
    isDone = true
    try reader.forEachRow(try selection(), after: last) { row in
      last = [UInt8](copying: row.rowKey)
      steps += 1
      if let documentPrefix, !row.isOfDocument(documentPrefix) { return continueScan() }
      keysExamined += 1
      if plan.isCovered {
        take(try covered(row, index), row)
      } else {
        var id: [UInt8] = []
        StoredRow.unescape(row.escapedID, into: &id)
        let key = [UInt8](copying: row.keyJSON)
        _ = try snapshot.withDocument(id.span.bytes) { try take($0, keys, writer) { key } }
      }
      return continueScan()
    }
  }

  private func selection() throws -> ViewSelection {
    var selection = ViewSelection()
    selection.isDescending = plan.query.isDescending
    // As values, because members of objects in rows are in the order of their names.
    let low = ViewSelection.Bound(.array(plan.startKey))
    // An object with a name that comes behind all others ends the keys that begin with the bounds.
    let high = ViewSelection.Bound(.array(plan.endKey + [.object(["\u{FFFF}": .null])]))
    selection.start = selection.isDescending ? high : low
    selection.end = selection.isDescending ? low : high
    if let bookmark = plan.query.bookmark {
      let key = try bookmark.key.withUnsafeBytes { try JSONValue(json: $0) }
      selection.start = .init(key, documentID: bookmark.id, isInclusive: false)
    }
    return selection
  }

  /// What a row says of its document.
  private func covered(_ row: StoredRow, _ index: MangoIndex) throws -> OrderedJSON {
    var object: OrderedJSON = ["_id": .scalar(.string(row.documentID))]
    let key = try row.keyJSON.withUnsafeBytes { try JSONValue(json: $0) }
    for (column, value) in zip(index.columns, key.array ?? []) { column.field.set(value, in: &object) }
    return object
  }

  private func take(_ object: OrderedJSON, _ row: StoredRow) {
    let value = object.value
    guard matcher.matches(value) else { return }
    guard skip == 0 else { return skip -= 1 }
    lastResult = MangoBookmark(key: [UInt8](copying: row.keyJSON), id: row.documentID)
    append(value)
  }

  // MARK: Documents

  private func writer(_ snapshot: DocumentSnapshot) throws -> CouchDBDocumentWriter {
    var options = CouchDBDocumentOptions()
    options.includesConflicts = plan.query.includesConflicts
    return try CouchDBDocumentWriter(snapshot, options)
  }

  /// Takes a document if it passes. `key` gives the JSON of its key in the index.
  private func take(
    _ document: DocumentView, _ sharedKeys: SharedKeys, _ writer: CouchDBDocumentWriter, key: () -> [UInt8]
  ) throws {
    documentsExamined += 1
    if matcher.needsBodyAlone {
      guard try matcher.matches(id: document.idBytes, document.body, sharedKeys) else { return }
    } else {
      guard matcher.matches(try value(of: document, selectorNames, sharedKeys, writer)) else { return }
    }
    guard skip == 0 else { return skip -= 1 }
    lastResult = MangoBookmark(key: key(), id: document.id)
    guard fields == nil else { return append(try value(of: document, fieldNames, sharedKeys, writer)) }
    begin()
    try writer.append(document, to: &text)
  }

  /// The members with these names, or all.
  private func value(
    of document: DocumentView, _ names: Set<ByteString>?, _ sharedKeys: SharedKeys,
    _ writer: CouchDBDocumentWriter
  ) throws -> JSONValue {
    if let names, !names.contains("_attachments") {
      return try MangoInput.value(of: document, names, sharedKeys, conflicts: plan.query.includesConflicts)
    }
    var json = JSONWriter()
    try writer.append(document, to: &json)
    return try json.withBytes { try JSONValue(json: $0) }
  }

  /// Appends the wanted fields of a document.
  private func append(_ document: JSONValue) {
    begin()
    MangoField.choose(fields ?? [], of: document).write(to: &text)
  }

  private func begin() {
    let separator: StaticString = results > 0 ? ",\r\n" : "\r\n"
    separator.withUTF8Buffer { text.append(json: UnsafeRawBufferPointer($0)) }
    results += 1
  }
}

extension ViewIndexes {
  /// The indexes of `_find`, with the list of all documents. Who knows whether the database has partitions says so: that saves a read.
  package func mangoIndexes(inPartitionedDatabase: Bool? = nil) throws -> [MangoIndex] {
    var indexes = [try MangoIndex.allDocuments()]
    let isPartitioned = try inPartitionedDatabase ?? store.isPartitioned()
    try store.read { snapshot in
      try snapshot.forEachDesign { name, body in
        indexes += MangoIndex.all(
          designID: DesignDocument.idPrefix + name, body, inPartitionedDatabase: isPartitioned)
      }
    }
    return indexes
  }

  /// How a query finds its documents. Throws CouchDB's errors if it can't; with `explains`, that is a plan, too.
  package func mangoPlan(
    _ query: MangoQuery, inPartitionedDatabase: Bool? = nil, explains: Bool
  ) throws -> MangoPlan {
    let isPartitioned = try inPartitionedDatabase ?? store.isPartitioned()
    return try MangoPlan(
      query, mangoIndexes(inPartitionedDatabase: isPartitioned), inPartitionedDatabase: isPartitioned,
      explains: explains)
  }

  /// What names the map function of a view as it is now.
  fileprivate func mapVersion(of name: String) throws -> [UInt8] {
    try group(of: name).members.first { $0.name.hasSameBytes(as: name) }?.mapVersion ?? []
  }
}
