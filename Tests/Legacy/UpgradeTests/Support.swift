import CSQLite
import Datasets
import SQLiteLibrary
import TestSupport

/// The 1.x databases of others, where they are.
let realDatabases: String? = environmentVariable("TOUCHSTONE_DATA")
  .map { $0 + "/cblite-1x" }.flatMap {
    FileManager.default.fileExists(atPath: $0 + "/expected.json") ? $0 : nil
  }

/// Every file below a directory with its bytes and when it was written: for what must not change.
struct Files: Equatable {
  let contents: [String: [UInt8]]
  var dates: [String: Date] = [:]

  init(_ directory: String) throws {
    let manager = FileManager.default
    contents = try files(below: directory)
    for name in try manager.subpathsOfDirectory(atPath: directory) {
      dates[name] = try manager.attributesOfItem(atPath: directory + "/" + name)[.modificationDate] as? Date
    }
  }
}

/// Runs SQL on a file that is in the making.
func change(_ path: String, _ sql: String) throws {
  let connection = try Connection(
    path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE)
  defer { connection.close() }
  try connection.createCollation("REVID") { left, right in
    left.lexicographicallyPrecedes(right) ? -1 : left.elementsEqual(right) ? 0 : 1
  }
  try connection.execute(sql)
  if try connection.string("PRAGMA journal_mode") == "wal" {
    try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
  }
}

extension TemporaryDirectory {
  /// Where databases are upgraded to.
  var new: String { file("new") }

  /// Makes an old database named `old`.
  func makeOld(_ settings: LegacyDatabase) throws -> String {
    try LegacyDatabaseMaker(settings).make("old", in: path)
  }

  /// The database at `new`, for reading.
  func openNew(key: UserKey? = nil) throws -> Database {
    try Database.open(new, options: DatabaseOptions(isReadOnly: true, key: key))
  }
}
