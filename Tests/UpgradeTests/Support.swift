import CSQLite
import Foundation
import SQLiteLibrary
import TestSupport
import Testing
import Touchstone

/// The 1.x databases of others, where they are.
let realDatabases: String? = environmentVariable("TOUCHSTONE_DATA")
  .map { $0 + "/cblite-1x" }.flatMap {
    FileManager.default.fileExists(atPath: $0 + "/expected.json") ? $0 : nil
  }

/// Every file below a directory with its bytes and when it was written: for what must not change.
struct Files: Equatable {
  var contents: [String: [UInt8]] = [:]
  var dates: [String: Date] = [:]

  init(_ directory: String) throws {
    let manager = FileManager.default
    for name in try manager.subpathsOfDirectory(atPath: directory) {
      let path = directory + "/" + name
      dates[name] = try manager.attributesOfItem(atPath: path)[.modificationDate] as? Date
      var isDirectory: ObjCBool = false
      _ = manager.fileExists(atPath: path, isDirectory: &isDirectory)
      if !isDirectory.boolValue { contents[name] = Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
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
