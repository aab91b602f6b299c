import SQLiteLibrary
import Storage

/// The table of keyspaces. For calls away from hot paths: each compiles its statement.
enum Catalog {
  struct Row {
    let number: Int
    let name: String
    let shape: KeyspaceShape
    let entries: Int
    let highest: Int?
    var keyspace: Keyspace { Keyspace(number: number, shape: shape) }
  }

  static func shape(of number: Int, in connection: Connection, _ path: String) throws -> KeyspaceShape? {
    try rows(in: connection, path, "WHERE number = ?1") { try $0.bind(1, number) }.first?.shape
  }

  static func keyspace(named name: String, in connection: Connection, _ path: String) throws -> Row? {
    guard let row = try rows(in: connection, path, "WHERE name = ?1", bind: { try $0.bind(1, name) }).first
    else { return nil }
    // Found by the index of names: in a sound file also by its number.
    guard try shape(of: row.number, in: connection, path) == row.shape else {
      throw StorageError(.damaged, "the table of keyspaces and its index differ", path: path)
    }
    return row
  }

  /// How many entries the keyspace of a row has.
  static func count(_ row: Row, in connection: Connection, _ path: String) throws -> Int {
    guard let highest = row.highest, row.shape != .entries else { return row.entries }
    return try storing("counting a keyspace", path) {
      let now = try connection.integer(SQLiteLayout.highest(row.number, row.shape)) ?? 0
      return try count(row.entries, highest, now, path)
    }
  }

  /// The entries that were counted when a row's number was the highest, and those appended since.
  @inline(__always)
  static func count(_ entries: Int, _ highest: Int, _ now: Int, _ path: String) throws -> Int {
    let count = entries.addingReportingOverflow(now &- highest)
    guard now >= highest, !count.overflow else {
      throw StorageError(.damaged, "the count of a keyspace is of rows that aren't there", path: path)
    }
    return count.partialValue
  }

  static func keyspaces(in connection: EngineConnection) throws -> [String: Keyspace] {
    var keyspaces: [String: Keyspace] = [:]
    for row in try rows(in: connection.connection, connection.path) { keyspaces[row.name] = row.keyspace }
    return keyspaces
  }

  static func rows(
    in connection: Connection, _ path: String, _ condition: String = "",
    bind: (Statement) throws -> Void = { _ in }
  ) throws -> [Row] {
    try storing("reading the table of keyspaces", path) {
      let statement = try connection.prepare(
        "SELECT number, name, shape, entries, highest FROM keyspaces \(condition)")
      defer { statement.finalize() }
      try bind(statement)
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
}
