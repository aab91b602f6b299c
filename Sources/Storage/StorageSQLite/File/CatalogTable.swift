import SQLiteLibrary
import Storage

/// The table of keyspaces.
enum CatalogTable {
  /// The rows to read. Each connection of the engine keeps one statement per condition.
  enum Condition: String {
    case none = ""
    case number = "WHERE number = ?1"
    case name = "WHERE name = ?1"
  }

  struct Row {
    let number: Int
    let name: String
    let shape: KeyspaceShape
    let entries: Int
    let highest: Int?
    var keyspace: Keyspace { Keyspace(number: number, shape: shape) }
  }

  static func shape(of number: Int, in connection: EngineConnection) throws -> KeyspaceShape? {
    try rows(in: connection, .number) { try $0.bind(1, number) }.first?.shape
  }

  static func keyspace(named name: String, in connection: EngineConnection) throws -> Row? {
    guard let row = try rows(in: connection, .name, bind: { try $0.bind(1, name) }).first else { return nil }
    // The row was found by the index of names. In a sound file the table has the same row under its number.
    guard try shape(of: row.number, in: connection) == row.shape else {
      throw StorageError(.damaged, "the table of keyspaces doesn't match its index", path: connection.path)
    }
    return row
  }

  /// Returns the number of entries in the keyspace of a row.
  static func count(_ row: Row, in connection: Connection, _ path: String) throws -> Int {
    guard let highest = row.highest, row.shape != .entries else { return row.entries }
    return try storing("counting a keyspace", path) {
      let now = try connection.integer(SQLiteLayout.highest(row.number, row.shape)) ?? 0
      return try count(row.entries, highest, now, path)
    }
  }

  /// Returns the number of entries counted when `highest` was the highest row, plus the rows appended since.
  @inline(__always)
  static func count(_ entries: Int, _ highest: Int, _ now: Int, _ path: String) throws -> Int {
    let count = entries.addingReportingOverflow(now &- highest)
    guard now >= highest, !count.overflow else {
      throw StorageError(.damaged, "the count of a keyspace is higher than its number of rows", path: path)
    }
    return count.partialValue
  }

  static func keyspaces(in connection: EngineConnection) throws -> [String: Keyspace] {
    var keyspaces: [String: Keyspace] = [:]
    for row in try rows(in: connection, .none) { keyspaces[row.name] = row.keyspace }
    return keyspaces
  }

  /// Returns the rows that meet a condition. `bind` sets its parameter.
  private static func rows(
    in connection: EngineConnection, _ condition: Condition, bind: (Statement) throws -> Void = { _ in }
  ) throws -> [Row] {
    try storing("reading the table of keyspaces", connection.path) {
      let statement = try connection.catalogStatement(condition)
      // A statement that stands on a row would keep its snapshot open.
      defer { statement.reset() }
      try bind(statement)
      return try rows(of: statement, connection.path)
    }
  }

  /// Returns all rows, read through a connection that isn't an `EngineConnection`.
  static func rows(in connection: Connection, _ path: String) throws -> [Row] {
    try storing("reading the table of keyspaces", path) {
      let statement = try prepare(.none, in: connection)
      defer { statement.finalize() }
      return try rows(of: statement, path)
    }
  }

  static func prepare(_ condition: Condition, in connection: Connection) throws -> Statement {
    try connection.prepare(
      "SELECT number, name, shape, entries, highest FROM keyspaces \(condition.rawValue)")
  }

  private static func rows(of statement: Statement, _ path: String) throws -> [Row] {
    var rows: [Row] = []
    while try statement.step() {
      guard let number = UInt8(exactly: statement.integer(2)), let shape = KeyspaceShape(rawValue: number)
      else {
        throw StorageError(
          .damaged, "keyspace \(statement.integer(0)) has the unknown shape \(statement.integer(2))",
          path: path)
      }
      guard rows.last.map({ $0.number < statement.integer(0) }) ?? true else {
        throw StorageError(.damaged, "the table of keyspaces is out of order", path: path)
      }
      rows.append(
        Row(
          number: statement.integer(0), name: statement.string(1) ?? "", shape: shape,
          entries: statement.integer(3), highest: statement.isNull(4) ? nil : statement.integer(4)))
    }
    return rows
  }
}
