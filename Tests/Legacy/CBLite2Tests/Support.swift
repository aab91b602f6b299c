import CSQLite
import SQLiteLibrary
import TestSupport

func newDatabase(_ path: String, _ engine: EngineName = .lmdb) throws -> Database {
  var options = try TestSupport.options(engine)
  options.creation = .createNew
  return try Database.open(path, options: options)
}

/// A `.cblite2` database written with plain SQL.
final class MadeDatabase {
  let path: String
  let connection: Connection
  private let has3xColumns: Bool

  /// `version`: user_version; from 400 on the tables are those of 3.x.
  init(_ path: String, version: Int = 201, wal: Bool = false) throws {
    self.path = path
    has3xColumns = version >= 400
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    connection = try CBLite2Tests.connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    try connection.execute(
      """
      PRAGMA user_version = \(version);
      PRAGMA journal_mode = \(wal ? "WAL" : "DELETE");
      CREATE TABLE kvmeta (name TEXT PRIMARY KEY, lastSeq INTEGER DEFAULT 0) WITHOUT ROWID;
      """)
    try makeStore("kv_info")
    try makeStore("kv_default")
    try setInfo("versioning", [UInt8](repeating: 0, count: 7) + [version >= 400 ? 1 : 0])
  }

  func makeStore(_ table: String) throws {
    try connection.execute(
      """
      CREATE TABLE "\(table)" (key TEXT PRIMARY KEY, sequence INTEGER, flags INTEGER DEFAULT 0, version BLOB, body BLOB
        \(has3xColumns ? ", extra BLOB, expiration INTEGER" : ""));
      """)
  }

  func setInfo(_ key: String, _ body: [UInt8]) throws {
    try insert(key, into: "kv_info", sequence: nil, flags: 0, version: nil, body: body)
  }

  func setSharedKeys(_ names: [String]) throws {
    try setInfo("SharedKeys", try SharedKeys(keys: names).encoded())
  }

  func insert(
    _ key: String, into table: String = "kv_default", sequence: Int?, flags: Int = 0, version: [UInt8]?,
    body: [UInt8]?, extra: [UInt8]? = nil, expiration: Int? = nil
  ) throws {
    let columns = extra == nil && expiration == nil ? "" : ", extra, expiration"
    let statement = try connection.prepare(
      "INSERT INTO \"\(table)\" (key, sequence, flags, version, body\(columns)) VALUES (?, ?, ?, ?, ?"
        + "\(columns.isEmpty ? "" : ", ?, ?"))")
    defer { statement.finalize() }
    try statement.bind(1, key)
    if let sequence { try statement.bind(2, sequence) } else { try statement.bindNull(2) }
    try statement.bind(3, flags)
    if let version { try statement.bind(4, version) } else { try statement.bindNull(4) }
    if let body { try statement.bind(5, body) } else { try statement.bindNull(5) }
    if !columns.isEmpty {
      if let extra { try statement.bind(6, extra) } else { try statement.bindNull(6) }
      if let expiration { try statement.bind(7, expiration) } else { try statement.bindNull(7) }
    }
    try statement.run()
  }

  /// Ends the writing.
  @discardableResult func close() -> String {
    connection.close()
    return path
  }
}

/// Opens the file of a `.cblite2` database.
func connection(_ path: String, _ flags: Int32 = SQLITE_OPEN_READWRITE) throws -> Connection {
  try Connection(path + "/db.sqlite3", library: try Library.load(Library.sqlitePath), flags: flags)
}

/// The rows that a statement gives, as texts.
func rows(_ path: String, _ sql: String) throws -> [String] {
  let connection = try Connection(
    "file:\(path)/db.sqlite3?immutable=1", library: try Library.load(Library.sqlitePath),
    flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
  defer { connection.close() }
  let statement = try connection.prepare(sql)
  defer { statement.finalize() }
  var rows: [String] = []
  while try statement.step() {
    rows.append(
      (0..<statement.columnCount).map { statement.string(Int32($0)) ?? "NULL" }.joined(separator: "|"))
  }
  return rows
}

/// No fault in a database, looked at deeply.
func expectSound(_ database: Database, _ what: String = "") throws {
  let faults = try database.check(deep: true)
  expect(faults.isEmpty, "\(what): \(faults)")
}
