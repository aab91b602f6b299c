import CSQLite
import SQLiteLibrary
import Storage

/// The texts in an SQLite table with an FTS5 index, with the same settings as our engine.
final class FTS5Table {
  private let connection: Connection

  /// Opens the file at `path`, and creates it if needed.
  init(_ path: String, like engine: ProbedEngine?, _ durability: Durability) throws {
    connection = try Connection(path, like: engine, durability)
  }

  func close() { connection.close() }

  /// Inserts the texts, one column each.
  func fill(_ documents: [TextDocuments.Document]) throws {
    try connection.execute(
      "BEGIN; CREATE TABLE docs (id TEXT PRIMARY KEY, description TEXT, content TEXT, reviews TEXT);")
    try insert(documents, "INSERT INTO docs VALUES (?1, ?2, ?3, ?4)") { statement, document, _ in
      try statement.bind(1, document.id)
    }
    try connection.execute("COMMIT")
  }

  private static func create(_ content: String) -> String {
    "CREATE VIRTUAL TABLE f USING fts5(description, content, reviews, content='\(content)', "
      + "tokenize='porter unicode61')"
  }

  /// Makes the index, without a copy of the texts.
  func index() throws {
    try connection.execute(
      "BEGIN; \(Self.create("")); INSERT INTO f(rowid, description, content, reviews) "
        + "SELECT rowid, description, content, reviews FROM docs; COMMIT;")
  }

  /// Makes the index with the triggers of FTS5's documentation, which update it when texts change.
  func indexWithTriggers() throws {
    let old =
      "INSERT INTO f(f, rowid, description, content, reviews) "
      + "VALUES ('delete', old.rowid, old.description, old.content, old.reviews);"
    let new =
      "INSERT INTO f(rowid, description, content, reviews) "
      + "VALUES (new.rowid, new.description, new.content, new.reviews);"
    try connection.execute(
      "BEGIN; \(Self.create("docs")); INSERT INTO f(f) VALUES ('rebuild'); "
        + "CREATE TRIGGER docs_update AFTER UPDATE ON docs BEGIN \(old) \(new) END; COMMIT;")
  }

  /// Makes an index without a table of texts.
  func indexAlone(_ documents: [TextDocuments.Document]) throws {
    try connection.execute("BEGIN; \(Self.create(""))")
    try insert(documents, "INSERT INTO f(rowid, description, content, reviews) VALUES (?1, ?2, ?3, ?4)") {
      statement, _, number in
      try statement.bind(1, number + 1)
    }
    try connection.execute("COMMIT")
  }

  private func insert(
    _ documents: [TextDocuments.Document], _ sql: String,
    _ bindFirst: (Statement, TextDocuments.Document, Int) throws -> Void
  ) throws {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    for (number, document) in documents.enumerated() {
      try bindFirst(statement, document, number)
      for (column, text) in document.texts.enumerated() { try statement.bind(Int32(column + 2), text) }
      try statement.run()
    }
  }

  /// Merges the index into one segment.
  func optimize() throws { try connection.execute("INSERT INTO f(f) VALUES ('optimize')") }

  /// Removes free pages, and moves everything into one file.
  func vacuum() throws {
    try connection.execute("VACUUM")
    _ = try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
  }

  /// Updates documents in one transaction. The triggers update the index.
  func update(_ documents: [TextDocuments.Document]) throws {
    try connection.execute("BEGIN")
    let statement = try connection.prepare(
      "UPDATE docs SET description = ?2, content = ?3, reviews = ?4 WHERE id = ?1")
    for document in documents {
      try statement.bind(1, document.id)
      for (column, text) in document.texts.enumerated() { try statement.bind(Int32(column + 2), text) }
      try statement.run()
    }
    statement.finalize()
    try connection.execute("COMMIT")
  }

  /// Runs each query `times` times, and returns the number of document IDs found.
  func rows(_ queries: [FullTextCase.Asked], ranked: Bool, times: Int) throws -> Int {
    let sql =
      ranked
      ? "SELECT d.id FROM (SELECT rowid AS r FROM f WHERE f MATCH ?1 ORDER BY rank LIMIT 20) JOIN docs d "
        + "ON d.rowid = r"
      : "SELECT d.id FROM f JOIN docs d ON d.rowid = f.rowid WHERE f MATCH ?1"
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    var rows = 0
    var bytes = 0
    for _ in 0..<times {
      for query in queries {
        try statement.bind(1, query.fts5)
        while try statement.step() {
          rows += 1
          bytes &+= statement.bytes(0).count
        }
        statement.reset()
      }
    }
    withExtendedLifetime(bytes) {}
    return rows
  }
}
