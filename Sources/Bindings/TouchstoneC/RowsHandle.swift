import CTouchstone
import Touchstone

/// Rows that C reads. One call at a time uses it.
final class RowsHandle: @unchecked Sendable {
  private enum Source {
    case collected(QueryResults)
    case stream(RowStream)
  }

  let columnNames: [String]
  /// The names with NULs behind them.
  private lazy var namesForC = columnNames.map { Array($0.utf8CString) }
  private let source: Source
  private let nameBytes: [[UInt8]]
  /// The collected rows that were read, or those of the piece.
  private var position = 0
  private var piece = RowStream.Piece()
  private var current: AnyRow?
  /// The JSON that was handed out last.
  private var json: [UInt8] = []
  /// The texts of the current row that were handed out.
  private var texts: [Int: [UInt8]] = [:]
  private var columns: [Int: ColumnLayout] = [:]

  init(_ results: QueryResults) {
    columnNames = results.columnNames
    nameBytes = []
    source = .collected(results)
  }

  init(_ names: [String], _ stream: RowStream) {
    columnNames = names
    nameBytes = names.map { Array($0.utf8) }
    source = .stream(stream)
  }

  deinit { if case .stream(let stream) = source { stream.stop() } }

  /// The number of rows; nil if they aren't collected.
  var count: Int? { if case .collected(let results) = source { results.count } else { nil } }

  /// Calls `body` with the name of a column, which lives as long as the rows.
  func name(_ column: Int) -> UnsafeBufferPointer<CChar>? {
    guard columnNames.indices.contains(column) else { return nil }
    // The arrays never change after they were made.
    return namesForC[column].withUnsafeBufferPointer { $0 }
  }

  // MARK: Pieces

  /// Reads the next rows as a JSON array of about so many bytes. Returns their number, 0 at the end.
  func readJSON(bytes: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws -> Int {
    current = nil
    json.removeAll(keepingCapacity: true)
    json.append(UInt8(ascii: "["))
    var count = 0
    switch source {
    case .collected(let results):
      while position < results.count, count == 0 || json.count < bytes {
        if count > 0 { json.append(UInt8(ascii: ",")) }
        try results[position].writeJSON(into: &json)
        position += 1
        count += 1
      }
    case .stream(let stream):
      if position > 0 {
        // Some rows of the piece were read one by one.
        for row in piece.rows[position...] {
          if count > 0 { json.append(UInt8(ascii: ",")) }
          try row.writeJSON(nameBytes, into: &json)
          count += 1
        }
        (piece, position) = (RowStream.Piece(), 0)
      }
      while count == 0 || json.count < bytes {
        guard let next = try stream.next() else { break }
        if count > 0 { json.append(UInt8(ascii: ",")) }
        json.append(contentsOf: next.json)
        count += next.rows.count
      }
    }
    json.append(UInt8(ascii: "]"))
    let length = json.count
    json.append(0)
    json.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
    return count
  }

  // MARK: Single rows

  /// Moves to the next row. Returns false at the end.
  func next() throws -> Bool {
    texts.removeAll(keepingCapacity: true)
    current = nil
    switch source {
    case .collected(let results):
      guard position < results.count else { return false }
      current = .query(results[position])
    case .stream(let stream):
      if position >= piece.rows.count {
        guard let next = try stream.next() else {
          (piece, position) = (RowStream.Piece(), 0)
          return false
        }
        (piece, position) = (next, 0)
      }
      current = piece.rows[position]
    }
    position += 1
    return true
  }

  func type(_ column: Int) -> Int32 {
    let type: Int =
      switch current {
      case .query(let row): row[column].typeForC
      case .computed(let values) where values.indices.contains(column):
        switch values[column] {
        case .missing: Int(TOUCHSTONE_MISSING)
        case .null: Int(TOUCHSTONE_NULL)
        case .bool: Int(TOUCHSTONE_BOOL)
        case .int: Int(TOUCHSTONE_INT64)
        case .text: Int(TOUCHSTONE_TEXT)
        case .json: Int(TOUCHSTONE_JSON)
        }
      default: Int(TOUCHSTONE_MISSING)
      }
    return Int32(type)
  }

  func double(_ column: Int) -> Double {
    switch current {
    case .query(let row): return row[column].double ?? 0
    case .computed(let values) where values.indices.contains(column):
      if case .int(let value) = values[column] { return Double(value) }
      return 0
    default: return 0
    }
  }

  func int64(_ column: Int) -> Int64 {
    switch current {
    case .query(let row):
      if let int = row[column].int { return int }
      guard let double = row[column].double else { return 0 }
      // The range of Int64, without its end, which doubles don't have.
      return double >= -0x1p63 && double < 0x1p63 ? Int64(double) : double < 0 ? .min : .max
    case .computed(let values) where values.indices.contains(column):
      if case .int(let value) = values[column] { return value }
      return 0
    default: return 0
    }
  }

  /// Calls `body` with a text of the current row, which lives until the next one. Nil if there is no value.
  func text(_ column: Int) -> UnsafeRawBufferPointer? {
    if texts[column] == nil {
      var text: [UInt8] = []
      do {
        switch current {
        case .query(let row):
          let value = row[column]
          guard value.exists else { return nil }
          if value.withUTF8({ text.append(contentsOf: $0) }) == nil { try value.writeJSON(into: &text) }
        case .computed(let values) where values.indices.contains(column):
          switch values[column] {
          case .missing: return nil
          case .text(let string): text.append(contentsOf: string.utf8)
          case let value: try value.writeJSON(into: &text)
          }
        default: return nil
        }
      } catch {
        return nil
      }
      text.append(0)
      texts[column] = text
    }
    // The array stays as it is until the next row.
    return texts[column]?.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0.dropLast()) }
  }

  // MARK: Columns

  /// Lays out a column of all rows.
  func column(_ column: Int) throws -> ColumnLayout {
    guard case .collected(let results) = source else {
      throw Misuse("a stream has no columns: run the query with touchstone_query_run")
    }
    guard columnNames.indices.contains(column) else {
      throw Misuse("there is no column \(column) of \(columnNames.count)", .badRequest)
    }
    if let known = columns[column] { return known }
    let layout = try ColumnLayout(results, column)
    columns[column] = layout
    return layout
  }
}

extension QueryResultValue {
  /// The type as C knows it.
  var typeForC: Int {
    if withUTF8({ _ in }) != nil { return Int(TOUCHSTONE_TEXT) }
    if int != nil { return Int(TOUCHSTONE_INT64) }
    if double != nil { return Int(TOUCHSTONE_DOUBLE) }
    if bool != nil { return Int(TOUCHSTONE_BOOL) }
    if isNull { return Int(TOUCHSTONE_NULL) }
    return exists ? Int(TOUCHSTONE_JSON) : Int(TOUCHSTONE_MISSING)
  }
}
