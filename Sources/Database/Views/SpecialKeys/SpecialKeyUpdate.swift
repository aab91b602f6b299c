import Bytes
import FullText
import Storage

/// Keeps the indexes of special keys while rows come, go and change. One thread, one transaction.
///
/// What is in an index follows from the rows alone: a row's bytes say which entry it has. A view whose rows have no
/// special keys has no such keyspaces.
final class SpecialKeyUpdate {
  private let record: ViewRecord
  private let transaction: any WriteTransaction
  private var boxes: LongKeyspace?
  private var texts: InvertedIndexWriter?
  /// The analysis of the index of texts; empty if there is none.
  private(set) var analysis: [UInt8]
  private var key = ByteBuffer(capacity: 512)
  private var value = ByteBuffer(capacity: 32)

  init(_ record: ViewRecord, in transaction: any WriteTransaction) {
    self.record = record
    self.transaction = transaction
    analysis = record.analysis
  }

  /// Replaces what a row has in the indexes. `old` and `new` are the values of the row; nil if there is none.
  @inline(__always)
  func replace(_ rowKey: RawSpan, old: RawSpan?, new: RawSpan?) throws {
    var isSpecial = false
    if let old { isSpecial = StoredRow.isSpecial(old) }
    if let new { isSpecial = isSpecial || StoredRow.isSpecial(new) }
    if isSpecial { try replaceSpecial(rowKey, old: old, new: new) }
  }

  private func replaceSpecial(_ rowKey: RawSpan, old oldValue: RawSpan?, new newValue: RawSpan?) throws {
    var old: SpecialEntry?
    var new: SpecialEntry?
    if let oldValue { old = try SpecialEntry(rowKey, oldValue) }
    if let newValue { new = try SpecialEntry(rowKey, newValue) }
    let row = (new ?? old)?.row ?? []
    if let rect = old?.rect, new?.rect != rect {
      setEntry(rect, row)
      guard try boxKeyspace().delete(key.bytes.bytes, in: transaction) else {
        throw StorageError(.damaged, "a box that a row of a view has is missing in the index of boxes")
      }
    }
    if let rect = new?.rect, old?.rect != rect {
      setEntry(rect, row)
      try boxKeyspace().put(key.bytes.bytes, value.bytes.bytes, in: transaction)
    }
    if old?.text != nil || new?.text != nil {
      let writer = try textWriter()
      try row.withUnsafeBytes { row in
        try withBytes(of: old?.text) { old in
          try withBytes(of: new?.text) { new in try writer.update(row, old: old, new: new, in: transaction) }
        }
      }
    }
  }

  private func withBytes<Result>(
    of text: [UInt8]?, _ body: ([UnsafeRawBufferPointer]) throws -> Result
  ) rethrows -> Result {
    guard let text else { return try body([]) }
    return try text.withUnsafeBytes { try body([$0]) }
  }

  private func setEntry(_ rect: GeoRect, _ row: [UInt8]) {
    key.removeAll()
    value.removeAll()
    GeoEntry.appendKey(rect, row: row.span.bytes, to: &key)
    GeoEntry.appendValue(rect, to: &value)
  }

  /// Loads the entries of all rows of a view that has none. The rows are in order.
  func load(_ rows: MappedRows, _ sorted: ContiguousArray<Int>) throws {
    var entries: [(key: [UInt8], value: [UInt8])] = []
    for index in sorted {
      let row = rows.rows[index]
      let value = rows.value(row).bytes
      guard StoredRow.isSpecial(value) else { continue }
      let entry = try SpecialEntry(rows.rowKey(row).bytes, value)
      if let rect = entry.rect {
        setEntry(rect, entry.row)
        entries.append(([UInt8](key.bytes), [UInt8](self.value.bytes)))
      }
      if let text = entry.text {
        // Special keys are all null, so their rows are in the order of the documents.
        let writer = try texts ?? createTexts()
        texts = writer
        if writer.isFull { try writer.finish(in: transaction) }
        try entry.row.withUnsafeBytes { row in
          try text.withUnsafeBytes { try writer.append(row, [$0], in: transaction) }
        }
      }
    }
    if !entries.isEmpty {
      entries.sort { left, right in
        left.key.withUnsafeBytes { left in right.key.withUnsafeBytes { compareBytes(left, $0) < 0 } }
      }
      try boxKeyspace().load(in: transaction) { append in
        for entry in entries { try append(entry.key.span.bytes, entry.value.span.bytes) }
      }
    }
    try finish()
  }

  /// Writes what waits.
  func finish() throws { try texts?.finish(in: transaction) }

  private func boxKeyspace() throws -> LongKeyspace {
    if let boxes { return boxes }
    let keyspace: Keyspace
    if let known = try transaction.keyspace(named: record.boxesName) {
      keyspace = known
    } else {
      try ViewRecord.checkRoom(for: 1, view: nil, in: transaction)
      keyspace = try transaction.createKeyspace(record.boxesName, shape: .entries)
    }
    let opened = LongKeyspace(keyspace)
    boxes = opened
    return opened
  }

  private func textWriter() throws -> InvertedIndexWriter {
    if let texts { return texts }
    if try transaction.keyspace(named: record.textName) == nil {
      try ViewRecord.checkRoom(for: 2, view: nil, in: transaction)
      try createTexts().finish(in: transaction)
    }
    let writer = try InvertedIndexWriter(
      named: record.textName, analyzer: TextAnalyzer(record.textOptions), in: transaction)
    texts = writer
    return writer
  }

  private func createTexts() throws -> InvertedIndexWriter {
    analysis = Array(AnalysisVersion.text(of: record.textOptions).utf8)
    return try InvertedIndexWriter.create(
      named: record.textName, columns: 1, analyzer: TextAnalyzer(record.textOptions), in: transaction)
  }
}

/// What a row has in the indexes of special keys.
struct SpecialEntry {
  /// The end of the row's key.
  let row: [UInt8]
  private(set) var rect: GeoRect?
  private(set) var text: [UInt8]?

  init(_ rowKey: RawSpan, _ value: RawSpan) throws {
    let stored = try StoredRow(rowKey, value)
    row = [UInt8](copying: stored.end)
    switch stored.specialKind {
    case .none: break
    case .box: rect = try GeoRect(stored: stored.special)
    case .text: text = [UInt8](copying: stored.special)
    }
  }
}
