import SQLiteLibrary
import Storage

/// The check that a file holds the tables of the layout and nothing else.
///
/// A file may come from anybody. A view in place of a table runs its author's query, and a trigger runs at each write.
/// Reading the schema runs neither.
struct SQLiteSchema {
  let path: String

  /// Throws `damaged` if the schema has a view, a trigger, another table or another index, or a table whose definition
  /// isn't the layout's.
  func check(_ connection: Connection) throws {
    let statement = try connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_master")
    defer { statement.finalize() }
    var tables: Set<String> = []
    var indexes: [(name: String, table: String)] = []
    while try statement.step() {
      let type = statement.string(0) ?? ""
      let name = statement.string(1) ?? ""
      let table = statement.string(2) ?? ""
      if type == "table", name == table, isKnown(name, statement.string(3) ?? "") {
        tables.insert(name)
      } else if type == "index", statement.isNull(3), name == "sqlite_autoindex_\(table)_1" {
        indexes.append((name, table))
      } else {
        throw foreign(type, name)
      }
    }
    for (name, table) in indexes where !tables.contains(table) { throw foreign("index", name) }
    for name in ["layout", "keyspaces"] where !tables.contains(name) {
      throw StorageError(.damaged, "the database can't be opened: it has no table \(name)", path: path)
    }
  }

  private func foreign(_ type: String, _ name: String) -> StorageError {
    StorageError(
      .damaged,
      "the database can't be opened: its \(type) \"\(name.prefix(64))\" isn't part of the layout. Another program "
        + "has changed the file", path: path)
  }

  private func isKnown(_ name: String, _ definition: String) -> Bool {
    let words = Self.words(definition)
    if let known = Self.fixed[name] { return words == known }
    guard name.utf8.first == UInt8(ascii: "k"), let number = Int(name.dropFirst()),
      name == SQLiteLayout.table(number)
    else { return false }
    let start = Array("CREATE TABLE \(name) ".utf8)
    return words.starts(with: start) && Self.columns.contains { words[start.count...].elementsEqual($0) }
  }

  /// The definitions of the tables that every file has, by name.
  private static let fixed: [String: [UInt8]] = {
    let definitions = SQLiteLayout.creation(in: "main").split(separator: ";").map { String($0) }
    return Dictionary(
      definitions.map { words(withoutSchema($0)) }.filter { !$0.isEmpty }
        .map { (String(String(decoding: $0, as: UTF8.self).split(separator: " ")[2]), $0) },
      uniquingKeysWith: { first, _ in first })
  }()

  /// What follows the name in the definitions of keyspaces' tables, one for each shape.
  private static let columns: [[UInt8]] = KeyspaceShape.allCases.map { shape in
    let number = 1
    let definition = words(withoutSchema(SQLiteLayout.tableCreation(number, shape: shape)))
    return Array(definition.dropFirst("CREATE TABLE \(SQLiteLayout.table(number)) ".utf8.count))
  }

  /// The library stores a definition as it was given, but without the schema's name.
  private static func withoutSchema(_ definition: String) -> String {
    definition.split(separator: "main.", maxSplits: 1).joined()
  }

  /// The words of a definition, with one space between them. An opening compares the definition of each table, so this is done
  /// with bytes: splitting strings took half of an opening.
  private static func words(_ definition: String) -> [UInt8] {
    var words: [UInt8] = []
    words.reserveCapacity(definition.utf8.count)
    for byte in definition.utf8 {
      guard byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") else {
        words.append(byte)
        continue
      }
      if let last = words.last, last != UInt8(ascii: " ") { words.append(UInt8(ascii: " ")) }
    }
    if words.last == UInt8(ascii: " ") { words.removeLast() }
    return words
  }
}
