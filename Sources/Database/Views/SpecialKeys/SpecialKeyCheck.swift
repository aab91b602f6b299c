import Bytes
import FullText
import Storage

/// Compares the indexes of special keys with the rows of a view.
struct SpecialKeyCheck {
  private let tables: ViewTables
  private let transaction: any ReadTransaction

  init(_ tables: ViewTables, in transaction: any ReadTransaction) {
    self.tables = tables
    self.transaction = transaction
  }

  /// Calls `step` for each row that is read, and `report` with each fault.
  func run(step: () throws -> Void, report: (String) throws -> Void) throws {
    let record = tables.record
    let boxes = try transaction.keyspace(named: record.boxesName).map { LongKeyspace($0) }
    let texts = try textCheck(report)
    var expected = 0
    var key = ByteBuffer(capacity: 512)
    var value = ByteBuffer(capacity: 32)
    try tables.rows.scan(.all, in: transaction) { rowKey, rowValue in
      try step()
      guard StoredRow.isSpecial(rowValue) else { return true }
      let entry = try SpecialEntry(rowKey, rowValue)
      if let rect = entry.rect {
        expected += 1
        key.removeAll()
        value.removeAll()
        GeoEntry.appendKey(rect, row: entry.row.span.bytes, to: &key)
        GeoEntry.appendValue(rect, to: &value)
        var isEqual = false
        _ = try boxes?.read(key.bytes.bytes, in: transaction) { isEqual = $0.isEqual(to: value.bytes.bytes) }
        if !isEqual {
          try report("the index of boxes lacks the box of a row of the document '\(entry.documentID)'")
        }
      }
      if let text = entry.text {
        if let texts {
          let fault = try entry.row.withUnsafeBytes { row in
            try text.withUnsafeBytes { try texts.add(row, [$0]) }
          }
          if let fault { try report("the index of texts \(fault)") }
        } else if record.analysis.isEmpty {
          try report("there is no index of texts for the row of the document '\(entry.documentID)'")
        }
      }
      return true
    }
    try texts?.finish { try report("the index of texts \($0)") }
    guard let boxes else { return }
    var stored = 0
    try boxes.scan(.all, fetch: .keys, in: transaction) { _, _ in
      stored += 1
      return true
    }
    if stored != expected {
      try report("the index of boxes has \(stored) boxes, but the rows have \(expected)")
    }
    for fault in try boxes.check(in: transaction) { try report("the index of boxes: \(fault)") }
  }

  /// Nil if there is no index of texts, or one of another analysis, which is made again before the next query.
  private func textCheck(_ report: (String) throws -> Void) throws -> InvertedIndexCheck? {
    let record = tables.record
    guard try transaction.keyspace(named: record.textName) != nil else {
      if !record.analysis.isEmpty { try report("there is no keyspace \(record.textName)") }
      return nil
    }
    let reader = try InvertedIndexReader(named: record.textName, in: transaction)
    let analysis = String(decoding: record.analysis, as: UTF8.self)
    if reader.analysis != analysis {
      try report("the index of texts was made by '\(reader.analysis)', not by '\(analysis)'")
    }
    guard reader.analysis == AnalysisVersion.text(of: record.textOptions) else { return nil }
    return try InvertedIndexCheck(reader, analyzer: TextAnalyzer(record.textOptions))
  }
}

extension SpecialEntry {
  /// The document of the row.
  var documentID: String {
    var bytes: [UInt8] = []
    let end = row.firstIndex(of: 0) ?? row.count
    StoredRow.unescape(row.span.bytes.extracting(0..<end), into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
