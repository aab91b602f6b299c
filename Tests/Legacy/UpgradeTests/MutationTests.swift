import Datasets
import TestSupport

/// Damaged databases: an error or a report, never a crash, a hang or a loss that nobody is told of.
@Suite("Mutated databases") struct MutationTests {
  private let directory = TemporaryDirectory()

  private static func settings(_ version: LegacyDatabase.Version) -> LegacyDatabase {
    var settings = MadeDatabasesTests.settings(.android, version)
    settings.documents = 12
    settings.history = 3
    return settings
  }

  /// What SQL can break that a valid file may hold.
  private static let statements = [
    "DROP TABLE localdocs", "DROP TABLE info", "DROP TABLE views", "DROP TABLE docs", "DROP TABLE revs",
    "DROP INDEX revs_by_docid_revid", "DROP TABLE IF EXISTS attachments",
    "UPDATE revs SET json = 17 WHERE sequence % 3 = ?",
    "UPDATE revs SET json = 'text' WHERE sequence % 5 = ?",
    "UPDATE revs SET json = CAST(json AS TEXT) WHERE sequence % 3 = ?",
    "UPDATE revs SET json = zeroblob(1000000) WHERE sequence = ?",
    "UPDATE revs SET json = CAST(substr(json, 1, length(json) / 2) AS BLOB) WHERE sequence % 7 = ?",
    "UPDATE revs SET json = CAST('{\"a\":1,\"a\":2,\"_attachments\":[1]}' AS BLOB) WHERE sequence % 7 = ?",
    "UPDATE revs SET json = CAST('{\"_attachments\":{\"x\":{\"digest\":\"sha1-no\"},\"y\":7,\"z\":{\"digest\":5}}}' AS BLOB) WHERE sequence % 7 = ?",
    "UPDATE revs SET json = CAST('{\"n\":1e999,\"m\":123456789012345678901234567890}' AS BLOB) WHERE sequence % 7 = ?",
    "UPDATE revs SET parent = sequence WHERE sequence % 4 = ?",
    "UPDATE revs SET parent = (SELECT max(sequence) FROM revs) WHERE sequence % 4 = ?",
    "UPDATE revs SET parent = sequence + 1 WHERE sequence % 4 = ?",
    "UPDATE revs SET parent = -1 WHERE sequence % 4 = ?",
    "UPDATE revs SET parent = 'none' WHERE sequence % 4 = ?",
    "UPDATE revs SET current = 1", "UPDATE revs SET current = 0",
    "UPDATE revs SET current = 'x' WHERE sequence % 3 = ?",
    "UPDATE revs SET deleted = 1 - deleted WHERE sequence % 3 = ?", "UPDATE revs SET deleted = NULL",
    "UPDATE revs SET revid = 'rev' || sequence WHERE sequence % 5 = ?",
    "UPDATE revs SET revid = '0-' || sequence WHERE sequence % 5 = ?",
    "UPDATE revs SET revid = '99999999999999999999-' || sequence WHERE sequence % 5 = ?",
    "UPDATE revs SET revid = '7-' || hex(zeroblob(300)) || sequence WHERE sequence % 5 = ?",
    "UPDATE revs SET revid = CAST(x'332DFFFE' || CAST(sequence AS BLOB) AS TEXT) WHERE sequence % 5 = ?",
    "UPDATE revs SET doc_id = 1", "UPDATE revs SET doc_id = doc_id + 1000 WHERE sequence % 5 = ?",
    "UPDATE revs SET doc_id = 'x' WHERE sequence % 5 = ?",
    "UPDATE revs SET sequence = -sequence WHERE sequence % 5 = ?",
    "UPDATE revs SET sequence = sequence + 9000000000000000000",
    "UPDATE docs SET docid = '' WHERE doc_id = 1 + ?", "UPDATE docs SET docid = x'00FF' WHERE doc_id = 1 + ?",
    "UPDATE docs SET docid = docid || char(10) WHERE doc_id % 3 = ?",
    "UPDATE docs SET docid = hex(zeroblob(2000)) || doc_id WHERE doc_id % 3 = ?",
    "UPDATE docs SET doc_id = -doc_id WHERE doc_id % 3 = ?", "DELETE FROM docs WHERE doc_id % 3 = ?",
    "DELETE FROM revs WHERE sequence % 3 = ?", "DELETE FROM revs",
    "UPDATE localdocs SET docid = '_local/' || hex(zeroblob(500)) WHERE rowid = 1 + ?",
    "UPDATE localdocs SET revid = 'x-y' WHERE rowid = 1 + ?",
    "CREATE TABLE l AS SELECT * FROM localdocs; DROP TABLE localdocs; ALTER TABLE l RENAME TO localdocs; INSERT INTO localdocs SELECT docid, revid, CAST('{\"twice\":?}' AS BLOB) FROM localdocs",
    "UPDATE localdocs SET json = '[]' WHERE rowid = 1 + ?",
    "UPDATE info SET value = NULL", "UPDATE info SET value = 'x'",
    "INSERT INTO info VALUES ('max_revs', '-5')",
    "INSERT INTO info VALUES ('max_revs', '99999999999999999999')",
    "UPDATE sqlite_sequence SET seq = 'x'", "UPDATE sqlite_sequence SET seq = -3", "PRAGMA user_version = -7",
  ]

