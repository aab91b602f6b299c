import CSQLite
import Datasets
import SQLiteLibrary
import Storage

/// The documents as JSON text in one table of SQLite, with the settings that the engine has.
final class JSONTable {
  private let connection: Connection

  /// A table whose numbers would mean nothing.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Opens the file at `path`, made when there is none.
  init(_ path: String, like engine: ProbedEngine?) throws {
    connection = try Connection(
      path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    let pageSize = engine?.setting("page_size") ?? "4096"
    let cache = engine?.setting("cache_size") ?? "-16384"
    let map = engine?.setting("mmap_size") ?? "0"
    try connection.execute(
      "PRAGMA page_size = \(pageSize); PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
        + "PRAGMA cache_size = \(cache); PRAGMA mmap_size = \(map);")
  }

  func close() { connection.close() }

  /// Fills the table, and makes the matching indexes.
  func fill(_ dataset: LoadedDataset, indexed: Bool) throws {
    try connection.execute("BEGIN; CREATE TABLE docs (id TEXT PRIMARY KEY, body TEXT);")
    let insert = try connection.prepare("INSERT INTO docs VALUES (?1, ?2)")
    for number in 0..<dataset.count {
      try insert.bind(1, String(decoding: dataset.id(number), as: UTF8.self))
      try insert.bind(2, String(decoding: dataset.json(number), as: UTF8.self))
      _ = try insert.step()
      insert.reset()
    }
    insert.finalize()
    try connection.execute("COMMIT")
    if indexed {
      for (number, expressions) in QueryCase.sqlIndexes.enumerated() {
        try connection.execute("CREATE INDEX i\(number) ON docs (\(expressions.joined(separator: ", ")))")
      }
      try connection.execute("ANALYZE")
    }
  }

  /// Asks a query for each parameter, `times` over, and reads all columns. Returns the rows of all.
  func rows(_ sql: String, _ parameters: [String?], times: Int) throws -> Int {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    var rows = 0
    var bytes = 0
    for _ in 0..<times {
      for parameter in parameters {
        if let parameter { try statement.bind(1, parameter) }
        while try statement.step() {
          rows += 1
          for column in 0..<Int32(statement.columnCount) { bytes &+= statement.bytes(column).count }
        }
        statement.reset()
      }
    }
    withExtendedLifetime(bytes) {}
    return rows
  }
}
