import CSQLite
import Datasets
import SQLiteLibrary
import Storage

/// The documents as JSON text in one SQLite table, with the engine's settings.
final class JSONTable {
  private let connection: Connection

  /// A run whose results aren't valid.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Opens the file at `path`, and creates it if needed.
  init(_ path: String, like engine: ProbedEngine?) throws {
    connection = try Connection(path, like: engine, .normal)
  }

  func close() { connection.close() }

  /// Fills the table and makes the matching indexes.
  func fill(_ dataset: LoadedDataset, _ indexes: QueryIndexes) throws {
    try connection.execute("BEGIN; CREATE TABLE docs (id TEXT PRIMARY KEY, body TEXT);")
    let insert = try connection.prepare("INSERT INTO docs VALUES (?1, ?2)")
    for number in 0..<dataset.count {
      try insert.bind(1, dataset.idText(number))
      try insert.bind(2, String(decoding: dataset.json(number), as: UTF8.self))
      _ = try insert.step()
      insert.reset()
    }
    insert.finalize()
    try connection.execute("COMMIT")
    let columns = indexes.list.compactMap(\.sqlColumns)
    for (number, columns) in columns.enumerated() {
      try connection.execute("CREATE INDEX i\(number) ON docs (\(columns))")
    }
    if !columns.isEmpty { try connection.execute("ANALYZE") }
  }

  /// Runs a query for each parameter, `times` times. Keeps the rows of each result and reads all of their
  /// columns, as the runs of our queries do. Returns the total number of rows.
  func rows(_ sql: String, _ parameters: [String?], times: Int) throws -> Int {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    var rows = 0
    var sum = 0
    for _ in 0..<times {
      for parameter in parameters {
        if let parameter { try statement.bind(1, parameter) }
        let answer = KeptRows()
        let width = Int32(statement.columnCount)
        while try statement.step() {
          rows += 1
          for column in 0..<width { answer.keep(statement, column) }
        }
        statement.reset()
        sum &+= answer.sum
      }
    }
    withExtendedLifetime(sum) {}
    return rows
  }
}

/// The rows of a statement, copied: a buffer of texts, and one cell per value.
private final class KeptRows {
  private enum Cell: BitwiseCopyable {
    case null
    case integer(Int)
    case double(Double)
    case text(start: Int, count: Int)
  }

  // Like the results of our queries: used by one thread, without exclusivity checks.
  @exclusivity(unchecked) private var text = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 8)
  @exclusivity(unchecked) private var textCapacity = 4096
  @exclusivity(unchecked) private var textCount = 0
  @exclusivity(unchecked) private var cells = UnsafeMutablePointer<Cell>.allocate(capacity: 64)
  @exclusivity(unchecked) private var capacity = 64
  @exclusivity(unchecked) private var count = 0

  deinit {
    text.deallocate()
    cells.deallocate()
  }

  @inline(__always)
  func keep(_ statement: Statement, _ column: Int32) {
    if count == capacity { growCells() }
    switch statement.type(column) {
    case SQLITE_INTEGER: cells[count] = .integer(statement.integer(column))
    case SQLITE_FLOAT: cells[count] = .double(statement.double(column))
    case SQLITE_NULL: cells[count] = .null
    default:
      let bytes = statement.bytes(column)
      if bytes.count > textCapacity - textCount { growText(bytes.count) }
      if let start = bytes.baseAddress { (text + textCount).copyMemory(from: start, byteCount: bytes.count) }
      cells[count] = .text(start: textCount, count: bytes.count)
      textCount += bytes.count
    }
    count += 1
  }

  private func growCells() {
    let larger = UnsafeMutablePointer<Cell>.allocate(capacity: capacity * 2)
    larger.update(from: cells, count: count)
    cells.deallocate()
    cells = larger
    capacity *= 2
  }

  private func growText(_ more: Int) {
    textCapacity = max(textCapacity * 2, textCount + more)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: textCapacity, alignment: 8)
    larger.copyMemory(from: text, byteCount: textCount)
    text.deallocate()
    text = larger
  }

  /// A sum that reads every value.
  var sum: Int {
    var sum = 0
    for index in 0..<count {
      switch cells[index] {
      case .null: break
      case .integer(let value): sum &+= value
      case .double(let value): sum &+= Int(truncatingIfNeeded: Int64(bitPattern: value.bitPattern))
      case .text(let start, let count):
        sum &+= count
        if count > 0 { sum &+= Int(text.load(fromByteOffset: start, as: UInt8.self)) }
      }
    }
    return sum
  }
}
