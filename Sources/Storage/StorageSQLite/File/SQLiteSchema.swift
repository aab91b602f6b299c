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
    return KeyspaceShape.allCases.contains { shape in
      words == Self.words(SQLiteLayout.tableCreation(number, shape: shape))
    }
  }

  /// The definitions of the tables that every file has, by name.
  private static let fixed: [String: [Substring]] = {
    let definitions = SQLiteLayout.creation(in: "main").split(separator: ";").map { words(String($0)) }
    return Dictionary(
      definitions.compactMap { words in words.count > 2 ? (String(words[2]), words) : nil },
      uniquingKeysWith: { first, _ in first })
  }()

  /// The words of a definition. The library stores it as it was given, but without the schema's name.
  private static func words(_ definition: String) -> [Substring] {
    definition.replacingPrefix("CREATE TABLE main.", with: "CREATE TABLE ")
      .split { $0 == " " || $0 == "\n" }
  }
}

extension String {
  fileprivate func replacingPrefix(_ prefix: String, with other: String) -> String {
    let text = drop { $0 == "\n" || $0 == " " }
    return text.hasPrefix(prefix) ? other + text.dropFirst(prefix.count) : String(text)
  }
}
