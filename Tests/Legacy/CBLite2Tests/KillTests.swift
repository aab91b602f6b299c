import TestSupport

/// Exports and imports that are killed at random moments.
@Suite("Killed exports and imports", .serialized) struct KillTests {
  private let directory = TemporaryDirectory()

  private static let rounds = isLong ? 200 : 10
  private static let more = 100
  private static let engines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted]

  /// Runs the child, and kills it at a moment that is random up to somewhat after its end.
  private struct Killing {
    /// Up to when a child is killed, in seconds, by engine: as long as the first took, then less after each that came
    /// to its end and more after the others, so that a slow beginning doesn't let the others get away.
    var latest: [EngineName: Double] = [:]
    var random: SeededGenerator

    mutating func run(_ command: String, _ database: String, _ path: String, _ engine: EngineName) throws
      -> Bool
    {
      let child = try startChild(.database, "cblite2", command, database, path, engine.rawValue)
      try child.waitForOutput()
      let begun = Date()
      if let latest = latest[engine] {
        usleep(UInt32(Double.random(in: 0...1.1, using: &random) * latest * 1e6))
        child.kill()
        try child.wait()
        self.latest[engine] = latest * (child.outputText.contains("done") ? 0.8 : 1.1)
      } else {
        try expect(child.wait(), equals: .exited(0), "\(child.outputText)\(child.errorText)")
        latest[engine] = Date().timeIntervalSince(begun)
      }
      expect(!child.outputText.contains("failed"), "\(child.outputText)")
      return child.outputText.contains("done")
    }
  }

  /// A database with something of everything, as are its exports.
  private static func source(_ path: String, _ engine: EngineName) throws -> Database {
    let database = try newDatabase(path, engine)
    try ExportTests.fill(database, seed: 3, documents: isLong ? 1_500 : 500)
    for n in 0..<40 {
      var bytes = [UInt8](repeating: UInt8(n), count: 40_000)
      bytes[7] = 1
      try database.save("with-blob-\(n)", ["file": try database.makeBlob(bytes).jsonValue])
    }
    return database
  }

  private func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test("An export is there whole or not at all, leaves the database as it is, and the next one finishes")
  func exports() throws {
    var killing = Killing(random: SeededGenerator(seed: testSeed))
    var ends = (none: 0, whole: 0)
    for engine in Self.engines { try Self.source(directory.file("db-\(engine)"), engine).close() }
    let sources = try directory.names()
    let target = directory.file("out.cblite2")
    for round in 0..<(Self.engines.count + Self.rounds + Self.more) {
      // More rounds only as long as one of the ends is missing.
      if round >= Self.engines.count + Self.rounds, ends.none > 0, ends.whole > 0 { break }
      let engine = Self.engines[round % Self.engines.count]
      let what = "round \(round) on \(engine) with seed \(testSeed)"
      let isDone = try killing.run("export", directory.file("db-\(engine)"), target, engine)
      let isWhole = isThere(target)
      expect(isWhole || !isDone, "\(what)")
      isWhole ? (ends.whole += 1) : (ends.none += 1)
      let database = try Database.open(
        directory.file("db-\(engine)"), options: DatabaseOptions(isReadOnly: true, key: try key(of: engine)))
      if !isWhole { try database.exportCBLite2(to: target) }
      // The next export removes what was left.
      let names = try directory.names().filter { !$0.hasPrefix(".") || !isWhole }
      expect(names, equals: (sources + ["out.cblite2"]).sorted(), "\(what)")
      try expect(rows(target, "PRAGMA integrity_check"), equals: ["ok"], "\(what)")
      let back = try newDatabase(directory.file("back"))
      let report = try back.importCBLite2(target)
      expect(report.missingBlobs == 0 && report.skipped == 0, "\(what): \(report)")
      try expect(differences(database, back, sequences: true), equals: [], "\(what)")
      try expectSound(database, what)
      try expectSound(back, what)
      try database.close()
      try back.close()
      try Database.delete(directory.file("back"))
      try FileManager.default.removeItem(atPath: target)
    }
    print("killed exports: \(ends.none) times nothing, \(ends.whole) times the whole")
    expect(ends.none > 0 && ends.whole > 0)
  }

  @Test("An import leaves its source as it is and a sound database, and the next one finishes it")
  func imports() throws {
    var killing = Killing(random: SeededGenerator(seed: testSeed))
    let original = try Self.source(directory.file("original"), .lmdb)
    defer { try? original.close() }
    let source = directory.file("source.cblite2")
    try original.exportCBLite2(to: source)
    let before = try files(below: source)
    let target = directory.file("target")
    var ends = (nothing: 0, part: 0, whole: 0)
    for round in 0..<(Self.engines.count + Self.rounds + Self.more) {
      if round >= Self.engines.count + Self.rounds, ends.nothing + ends.part > 0, ends.whole > 0 { break }
      let engine = Self.engines[round % Self.engines.count]
      let what = "round \(round) on \(engine) with seed \(testSeed)"
      let isDone = try killing.run("import", target, source, engine)
      try expect(files(below: source), equals: before, "\(what)")
      let database = try Database.open(target, options: try options(engine))
      try expectSound(database, what)
      if isDone {
        try expect(differences(original, database, sequences: true), equals: [], "\(what)")
      }
      let here = try Int(database.documentCount + database.tombstoneCount)
      let report = try database.importCBLite2(source)
      expect(report.documents + report.tombstones, equals: report.read - here, "\(what): \(report)")
      expect(report.unchanged == here && report.merged == 0 && report.skipped == 0, "\(what): \(report)")
      if here == 0 {
        ends.nothing += 1
      } else if here < report.read {
        ends.part += 1
      } else {
        ends.whole += 1
      }
      // Documents that come with the second import follow the first ones' sequences.
      try expect(differences(original, database), equals: [], "\(what)")
      try expectSound(database, what)
      try expect(
        directory.names(), equals: ["original.touchstone", "source.cblite2", "target.touchstone"], "\(what)")
      try database.close()
      try Database.delete(target)
    }
    print("killed imports: \(ends.nothing) times nothing, \(ends.part) times a part, \(ends.whole) times all")
    expect(ends.nothing + ends.part > 0 && ends.whole > 0)
  }
}
