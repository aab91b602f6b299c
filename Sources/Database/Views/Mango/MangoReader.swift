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
  /// After so many documents it is decided how the others are read.
  private static let probedDocuments = 1_000
  /// How often a plan is made while others change the index.
  private static let mostPlans = 10
  /// How often the rows are updated while others change the documents or the index.
  private static let mostUpdates = 10

  /// It is made again if the design document of its index changes before the first row is read.
  @exclusivity(unchecked) package private(set) var plan: MangoPlan
  let indexes: ViewIndexes
  private let matcher: MangoMatcher
  private let fields: [MangoField]?
  /// Whether none of them is a path, and each is named once.
  private let hasPlainFields: Bool
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
  @exclusivity(unchecked) package private(set) var text = JSONWriter(capacity: 4 << 10)
  @exclusivity(unchecked) package private(set) var isDone = false
  @exclusivity(unchecked) package private(set) var keysExamined = 0
  @exclusivity(unchecked) package private(set) var documentsExamined = 0
  @exclusivity(unchecked) package private(set) var results = 0

  @exclusivity(unchecked) private var steps = 0
  @exclusivity(unchecked) private var mostSteps = MangoReader.sliceSteps
  @exclusivity(unchecked) private var skip: Int
  /// The last row that was looked at: its key in the rows, or the ID.
  private var last: [UInt8]?
  /// The last result's ID, and the JSON of its key in the index, which is empty without an index.
  private var lastID: [UInt8] = []
  private var lastKey: [UInt8] = []
  /// The map function of the rows that are read; nil before the first slice.
  private var rowsVersion: [UInt8]?
  /// What a scan in the engine's own order has found and isn't in an answer yet.
  private var found: FoundIDs?
  /// Whether it is known that the engine's own order is about that of the IDs.
  private var isStoredByID = false

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
    hasPlainFields =
      (fields ?? []).allSatisfy { $0.parts.count == 1 } && fieldNames.count == (fields ?? []).count
  }

  /// Where the next answer may go on. CouchDB has the word "nil" for none.
  package var bookmark: String {
    guard results > 0 else { return plan.query.bookmarkText ?? "nil" }
    let id = String(decoding: lastID, as: UTF8.self)
    return MangoBookmark(key: lastKey.isEmpty ? Array(id.jsonText.utf8) : lastKey, id: id).text
  }

  /// Reads the next slice: `text` has its documents afterwards.
  package func read() throws {
    text.removeAll()
    steps = 0
    for _ in 0..<Self.mostPlans {
      guard !plan.isEmpty, plan.query.limit > results, let index = plan.index else { return isDone = true }
      if index.isOfAllDocuments { return try around { try readAllDocuments() } }
      if try readRows(index) { return }
      // The rest would be of other rows.
      guard rowsVersion == nil else { break }
      try around { plan = try indexes.mangoPlan(plan.query, explains: false) }
    }
    throw ViewError(.busy, "the index of the query has changed while its rows were read")
  }

  /// Whether a scan goes on after a row. Everything was read if it comes to its own end, or if there are enough results.
  private func continueScan() -> Bool {
    guard !matcher.wasCancelled else {
      isDone = false
      return false
    }
    let isFull = results >= plan.query.limit
    let goesOn = !isFull && text.count < Self.sliceBytes && steps < mostSteps
    isDone = isFull || goesOn
    return goesOn
  }

  // MARK: All documents

  private func readAllDocuments() throws {
    let order: ScanOrder = plan.query.isDescending ? .descending : .ascending
    guard let bounds = idBounds() else { return isDone = true }
    let mayUseStoredOrder = bounds == .all && !isStoredByID
    try indexes.store.read { snapshot in
      let writer = try writer(snapshot)
      let keys = try snapshot.sharedKeys
      if found == nil {
        mostSteps = mayUseStoredOrder && last == nil ? Self.probedDocuments : Self.sliceSteps
        try scan(in: range(bounds), order, snapshot, keys, writer)
        guard mayUseStoredOrder, !isDone, !matcher.wasCancelled, text.count < Self.sliceBytes,
          try isFasterInStoredOrder(snapshot)
        else { return }
        mostSteps = Self.sliceSteps
        found = try find(behind: last ?? [], snapshot, keys, writer)
        guard !matcher.wasCancelled else { return found = nil }
      }
      try takeFound(snapshot, keys, writer)
    }
  }

  private func scan(
    in range: KeyRange, _ order: ScanOrder, _ snapshot: DocumentSnapshot, _ keys: SharedKeys,
    _ writer: CouchDBDocumentWriter
  ) throws {
    isDone = true
    try snapshot.forEachDocument(in: range, order: order) { document in
      steps += 1
      // As in CouchDB, design documents aren't found.
      guard !Self.isDesign(document) else { return true }
      keysExamined += 1
      documentsExamined += 1
      if try matches(document, keys, writer) { try accept(document, keys, writer) }
      let goesOn = continueScan()
      if !goesOn { last = [UInt8](copying: document.idBytes) }
      return goesOn
    }
  }

  private static func isDesign(_ document: DocumentView) -> Bool {
    document.idBytes.withUnsafeBytes { $0.starts(with: DocumentID.designPrefix) }
  }

  /// The IDs that the selector allows; nil if there are none.
  private func idBounds() -> KeyRange? {
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
    return range
  }

  /// Those that are looked at next.
  private func range(_ bounds: KeyRange) -> KeyRange {
    var range = bounds
    let start = last ?? plan.query.bookmark.map { Array($0.id.utf8) }
    guard let start else { return range }
    if plan.query.isDescending { range.upper = .exclusive(start) } else { range.lower = .exclusive(start) }
    return range
  }

  // MARK: The engine's own order

  // If few documents pass, most of the time goes into reading those that don't. Where documents were saved in another order than that of their
  // IDs, some engines read them several times as fast in that order. So the IDs of those that pass are found in it and sorted.

  /// IDs that were found, in the order of the answer.
  private struct FoundIDs {
    /// The most of one scan.
    static let most = 10_000
    /// How many documents are read in the engine's order while one is read by its ID.
    static let gain = 8.0

    var ids: [[UInt8]]
    var next = 0
    /// Whether no other document passes.
    var isWhole: Bool
  }

  /// How many documents are still wanted of a scan.
  private var wanted: Int {
    let (wanted, isTooMany) = (plan.query.limit - results).addingReportingOverflow(skip)
    return isTooMany ? FoundIDs.most : min(wanted, FoundIDs.most)
  }

  /// Whether a scan of all documents in the engine's order takes less than going on by ID, as far as the documents so far tell.
  private func isFasterInStoredOrder(_ snapshot: DocumentSnapshot) throws -> Bool {
    let passed = results + plan.query.skip - skip
    let rate = Double(passed + 1) / Double(documentsExamined + 1)
    let count = Double(try snapshot.count(of: .documents))
    guard count < FoundIDs.gain * min(Double(wanted) / rate, count - Double(documentsExamined)) else {
      return false
    }
    isStoredByID = try isStoredByID(snapshot)
    return !isStoredByID
  }

  /// Whether most of the first documents in the engine's order are in that of their IDs. Then a scan by ID reads the same pages in the same
  /// order.
  private func isStoredByID(_ snapshot: DocumentSnapshot) throws -> Bool {
    var previous: [UInt8] = []
    var (count, ascending) = (0, 0)
    try snapshot.forEachDocument(order: .stored) { document in
      let id = [UInt8](copying: document.idBytes)
      if previous.lexicographicallyPrecedes(id) { ascending += 1 }
      previous = id
      count += 1
      return count < Self.probedDocuments
    }
    return ascending * 10 > count * 9
  }

  /// Finds the next documents that pass behind an ID.
  private func find(
    behind start: [UInt8], _ snapshot: DocumentSnapshot, _ keys: SharedKeys, _ writer: CouchDBDocumentWriter
  ) throws -> FoundIDs {
    let (isDescending, most) = (plan.query.isDescending, wanted)
    var found = FoundIDs(ids: [], isWhole: true)
    func cut() {
      found.ids.sort { $0.lexicographicallyPrecedes($1) != isDescending }
      guard found.ids.count > most else { return }
      found.ids.removeLast(found.ids.count - most)
      found.isWhole = false
    }
    try snapshot.forEachDocument(order: .stored) { document in
      let order = start.withUnsafeBytes { start in
        document.idBytes.withUnsafeBytes { compareBytes($0, start) }
      }
      guard isDescending ? order < 0 : order > 0, !Self.isDesign(document) else { return true }
      keysExamined += 1
      documentsExamined += 1
      if try matches(document, keys, writer) {
        found.ids.append([UInt8](copying: document.idBytes))
        if found.ids.count >= 2 * FoundIDs.most { cut() }
      }
      return !matcher.wasCancelled
    }
    cut()
    return found
  }

  /// Takes documents that were found, as far as they still pass.
  private func takeFound(
    _ snapshot: DocumentSnapshot, _ keys: SharedKeys, _ writer: CouchDBDocumentWriter
  ) throws {
    isDone = false
    while var found, found.next < found.ids.count {
      let id = found.ids[found.next]
      found.next += 1
      self.found = found
      last = id
      steps += 1
      _ = try snapshot.withDocument(id.span.bytes) { document in
        if try matches(document, keys, writer) { try accept(document, keys, writer) }
      }
      guard continueScan() else { return }
    }
    isDone = found?.isWhole ?? false
    found = nil
  }

  // MARK: Rows of an index

  /// What a snapshot has of the rows that a plan is about.
  private enum Rows {
    /// They were read.
    case read
    /// They have to be updated first.
    case old
    /// They are of another index of that name, or of none.
    case others
  }

  /// Reads the next rows. Returns false if there are no more rows of this index as it was when the plan was made, or when the first
  /// slice was read.
  private func readRows(_ index: MangoIndex) throws -> Bool {
    let name = ViewName.joined(index.design, index.name)
    let updates = plan.query.updates && !plan.query.allowsStale
    do {
      if !updates { try around { try indexes.compile(viewNamed: name) } }
      for attempt in 0...Self.mostUpdates {
        var rows = Rows.old
        try around {
          try indexes.store.read {
            rows = try readRows(of: name, index, isUpdated: attempt > 0 || !updates, $0)
          }
        }
        switch rows {
        case .read: return true
        case .others: return false
        case .old:
          // A view that was never updated has no rows for those who don't update it.
          guard updates else {
            isDone = true
            return true
          }
          try around { try indexes.update(name, isWanted: isWanted) }
        }
      }
    } catch let error as ViewError where error.code == .notFound { return false }
    return false
  }

  /// Reads rows that are new enough; if `isUpdated`, any of the index's map function.
  private func readRows(
    of name: String, _ index: MangoIndex, isUpdated: Bool, _ snapshot: DocumentSnapshot
  ) throws -> Rows {
    if let rowsVersion {
      guard let reader = try ViewReader(rowsOf: name, in: indexes, nil, snapshot),
        reader.record.mapVersion == rowsVersion
      else { return .others }
      try readRows(reader, index, snapshot)
      return .read
    }
    guard let design = try indexes.compiledDesign(ofView: name, in: snapshot) else {
      return try indexes.hasDesign(index, in: snapshot) ? .old : .others
    }
    guard design.revisionID == index.revisionID else { return .others }
    guard let member = design.members.first(where: { $0.name.hasSameBytes(as: name) }),
      let reader = try ViewReader(rowsOf: name, in: indexes, nil, snapshot),
      try reader.record.isFresh(member, in: snapshot)
        || isUpdated && reader.record.mapVersion == member.mapVersion
    else { return .old }
    rowsVersion = reader.record.mapVersion
    try readRows(reader, index, snapshot)
    return .read
  }

  private func readRows(_ reader: ViewReader, _ index: MangoIndex, _ snapshot: DocumentSnapshot) throws {
    let writer = try writer(snapshot)
    let keys = try snapshot.sharedKeys
    let isCovered = plan.isCovered
    let covered = isCovered ? coveredRows(index) : nil
    var id: [UInt8] = []
    isDone = true
    try reader.forEachRow(try selection(), after: last) { row in
      steps += 1
      id.removeAll(keepingCapacity: true)
      StoredRow.unescape(row.escapedID, into: &id)
      if documentPrefix.map({ id.starts(with: $0) }) ?? true {
        keysExamined += 1
        if let covered {
          if try covered.passes(key: row.keyJSON, id: id), wants(id.span.bytes, key: row.keyJSON) {
            begin()
            try covered.append(id: id, to: &text)
          }
        } else if isCovered {
          let value = try Self.value(of: row, index)
          if matcher.matches(value), wants(id.span.bytes, key: row.keyJSON) { append(value) }
        } else {
          _ = try snapshot.withDocument(id.span.bytes) { document in
            documentsExamined += 1
            if try matches(document, keys, writer) { try accept(document, keys, writer, key: row.keyJSON) }
          }
        }
      }
      let goesOn = continueScan()
      if !goesOn { last = [UInt8](copying: row.rowKey) }
      return goesOn
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

  /// Nil if a column or a field is a path.
  private func coveredRows(_ index: MangoIndex) -> CoveredRows? {
    guard hasPlainFields, let fields, index.columns.allSatisfy({ $0.field.parts.count == 1 }) else {
      return nil
    }
    return CoveredRows(index, plan.query.selector, fields: fields.map { $0.parts[0] }, matcher)
  }

  /// What a row of an index with paths says of its document.
  private static func value(of row: StoredRow, _ index: MangoIndex) throws -> JSONValue {
    let key = try row.keyJSON.withUnsafeBytes { try JSONValue(json: $0) }
    var object: OrderedJSON = ["_id": .scalar(.string(row.documentID))]
    for (column, value) in zip(index.columns, key.array ?? []) { column.field.set(value, in: &object) }
    return object.value
  }

  // MARK: Documents

  private func writer(_ snapshot: DocumentSnapshot) throws -> CouchDBDocumentWriter {
    var options = CouchDBDocumentOptions()
    options.includesConflicts = plan.query.includesConflicts
    return try CouchDBDocumentWriter(snapshot, options)
  }

  private func matches(
    _ document: DocumentView, _ sharedKeys: SharedKeys, _ writer: CouchDBDocumentWriter
  ) throws -> Bool {
    guard !matcher.needsBodyAlone else {
      return try matcher.matches(id: document.idBytes, document.body, sharedKeys)
    }
    return matcher.matches(try value(of: document, selectorNames, sharedKeys, writer))
  }

  /// Whether a document that passes belongs into the answer. Then it is the last result. `key` is the JSON of its key in the index; it is
  /// empty without an index.
  private func wants(_ id: RawSpan, key: RawSpan) -> Bool {
    guard skip == 0 else {
      skip -= 1
      return false
    }
    lastID.removeAll(keepingCapacity: true)
    id.withUnsafeBytes { lastID.append(contentsOf: $0) }
    lastKey.removeAll(keepingCapacity: true)
    key.withUnsafeBytes { lastKey.append(contentsOf: $0) }
    return true
  }

  /// Takes a document that passes.
  private func accept(
    _ document: DocumentView, _ sharedKeys: SharedKeys, _ writer: CouchDBDocumentWriter,
    key: RawSpan = RawSpan()
  ) throws {
    guard wants(document.idBytes, key: key) else { return }
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
    guard hasPlainFields, let object = document.object else {
      return MangoField.choose(fields ?? [], of: document).write(to: &text)
    }
    text.append(byte: UInt8(ascii: "{"))
    var isFirst = true
    for field in fields ?? [] {
      guard let value = object[field.parts[0]] else { continue }
      if !isFirst { text.append(byte: UInt8(ascii: ",")) }
      isFirst = false
      text.append(string: field.parts[0])
      text.append(byte: UInt8(ascii: ":"))
      OrderedJSON(sorting: value).write(to: &text)
    }
    text.append(byte: UInt8(ascii: "}"))
  }

  private func begin() {
    let separator: StaticString = results > 0 ? ",\r\n" : "\r\n"
    separator.withUTF8Buffer { text.append(json: UnsafeRawBufferPointer($0)) }
    results += 1
  }
}
