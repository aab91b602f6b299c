import SQLiteLibrary
import Storage

/// The table of keyspaces. For calls away from hot paths: each compiles its statement.
enum Catalog {
  struct Row {
    let number: Int
    let name: String
    let shape: KeyspaceShape
    let entries: Int
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
        "SELECT number, name, shape, entries FROM keyspaces \(condition)")
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
            entries: statement.integer(3)))
      }
      return rows
    }
  }
}
