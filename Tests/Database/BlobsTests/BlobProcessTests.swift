import TestSupport

@testable import Blobs
@testable import Touchstone

/// Processes that are killed, that share a database, and that run out of room.
@Suite("Blobs and processes", .serialized) struct BlobProcessTests {
  private let directory = TemporaryDirectory()

  /// The same as the child's.
  private func contents(_ number: Int) -> [UInt8] {
    let count = number % 3 == 0 ? 100_000 + number % 7 * 20_000 : 10 + number % 90
    return (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ number &* 7 ^ ($0 >> 8)) }
  }

  @Test("a blob stays until it is certain that nothing can name it again", arguments: someEngines)
  func unsyncedPurge(_ engine: EngineName) throws {
    let child = try startChild(.database, "blobs", "unsynced", "\(engine)", directory.path, "0")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
  }

  /// Kills a child again and again, and looks each time whether every document has its blobs.
  /// A child has written so many lines before it is killed: whatever the disk is, it has done something.
  private func kill(_ command: String, rounds: Int, after lines: Range<Int>, within microseconds: UInt32)
    throws
  {
    var random = SeededGenerator(seed: testSeed)
    let engines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted]
    let directories = engines.map { _ in TemporaryDirectory() }
    var saved = 0
    var compactions = 0
    for round in 0..<rounds {
      let engine = engines[round % engines.count]
      let directory = directories[round % engines.count]
      let comment = "round \(round) on \(engine), TOUCHSTONE_SEED=\(testSeed)"
      func open() throws -> Database {
        try Database.open("test", in: directory.path, options: options(engine, durability: .normal))
      }
      var database = try open()
      let next = try database.document("counter")?["n"].int.map { Int($0) + 1 } ?? 0
      try database.close()
      let child = try startChild(.database, "blobs", command, "\(engine)", directory.path, "\(next)")
      try child.waitForOutput(lines: Int.random(in: lines, using: &random))
      usleep(UInt32.random(in: 0..<microseconds, using: &random))
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(child.outputText.suffix(300))")
      let whole = child.wholeLines
      let acknowledged = whole.compactMap { Int($0) }.last
      compactions += whole.count { $0 == "compact" }

      database = try open()
      let last = try database.document("counter")?["n"].int.map { Int($0) } ?? -1
      if let acknowledged { expect(last >= acknowledged, "\(comment)") }
      try expect(database.check(deep: true).map(\.description), equals: [], "\(comment)")
      for number in max(0, last - 39)..<max(last + 1, 0) where number % 5 != 4 {
        let document = try database.document("doc\(number % 40)")
        let blob = try #require(document?["b"].blob, "\(comment)")
        try expect(database.contents(of: blob), equals: contents(number), "\(comment)")
      }
      if round >= rounds - engines.count {
        // What was left behind goes, and nothing else.
        try database.compact()
        try expect(database.blobStore.names().filter { $0.hasPrefix("incoming-") }, equals: [], "\(comment)")
        try expect(database.check(deep: true).map(\.description), equals: [], "\(comment)")
      }
      try database.close()
      saved += last + 1 - next
    }
    expect(saved > rounds, "only \(saved) saves: nothing was tested")
    if command == "compact" { expect(compactions > rounds / 3, "only \(compactions) compactions") }
  }

  @Test("a process killed while it saves leaves no document without its blob")
  func killedSaving() throws {
    try kill("save", rounds: times(8, sanitized: 12, long: 200), after: 1..<12, within: 50_000)
  }

  @Test("a process killed while it compacts leaves no document without its blob")
  func killedCompacting() throws {
    try kill("compact", rounds: times(8, sanitized: 12, long: 200), after: 2..<16, within: 100_000)
  }

  @Test(
    "processes that save, purge and compact the same contents lose nothing",
    arguments: [EngineName.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted])
  func churn(_ engine: EngineName) throws {
    try Database.open("test", in: directory.path, options: try options(engine)).close()
    let children = try (0..<3).map { _ in
      try startChild(.database, "blobs", "churn", "\(engine)", directory.path, isLong ? "20" : "2")
    }
    for child in children {
      try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    }
    let database = try Database.open("test", in: directory.path, options: try options(engine))
    try expect(database.check(deep: true).map(\.description), equals: [])
    try database.close()
  }

  @Test("a full disk refuses a blob, leaves nothing of it, and passes", arguments: someEngines)
  func fullDisk(_ engine: EngineName) throws {
    let child = try startChild(.database, "blobs", "full", "\(engine)", directory.path, "\(8 << 20)")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    expect(child.outputText, equals: "done\n")
    let database = try Database.open("test", in: directory.path, options: try options(engine))
    try expect(database.documentCount, equals: 2)
    try expect(database.check(deep: true).map(\.description), equals: [])
    try expect(database.blobStore.names().count, equals: 2)
    try database.close()
  }

  @Test("a large blob takes little memory, plain and encrypted", arguments: [EngineName.sqlite, .sqlcipher])
  func memory(_ engine: EngineName) throws {
    // What a process takes under a sanitizer is the sanitizer's.
    let child = try startChild(
      .database, "blobs", "stream", "\(engine)", directory.path, isLong ? "1024" : "64")
    try expect(child.wait(seconds: 600), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    let growth = Int(child.outputText.split(separator: "\n").first ?? "") ?? .max
    print("\(engine): \(growth) KiB for \(isLong ? 1_024 : 64) MiB")
    if !isSanitized { expect(growth < 16 << 10) }
  }
}