  /// Upgrades what was mutated: what comes of it has to be whole and counted.
  private func look(_ source: String, _ directory: String, _ comment: Comment) throws -> Bool {
    let target = directory + "/new.touchstone"
    try? FileManager.default.removeItem(atPath: target)
    let begun = Date()
    let report: UpgradeReport
    do {
      report = try Database.upgrade(source, to: target, options: UpgradeOptions(verifies: true))
    } catch let error as UpgradeError {
      expect(error.code != .differs, "\(comment): \(error)")
      expect(!FileManager.default.fileExists(atPath: target), comment)
      return false
    }
    expect(Date().timeIntervalSince(begun) < 20, comment)
    for (name, count) in [
      ("documents", report.documents), ("revisions", report.revisions), ("bodies", report.bodies),
      ("local documents", report.localDocuments), ("tombstones", report.tombstones),
    ] {
      expect(
        count.read, equals: count.carried + count.skipped + count.unwanted, "\(comment): \(name) \(count)")
      if count.skipped > 0 { expect(report.losses > 0, "\(comment): \(name) \(count)") }
    }
    let database = try Database.open(target, options: DatabaseOptions(isReadOnly: true))
    defer { try? database.close() }
    // Attachments that are missing are faults of the source.
    let faults = try database.check(deep: true).filter { !"\($0)".contains("blob") }
    expect(faults.isEmpty, "\(comment): \(faults.prefix(3))")
    return true
  }

  @Test("by SQL give a report or an error")
  func statements() throws {
    var carried = 0
    for version in [LegacyDatabase.Version.v10, .v13] {
      let original = try LegacyDatabaseMaker(Self.settings(version)).make("old\(version)", in: directory.path)
      let file = version == .v10 ? original : original + "/db.sqlite3"
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      for statement in Self.statements {
        for number in isLong ? [0, 1, 2] : [1] {
          try bytes.write(to: URL(fileURLWithPath: file))
          let sql = statement.replacingOccurrences(of: "?", with: "\(number)")
          do { try change(file, "PRAGMA foreign_keys = OFF; " + sql) } catch { continue }
          if try look(original, directory.path, "\(version): \(sql)") { carried += 1 }
        }
      }
    }
    expect(carried > 60)
  }

  @Test("by flipped bytes give a report or an error")
  func bytes() throws {
    var random = SeededGenerator(seed: testSeed)
    var ends = (carried: 0, refused: 0)
    let rounds = isLong ? 4_000 : 40
    for version in [LegacyDatabase.Version.v10, .v13] {
      var settings = Self.settings(version)
      settings.hasLog = false
      let original = try LegacyDatabaseMaker(settings).make("old\(version)", in: directory.path)
      let file = version == .v10 ? original : original + "/db.sqlite3"
      let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
      for round in 0..<rounds {
        var bytes = whole
        for _ in 0..<Int.random(in: 1...8, using: &random) {
          let place = Int.random(in: 0..<bytes.count, using: &random)
          switch Int.random(in: 0..<4, using: &random) {
          case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
          case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
          case 2:
            // Lengths and page numbers that are huge.
            for offset in place..<min(place + 4, bytes.count) { bytes[offset] = 0xFF }
          default:
            // A part of a page in the place of another.
            let count = min(64, bytes.count - place)
            let from = Int.random(in: 0...(bytes.count - count), using: &random)
            bytes.replaceSubrange(place..<(place + count), with: whole[from..<(from + count)])
          }
        }
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        if try look(original, directory.path, "\(version), round \(round) of seed \(testSeed)") {
          ends.carried += 1
        } else {
          ends.refused += 1
        }
      }
    }
    print("flipped bytes: \(ends.carried) carried over, \(ends.refused) refused")
    expect(ends.carried > 0 && ends.refused > 0)
  }

  @Test("in their attachments give a report")
  func attachments() throws {
    var settings = Self.settings(.v13)
    settings.attachments = 100
    settings.compressed = 60
    let source = try directory.makeOld(settings)
    let names = try FileManager.default.contentsOfDirectory(atPath: source + "/attachments").sorted()
    var random = SeededGenerator(seed: 5)
    for name in names.prefix(8) {
      let path = source + "/attachments/" + name
      var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes.removeLast(bytes.count / 3)
      case 1: bytes[bytes.count / 2] ^= 0x10
      default: bytes = []
      }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
    let report = try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
    expect(report.attachments.damaged, equals: 8, "\(report.attachments)")
    expect(report.attachments.read, equals: names.count)
    expect(report.attachments.carried, equals: names.count - 8)
    expect(report.issueCounts["damagedAttachment", default: 0] >= 8)
  }
}
