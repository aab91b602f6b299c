// The contents of a file of this engine.
//
//   application_id   0x546F5374 ("ToSt")
//   user_version     2
//   layout           one row: next, the number that the next keyspace gets
//   keyspaces        a row each: number, name, shape (KeyspaceShape's raw value), entries, highest
//   kN               the entries of keyspace N, by its shape:
//
//   documents   CREATE TABLE kN (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB)
//   entries     CREATE TABLE kN (key BLOB NOT NULL PRIMARY KEY, value BLOB) WITHOUT ROWID
//   sequences   CREATE TABLE kN (key INTEGER PRIMARY KEY, value BLOB)      the 8-byte key as the integer
//
// A keyspace has `entries` entries if `highest` is NULL. Otherwise it has `entries` plus the rows appended
// since: the difference between the highest id (documents) or key (sequences) and `highest`.
//
// Pages have 4,096 bytes. The file is in WAL mode. docs/storage-sqlite.md gives the reasons.

import SQLiteLibrary
import Storage

/// The tables of a file and the statements on the table of a keyspace.
enum SQLiteLayout {
  static let applicationID = 0x546F_5374
  static let version = 2
  static let pageBytes = 4096
  /// The longest path of a file that is made, in bytes. The library's own limit is 512 with what it appends, and
  /// operations make files with longer names beside this one.
  static let longestPath = 480
  /// SQLCipher 3's own settings but for the page size. The rounds stretch no key here, because the key is raw.
  static let cipher = CipherSettings(pageBytes: pageBytes, compatibility: nil)
  /// The number of pages in the write-ahead log after which a commit runs a checkpoint. This is the library's
  /// default.
  static let checkpointPages = 1000
  /// The size to which the log file is truncated when it starts again, in bytes.
  static let logBytes = 64 << 20

  /// Returns the statements that create the tables of an empty file in `schema`.
  static func creation(in schema: String) -> String {
    """
    CREATE TABLE \(schema).layout (next INTEGER NOT NULL);
    CREATE TABLE \(schema).keyspaces (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, shape INTEGER NOT NULL,
      entries INTEGER NOT NULL, highest INTEGER);
    """
  }

  /// Returns the operator that compares a key with an upper bound. Bounds of `sequences` are inclusive, so
  /// that a bound exists for the greatest possible key.
  static func below(_ shape: KeyspaceShape) -> String { shape == .sequences ? "<=" : "<" }

  static func table(_ number: Int) -> String { "k\(number)" }

  /// Returns the query for the number of a keyspace's highest row. Not for `entries`, whose rows have no
  /// numbers.
  static func highest(_ number: Int, _ shape: KeyspaceShape) -> String {
    "SELECT max(\(shape == .sequences ? "key" : "id")) FROM \(table(number))"
  }

  static func tableCreation(_ number: Int, shape: KeyspaceShape, in schema: String = "main") -> String {
    let columns =
      switch shape {
      case .documents: "(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB)"
      case .entries: "(key BLOB NOT NULL PRIMARY KEY, value BLOB) WITHOUT ROWID"
      case .sequences: "(key INTEGER PRIMARY KEY, value BLOB)"
      }
    return "CREATE TABLE \(schema).\(table(number)) \(columns)"
  }
}

/// The statements of a keyspace. `?1` is the key or the lower bound, `?2` the value or the upper bound
/// (`ScanBounds`). Only documents have `row`, where `?1` is the row's number, and `updateRow`, where `?3` is.
enum KeyspaceStatement: Int, CaseIterable {
  case get, row, insert, update, updateRow, delete, last, highest
  /// Inserts of several rows. They cost less per row, because the library's cursor stays at the last inserted
  /// row.
  case insertEight, insertMany
  case deleteAll, deleteFrom, deleteTo, deleteBetween

  func sql(_ keyspace: Keyspace) -> String {
    let table = SQLiteLayout.table(keyspace.number)
    let below = SQLiteLayout.below(keyspace.shape)
    return switch self {
    case .get:
      "SELECT value\(keyspace.shape == .documents ? ", id" : "") FROM \(table) WHERE key = ?1"
    case .row: "SELECT key, value FROM \(table) WHERE id = ?1"
    case .insert, .insertEight, .insertMany:
      "INSERT OR IGNORE INTO \(table) (key, value) VALUES \(Self.parameters(rows: rows))"
    case .update: "UPDATE \(table) SET value = ?2 WHERE key = ?1"
    // With the plus sign, the index of keys isn't used.
    case .updateRow: "UPDATE \(table) SET value = ?2 WHERE id = ?3 AND +key = ?1"
    case .delete: "DELETE FROM \(table) WHERE key = ?1"
    case .last: "SELECT key FROM \(table) ORDER BY key DESC LIMIT 1"
    case .highest: SQLiteLayout.highest(keyspace.number, keyspace.shape)
    case .deleteAll: "DELETE FROM \(table)"
    case .deleteFrom: "DELETE FROM \(table) WHERE key >= ?1"
    case .deleteTo: "DELETE FROM \(table) WHERE key \(below) ?2"
    case .deleteBetween: "DELETE FROM \(table) WHERE key >= ?1 AND key \(below) ?2"
    }
  }

  /// The number of rows that the statement inserts.
  var rows: Int {
    switch self {
    case .insertMany: 64
    case .insertEight: 8
    default: 1
    }
  }

  private static func parameters(rows: Int) -> String {
    (0..<rows).map { "(?\(2 * $0 + 1), ?\(2 * $0 + 2))" }.joined(separator: ", ")
  }
}

/// The direction of a scan and the bounds that its statement checks.
struct ScanVariant {
  /// On the side where it starts, an unbounded scan has a bound that every key meets, which costs nothing per
  /// row. On the other side the bound is left out, which saves one comparison per row.
  enum Kind: Int, CaseIterable {
    case ascending, ascendingTo, descending, descendingFrom, stored
  }
  var kind: Kind
  var keysOnly: Bool
  /// Whether the library passes the rows to a `RowVisit` within one step.
  var isVisit = false

  static let count = Kind.allCases.count * 4
  var index: Int { kind.rawValue * 4 + (keysOnly ? 1 : 0) + (isVisit ? 2 : 0) }

  func sql(_ keyspace: Keyspace) -> String {
    let table = SQLiteLayout.table(keyspace.number)
    let below = SQLiteLayout.below(keyspace.shape)
    let columns = keysOnly ? "key" : "key, value"
    let (condition, order) =
      switch kind {
      case .ascending: ("key >= ?1", " ORDER BY key")
      case .ascendingTo: ("key >= ?1 AND key \(below) ?2", " ORDER BY key")
      case .descending: ("key \(below) ?2", " ORDER BY key DESC")
      case .descendingFrom: ("key >= ?1 AND key \(below) ?2", " ORDER BY key DESC")
      case .stored: ("", "")
      }
    guard isVisit else {
      return "SELECT \(columns) FROM \(table)\(condition.isEmpty ? "" : " WHERE \(condition)")\(order)"
    }
    // The library would sort after the visits. So the order must come from the index, whatever the planner
    // prefers.
    let index =
      kind != .stored && keyspace.shape == .documents ? " INDEXED BY sqlite_autoindex_\(table)_1" : ""
    let conditions = condition.isEmpty ? "" : "\(condition) AND "
    return "SELECT 1 FROM \(table)\(index) WHERE \(conditions)csqlite_visit(\(columns))\(order)"
  }
}
