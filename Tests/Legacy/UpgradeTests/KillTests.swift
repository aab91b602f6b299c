import Datasets
import TestSupport

/// Upgrades that are killed at random moments.
@Suite("Killed upgrades", .serialized) struct KillTests {
  @Test(
    "leave the old database as it is, the new one whole or not at all, and the next one finishes",
    arguments: ["SQLite", "ForestDB"])
  func kills(_ storage: String) throws {
    let directory = TemporaryDirectory()
    var settings = MadeDatabasesTests.settings(.ios, .v13)
    settings.documents = 400
    settings.hasLog = true
    let old = directory.path + "/old"
    try FileManager.default.createDirectory(atPath: old, withIntermediateDirectories: true)
    let source: String
    if storage == "SQLite" {
      source = try LegacyDatabaseMaker(settings).make("old", in: old)
    } else {
      settings.oddRevisionIDs = 0
      var shape = LegacyForestDB()
      (shape.version, shape.flush) = (2, 20)
      source = try LegacyForestDBMaker(settings, shape).make("old", in: old)
    }
    let before = try Files(old)
    var random = SeededGenerator(seed: testSeed)
    let target = directory.path + "/new.touchstone"
    // Up to when a child is killed: as long as whole ones took, then less after each that came to its end, so that
    // a slow beginning doesn't let the others get away.
    var latest = 0.0
    var ends = (none: 0, whole: 0)
    let rounds = times(9, sanitized: 20, long: 200)
    // More rounds only as long as one of the ends is missing.
    for round in 0...(rounds + 100) {
      if round > rounds, ends.none > 0, ends.whole > 0 { break }
      try? FileManager.default.removeItem(atPath: target)
      let engine = [EngineName.sqlite, .lmdb, .sqlcipher][round % 3]
      let comment: Comment = "round \(round) with seed \(testSeed)"
      let child = try startChild(.database, "upgrade", source, target, engine.rawValue)
      try child.waitForOutput()
      let begun = Date()
      if round < 3 {
        try expect(child.wait(), equals: .exited(0), "\(child.outputText)")
        latest = max(latest, Date().timeIntervalSince(begun))
      } else {
        usleep(UInt32(Double.random(in: 0...1.1, using: &random) * latest * 1e6))
        child.kill()
        try child.wait()
        expect(!child.outputText.contains("failed"), "\(child.outputText)")
      }
      try expect(Files(old), equals: before, comment)
      let isThere = Database.exists(target)
      expect(isThere, equals: FileManager.default.fileExists(atPath: target), comment)
      expect(isThere || !child.outputText.contains("done"), comment)
      isThere ? (ends.whole += 1) : (ends.none += 1)
      if round >= 3 { latest *= isThere ? 0.8 : 1.1 }
      if !isThere {
        try Database.upgrade(source, to: target, engine: engine, key: try key(of: engine))
        // It removes what was left.
        try expect(directory.names(), equals: ["new.touchstone", "old"], comment)
      }
      if round % 4 == 3 || isLong {
        let database = try Database.open(
          target, options: DatabaseOptions(isReadOnly: true, key: try key(of: engine)))
        try expect(database.check(deep: true).isEmpty, comment)
        let live = (0..<settings.documents).count {
          let document = settings.document($0)
          return !document.revisions[winningRevision(document)].isDeleted
        }
        try expect(database.documentCount, equals: live, comment)
        try database.close()
      }
    }
    print("kills with \(storage): \(ends.none) times nothing, \(ends.whole) times the whole")
    expect(ends.none > 0 && ends.whole > 0)
  }
}
