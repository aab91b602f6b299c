import Datasets
import TestSupport

/// Databases in ForestDB that are made for the purpose: what the maker knows of each document is what the result has to have.
@Suite("ForestDB databases that are made") struct MadeForestDBTests {
  private let directory = TemporaryDirectory()

  static func settings(_ platform: LegacyDatabase.Platform = .ios) -> LegacyDatabase {
    var settings = MadeDatabasesTests.settings(platform, .v13)
    settings.oddRevisionIDs = 0
    return settings
  }

  static let shapes: [LegacyForestDB] = [1, 2].flatMap { version in
    [(0, false), (1, true), (4, false), (4, true)].map { flush, endsFlushed in
      var shape = LegacyForestDB()
      shape.version = version
      (shape.flush, shape.endsFlushed) = (flush, endsFlushed)
      return shape
    }
  }

  private func check(
    _ settings: LegacyDatabase, _ shape: LegacyForestDB, _ engine: EngineName = .sqlite
  ) throws {
    let directory = TemporaryDirectory()
    let old = directory.path + "/old"
    try FileManager.default.createDirectory(atPath: old, withIntermediateDirectories: true)
    let source = try LegacyForestDBMaker(settings, shape).make("old", in: old)
    let before = try Files(old)
    let report = try Database.upgrade(
      source, to: directory.new, engine: engine, key: try key(of: engine),
      options: UpgradeOptions(verifies: true, sourceKey: try settings.key.map { try .raw($0) }))
    try expect(Files(old), equals: before)
    expect(report.verifiedDocuments, equals: settings.documents, "\(shape)")
    expect(report.issues.isEmpty, "\(shape): \(report.issues.prefix(3))")
    expect(report.checkpoints.read == 1 && report.isEncrypted == (settings.key != nil))
    try compareMade(directory.new, settings, report, key: try key(of: engine))
  }

  @Test("come over whole from the log, from the trie, and from both", arguments: shapes)
  func places(_ shape: LegacyForestDB) throws {
    try check(
      Self.settings(shape.version == 1 ? .android : .ios), shape, shape.version == 1 ? .lmdb : .sqlite)
  }

  @Test(
    "come over whole when blocks are used again", arguments: isLong ? [2, 3, 7, 20] : [2, 7],
    isLong ? [1, 2, 6, 20] : [1, 20])
  func reuse(_ flush: Int, _ times: Int) throws {
    var settings = Self.settings()
    settings.documents = 400
    settings.compacted = 100
    settings.seed = testSeed
    var shape = LegacyForestDB()
    shape.version = 2
    shape.flush = flush
    shape.reuses = times
    try check(settings, shape)
    shape.endsFlushed = true
    try check(settings, shape)
  }

  @Test("come over whole with large and many documents, and encrypted", arguments: [1, 2])
  func large(_ version: Int) throws {
    var settings = Self.settings()
    settings.documents = 3_000
    settings.history = 2
    settings.conflicts = 5
    settings.attachments = 0
    settings.key = LegacyDatabase.key(password: "letmein", platform: .net)
    // IDs that are alike in many pieces, that are one the beginning of the other, and that end with zeros.
    settings.documentID = { number in
      switch number % 4 {
      case 0: String(repeating: "alike/", count: 20) + "\(number)"
      case 1: String(repeating: "x", count: 1 + number / 4 % 400) + "\(number)"
      case 2: "doc-\(number)"
      default: "\u{e9}t\u{e9} \(number * 7_919 % 1_000_003)"
      }
    }
    settings.body = { number, revision in
      let text = String(repeating: "\(number * 7_919 % 1_000) ", count: number % 500 == 0 ? 30_000 : 5)
      return Array("{\"n\":\(number),\"revision\":\(revision),\"text\":\"\(text)\"}".utf8)
    }
    var shape = LegacyForestDB()
    shape.version = version
    shape.commit = 500
    shape.flush = 3
    try check(settings, shape, .lmdb)
  }

