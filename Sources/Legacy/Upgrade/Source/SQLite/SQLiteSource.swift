import CSQLite
import Encryption
import SQLiteLibrary

/// A database that has the tables of a 1.x database, and the properties of its schema.
final class SQLiteSource: Source {
  let location: SourceFiles
  let connection: Connection
  /// The key, if the database is encrypted.
  let key: SecretBytes?
  let userVersion: Int
  /// Whether attachments are rows of a table, as in 1.0. Later versions have a property.
  let hasAttachmentTable: Bool
  let hasExpirations: Bool
  let hasUniqueSequences = true
  private(set) var issues: [UpgradeIssue] = []
  private let tables: Set<String>
  private let file: SQLiteSourceFile

  /// The tables that are read.
  private static let carried: Set = ["docs", "revs", "localdocs", "attachments", "info", "views"]
  private static let needed = [
    "docs": ["doc_id", "docid"],
    "revs": ["sequence", "doc_id", "revid", "parent", "current", "deleted", "json"],
  ]

  /// Reads the schema. If it isn't that of a 1.x database, throws an `UpgradeError` that says what the file
  /// is.
  init(_ location: SourceFiles, _ file: SQLiteSourceFile) throws {
    self.location = location
    self.file = file
    let connection = file.connection
    self.connection = connection
    key = file.key
    if let damage = file.logDamage {
      issues = [
        UpgradeIssue(
          .damagedCommit,
          "the write-ahead log: \(damage.message), at byte \(damage.offset) of \(location.file)-wal")
      ]
    }
    do {
      userVersion = try connection.integer("PRAGMA user_version") ?? 0
      tables = Set(try connection.strings("SELECT name FROM sqlite_master WHERE type = 'table'"))
      if let object = try connection.foreignObject(Self.carried.contains) {
        throw UpgradeError(
          .foreign,
          "the schema of this file was changed: its \(object) isn't Couchbase Lite's, and reading it would run what "
            + "somebody wrote into the file", path: location.path)
      }
    } catch let error as SQLiteError { throw Self.error(error, location) }
    guard tables.contains("docs"), tables.contains("revs") else {
      if tables.contains("kvmeta") || tables.contains(where: { $0.hasPrefix("kv_") }) {
        throw SourceFiles.laterVersion(location.path)
      }
      throw UpgradeError(
        .foreign,
        tables.isEmpty
          ? "this SQLite file has no tables, so it isn't a Couchbase Lite database"
          : "this SQLite file isn't a Couchbase Lite database: it has no tables docs and revs; give a NAME.cblite2 "
            + "directory or a NAME.cblite file of Couchbase Lite 1.x",
        path: location.path)
    }
    func columns(_ table: String) throws -> [String: (type: String, isKey: Bool)] {
      let statement = try connection.prepare("PRAGMA table_info(\(table))")
      defer { statement.finalize() }
      var columns: [String: (type: String, isKey: Bool)] = [:]
      while try statement.step() {
        columns[statement.string(1) ?? ""] = (
          (statement.string(2) ?? "").uppercased(), statement.integer(5) != 0
        )
      }
      return columns
    }
    do {
      for (table, needed) in Self.needed.sorted(by: { $0.key < $1.key }) {
        let found = try columns(table)
        // The first column must be the integer primary key.
        guard needed.allSatisfy({ found[$0] != nil }),
          found[needed[0]].map({ $0.isKey && $0.type == "INTEGER" }) == true
        else {
          throw UpgradeError(
            .foreign,
            "this isn't a 1.x database: its table \(table) has no columns \(needed.joined(separator: ", "))",
            path: location.path)
        }
      }
      let attachments = tables.contains("attachments") ? try columns("attachments") : [:]
      hasAttachmentTable = ["sequence", "filename", "key"].allSatisfy { attachments[$0] != nil }
      hasExpirations = try columns("docs")["expiry_timestamp"] != nil
    } catch let error as SQLiteError { throw Self.error(error, location) }
  }

  /// Checks every page. Throws `damaged` if a table that is carried over is damaged.
  func check() throws {
    do {
      guard let fault = try Self.fault(connection, "PRAGMA quick_check(1)") else { return }
      // Damaged indexes of views and full text don't matter: they aren't carried over.
      guard connection.library.supportsTableChecks else { throw damaged(fault) }
      for table in Self.carried.subtracting(["views"]).sorted() where tables.contains(table) {
        if let fault = try Self.fault(connection, "PRAGMA quick_check('\(table)')") { throw damaged(fault) }
      }
      issues.append(
        UpgradeIssue(
          .damagedElsewhere, "a part of the file that isn't carried over (indexes, views) is damaged"))
    } catch let error as SQLiteError { throw Self.error(error, location) }
  }

  /// Returns the first fault of a check. Messages about NULL values and about missing modules ("no such …")
  /// are ignored.
  private static func fault(_ connection: Connection, _ sql: String) throws -> String? {
    try connection.strings(sql).first {
      $0 != "ok" && !$0.hasPrefix("NULL value in") && !$0.contains("no such")
    }
  }

  private func damaged(_ fault: String) -> UpgradeError {
    UpgradeError(
      .damaged, "the file is damaged (\(fault.split(separator: "\n").last ?? "")); restore it from a backup",
      path: location.file)
  }

  func makeReader() throws -> any SourceReader { try SQLiteReader(self) }

  func hasTable(_ name: String) -> Bool { tables.contains(name) }

  /// Reads from the database. Converts errors of SQLite.
  func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as SQLiteError { throw Self.error(error, location) }
  }

  /// Converts an SQLite error to an error about the source.
  static func error(_ error: SQLiteError, _ location: SourceFiles) -> any Error {
    switch error.code {
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_RANGE,
      SQLITE_TOOBIG,
      SQLITE_SCHEMA, SQLITE_CONSTRAINT:
      UpgradeError(
        .damaged, "the file is damaged (\(error.message)); restore it from a backup", path: location.file)
    case SQLITE_NOMEM:
      // A damaged length can ask for gigabytes.
      UpgradeError(
        .damaged,
        "there isn't enough memory to read the file, probably because a length in it is damaged; "
          + "restore it from a backup", path: location.file)
    case SQLITE_INTERRUPT:
      UpgradeError(
        .damaged, "reading the file costs far more than a file of its size can; restore it from a backup",
        path: location.file)
    case SQLITE_BUSY, SQLITE_LOCKED:
      SourceGuard.locked(location)
    default: error
    }
  }
}

extension Library {
  /// Whether `quick_check` accepts the name of a table. SQLite does since 3.33.
  var supportsTableChecks: Bool {
    let numbers = version.split(separator: ".").compactMap { Int($0) }
    return numbers.count > 1 && (numbers[0] > 3 || numbers[0] == 3 && numbers[1] >= 33)
  }
}
