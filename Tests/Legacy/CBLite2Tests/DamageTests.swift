import CSQLite
import SQLiteLibrary
import TestSupport

/// Files that were changed at random: an error that says so, or a report; never a crash, and never a database that isn't sound.
@Suite("Damaged .cblite2 databases", .serialized) struct DamageTests {
  private let directory = TemporaryDirectory()

  static let rounds = isLong ? 1_500 : 60

  /// A small database of either form.
  private static func source(_ directory: TemporaryDirectory, is3x: Bool) throws -> String {
    let database = try newDatabase(directory.file("source"))
    try ExportTests.fill(database, seed: 9, documents: 30)
    let path = directory.file("source.cblite2")
    try database.exportCBLite2(to: path)
    try database.close()
    let connection = try connection(path)
    defer { connection.close() }
    try connection.execute("PRAGMA journal_mode = DELETE")
    guard is3x else { return path }
    // Half of the rows in the form of 3.x: the current body out of the tree.
    try connection.execute(
      "PRAGMA user_version = 400; ALTER TABLE kv_default ADD COLUMN extra BLOB; UPDATE kv_info SET body = x'0000000000000001' WHERE key = 'versioning'"
    )
    let select = try connection.prepare("SELECT rowid, body FROM kv_default WHERE rowid % 2 = 0")
    var changes: [(Int, [UInt8], [UInt8])] = []
    while try select.step() {
      let tree = Array(select.bytes(1))
      let size = tree[0..<4].reduce(0) { $0 << 8 | Int($1) }
      var body = 8 + Int(tree[7])
      while tree[body] >= 0x80 { body += 1 }
      body += 1
      var head = Array(tree[..<body])
      head[6] &= 0x7F
      for byte in 0..<4 { head[byte] = UInt8(truncatingIfNeeded: body >> (24 - 8 * byte)) }
      changes.append((select.integer(0), Array(tree[body..<size]), head + tree[size...]))
    }
    select.finalize()
    let update = try connection.prepare("UPDATE kv_default SET body = ?, extra = ? WHERE rowid = ?")
    defer { update.finalize() }
    for (row, body, extra) in changes {
      try update.bind(1, body)
      try update.bind(2, extra)
      try update.bind(3, row)
      try update.run()
    }
    return path
  }

  /// Imports into a new database, which has to be sound then. Says whether it succeeded.
  private func attempt(_ path: String, _ directory: TemporaryDirectory, _ what: String) throws
    -> CBLite2ImportReport?
  {
    let database = try newDatabase(directory.file("target"), .lmdb)
    defer {
      try? database.close()
      try? Database.delete(directory.file("target"))
    }
    var report: CBLite2ImportReport?
    do { report = try database.importCBLite2(path) } catch is CBLite2Error {}
    // What a changed body says of a blob can't be right.
    let faults = try database.check(deep: true).filter { !$0.description.contains("blob") }
    expect(faults.isEmpty, "\(what): \(faults)")
    if let report {
      let accounted =
        report.documents + report.tombstones + report.skipped + report.expired + report.merged
        + report.unchanged
      expect(accounted, equals: report.read, "\(what): \(report)")
    }
    return report
  }

  @Test("Both forms are read before anything is damaged", arguments: [false, true])
  func undamaged(_ is3x: Bool) throws {
    let report = try #require(try attempt(try Self.source(directory, is3x: is3x), directory, "as it is"))
    expect(report.skipped, equals: 0)
    let database = try Database.open(directory.file("source"))
    let back = try newDatabase(directory.file("back"))
    try back.importCBLite2(directory.file("source.cblite2"))
    try expect(differences(database, back, sequences: true), equals: [])
    try database.close()
    try back.close()
  }

  @Test("Bytes of the file", arguments: [false, true])
  func bytes(_ is3x: Bool) throws {
    let path = try Self.source(directory, is3x: is3x)
    let original = [UInt8](try Data(contentsOf: URL(filePath: path + "/db.sqlite3")))
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<Self.rounds {
      var bytes = original
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
      case 1:
        let start = Int.random(in: 0..<bytes.count, using: &random)
        for index in start..<min(bytes.count, start + 200) { bytes[index] = 0 }
      default:
        for _ in 0...Int.random(in: 0...20, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
      }
      try Data(bytes).write(to: URL(filePath: path + "/db.sqlite3"))
      _ = try attempt(path, directory, "seed \(testSeed), round \(round)")
    }
  }

  @Test("Columns of rows, tables and settings", arguments: [false, true])
  func columns(_ is3x: Bool) throws {
    let path = try Self.source(directory, is3x: is3x)
    let original = try Data(contentsOf: URL(filePath: path + "/db.sqlite3"))
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<Self.rounds {
      try original.write(to: URL(filePath: path + "/db.sqlite3"))
      let what = "seed \(testSeed), round \(round)"
      let connection = try connection(path)
      switch Int.random(in: 0..<14, using: &random) {
      case 0:
        try connection.execute(
          "DROP TABLE \(["kv_default", "kv_info", "kvmeta"].randomElement(using: &random)!)")
      case 1: try connection.execute("ALTER TABLE kv_default RENAME COLUMN version TO other")
      case 2:
        let type = ["3", "'text'", "NULL", "4.5", "x''"].randomElement(using: &random)!
        let column = ["key", "sequence", "flags", "version", "body"].randomElement(using: &random)!
        try connection.execute("UPDATE OR IGNORE kv_default SET \(column) = \(type) WHERE rowid % 3 = 0")
      case 3: try connection.execute("UPDATE kv_default SET sequence = 7")
      case 4: try connection.execute("UPDATE kvmeta SET lastSeq = 9223372036854775807")
      case 5: try connection.execute("UPDATE kv_info SET body = x'6001' WHERE key = 'SharedKeys'")
      case 6: try connection.execute("DELETE FROM kv_info WHERE key = 'SharedKeys'")
      case 7: try connection.execute("UPDATE kv_default SET sequence = 9223372036854775807 - rowid")
      default: try mutateBodies(connection, &random)
      }
      connection.close()
      _ = try attempt(path, directory, what)
    }
  }

  /// Changes bytes of trees and bodies.
  private func mutateBodies(_ connection: Connection, _ random: inout SeededGenerator) throws {
    let columns = try connection.strings("SELECT name FROM pragma_table_info('kv_default')")
    let column = columns.contains("extra") && Bool.random(using: &random) ? "extra" : "body"
    let select = try connection.prepare("SELECT rowid, \(column) FROM kv_default WHERE \(column) IS NOT NULL")
    var changes: [(Int, [UInt8])] = []
    while try select.step() {
      var bytes = Array(select.bytes(1))
      guard !bytes.isEmpty, Int.random(in: 0..<2, using: &random) == 0 else { continue }
      switch Int.random(in: 0..<5, using: &random) {
      case 0: bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      case 1: bytes.removeFirst(Int.random(in: 1...bytes.count, using: &random))
      case 2:
        bytes += (0..<Int.random(in: 1..<9, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
      default:
        for _ in 0...Int.random(in: 0...3, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
      }
      changes.append((select.integer(0), bytes))
    }
    select.finalize()
    let update = try connection.prepare("UPDATE kv_default SET \(column) = ? WHERE rowid = ?")
    defer { update.finalize() }
    for (row, bytes) in changes {
      try update.bind(1, bytes)
      try update.bind(2, row)
      try update.run()
    }
  }
}