  @Test("are found after an interrupted compaction, and after one that wasn't noted", arguments: [1, 2])
  func compaction(_ version: Int) throws {
    for compaction in [LegacyForestDB.Compaction.interrupted, .unnoticed] {
      var shape = LegacyForestDB()
      shape.version = version
      shape.flush = 5
      shape.compaction = compaction
      try check(Self.settings(), shape)
    }
    // The same without the file that says which one counts.
    var shape = LegacyForestDB()
    shape.version = version
    for compaction in LegacyForestDB.Compaction.allCases {
      shape.compaction = compaction
      let directory = TemporaryDirectory()
      let source = try LegacyForestDBMaker(Self.settings(), shape).make("old", in: directory.path)
      try FileManager.default.removeItem(atPath: source + "/db.forest.meta")
      let report = try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
      expect(report.documents.carried == Self.settings().documents && report.losses == 0, "\(compaction)")
    }
  }

  @Test("give the winners alone when that is asked for")
  func winners() throws {
    var settings = Self.settings()
    settings.history = 30
    settings.compacted = 0
    let source = try LegacyForestDBMaker(settings, LegacyForestDB()).make("old", in: directory.path)
    let report = try Database.upgrade(
      source, to: directory.new, options: UpgradeOptions(carry: .winners, verifies: true))
    expect(report.localDocuments.unwanted == 7 && report.localDocuments.carried == 0)
    expect(report.expirations.carried == 0 && report.conflicts.carried == 0)
    let database = try directory.openNew()
    defer { try? database.close() }
    for number in 0..<settings.documents {
      let document = settings.document(number)
      let revisions = try #require(try database.revisions(of: document.id))
      expect(revisions[0].id.description, equals: document.revisions[winningRevision(document)].id)
      expect(revisions.count <= 20 && revisions.count { $0.isLeaf } == 1)
    }
  }

  @Test("are upgraded in place, by their directory or by a file in it")
  func inPlace() throws {
    let source = try LegacyForestDBMaker(Self.settings(), LegacyForestDB()).make("old", in: directory.path)
    try Data("a view".utf8).write(to: URL(filePath: source + "/by.type.viewindex.0"))
    try Data("a view".utf8).write(to: URL(filePath: source + "/by.type.viewindex.meta"))
    let report = try Database.upgradeInPlace(source + "/db.forest.0")
    expect(report.documents.carried == 150 && report.views.unwanted == 1)
    try expect(directory.names(), equals: ["old.cblite2", "old.touchstone"])
    try FileManager.default.removeItem(atPath: directory.path + "/old.touchstone")
    try Database.upgradeInPlace(source, removesSource: true)
    try expect(directory.names(), equals: ["old.touchstone"])
    let database = try Database.open(directory.path + "/old")
    expect(database.privateUUID, equals: "1d9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b1")
    try database.close()
  }

  @Test("happen at the opening")
  func opening() throws {
    let source = try LegacyForestDBMaker(Self.settings(), LegacyForestDB()).make("old", in: directory.path)
    let before = try Files(source)
    let database = try Database.open(
      "old", in: directory.path, options: DatabaseOptions(engine: .lmdb, upgrade: UpgradeOptions()))
    try expect(database.document("doc-3") != nil)
    try database.close()
    try expect(Files(source), equals: before)
  }

  @Test("are told to be changing when they change while they are read")
  func changed() throws {
    var settings = Self.settings()
    settings.documents = 3_000
    let source = try LegacyForestDBMaker(settings, LegacyForestDB()).make("old", in: directory.path)
    let code = try upgradeCode {
      try Database.upgrade(source, to: directory.new) { progress in
        guard progress.phase == .copying, progress.done == 512 else { return }
        let file = try FileHandle(forWritingTo: URL(filePath: source + "/db.forest.0"))
        try file.seekToEnd()
        try file.write(contentsOf: Data(count: 4_096))
        try file.close()
      }
    }
    expect(code, equals: .changed)
    try expect(directory.names(), equals: ["old.cblite2"])
  }
}
