import TestSupport

@testable import Touchstone

@Suite("Automatic compaction") struct CompactionPolicyTests {
  private let databases = TestDatabases()

  private static let ofFreePages = CompactionPolicy(
    replacedBodies: nil, freePages: 0.3, minimumFreeBytes: 1 << 20, quietSeconds: 0.05)

  @Test(
    "bodies of replaced revisions go when they outnumber the documents, the latest stay",
    arguments: someEngines)
  func replacedBodies(_ engine: EngineName) throws {
    let policy = CompactionPolicy(replacedBodies: 0.4, keepsLatestSequences: 1_500)
    try withDatabase(engine, { $0.compaction = policy }) { database in
      let token = try database.observe { _ in }
      for _ in 0..<9 {
        try database.inBatch { for n in 0..<1_000 { try database.save("doc\(n)", ["n": .int(Int64(n))]) } }
      }
      // It looks after the 9,000th change: revisions from 7,501 on keep their bodies, and those up to 8,000 were
      // replaced.
      try eventually { try database.store.bodyCounts().replaced == 500 }
      try expect(database.documentCount, equals: 1_000)
      try expect(storageFaults(database), equals: [])
      token.cancel()
    }
  }

  @Test("the file is made smaller when asked for, and nothing is written", arguments: someEngines)
  func freePages(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.compaction = Self.ofFreePages }
    let text = String(repeating: "text ", count: 200)
    try database.inBatch { for n in 0..<5_000 { try database.save("doc\(n)", ["text": .string(text)]) } }
    let before = try database.engine.maintenance.statistics()
    try database.inBatch { for n in 0..<4_500 { try database.purge("doc\(n)") } }
    try database.inBatch { for n in 0..<4_500 { try database.save("new\(n)", ["n": 1]) } }
    try eventually { try database.engine.maintenance.statistics().totalPages * 2 < before.totalPages }
    try expect(database.documentCount, equals: 5_000)
    try expect(database.checkIntegrity(), equals: [])
    try expect(storageFaults(database), equals: [])
  }

  @Test("purges and expirations count: the file is made smaller after them", arguments: someEngines)
  func purges(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.compaction = Self.ofFreePages }
    let text = String(repeating: "text ", count: 400)
    try database.inBatch { for n in 0..<3_900 { try database.save("doc\(n)", ["text": .string(text)]) } }
    let before = try database.engine.maintenance.statistics()
    try database.inBatch { for n in 0..<2_000 { try database.purge("doc\(n)") } }
    try database.inBatch { for n in 2_000..<3_800 { try database.setExpiration(of: "doc\(n)", after: -1) } }
    try eventually { try database.documentCount == 100 }
    try eventually { try database.engine.maintenance.statistics().totalPages * 4 < before.totalPages }
    try expect(database.lastSequence, equals: 3_900)
    try expect(storageFaults(database), equals: [])
  }

  @Test("blobs that nothing names any more are collected", arguments: someEngines)
  func blobs(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.durability = .normal }
    let kept = try database.makeBlob([1])
    let purged = try database.makeBlob([2])
    try database.save("kept", ["blob": kept.jsonValue])
    try database.save("purged", ["blob": purged.jsonValue])
    try database.inBatch { for n in 0..<1_500 { try database.save("doc\(n)", ["n": 1]) } }
    try expect(database.store.blobs?.files().count, equals: 2)
    try database.purge("purged")
    try database.inBatch { for n in 0..<1_400 { try database.purge("doc\(n)") } }
    try eventually { try database.store.blobs?.files().count == 1 }
    try expect(database.contents(of: kept), equals: [1])
    try expect(!database.contains(purged))
  }

  /// What `DatabaseOptions` begins with, but for the wait.
  private static func standard(_ change: (inout CompactionPolicy) -> Void = { _ in }) -> CompactionPolicy {
    var policy = CompactionPolicy.standard
    policy.quietSeconds = 0.02
    change(&policy)
    return policy
  }

  /// Saves 1,200 documents of so many bytes and purges all but twelve.
  private func fillAndPurge(_ database: Database, bytes: Int = 16_000) throws {
    let text = String(repeating: "some ", count: bytes / 5)
    try database.inBatch { for n in 0..<1_200 { try database.save("doc\(n)", ["text": .string(text)]) } }
    try database.inBatch { for n in 12..<1_200 { try database.purge("doc\(n)") } }
  }

  @Test("by default the file becomes small when most of it was purged", arguments: someEngines)
  func byDefault(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.compaction = Self.standard() }
    try fillAndPurge(database)
    // WiredTiger keeps the file of its log that it writes, which may have 5 MiB. The documents had 19 MB.
    let small = engine == .wiredtiger ? 8 << 20 : 1 << 20
    try eventually { try database.engine.maintenance.statistics().fileBytes < small }
    try expect(database.documentCount, equals: 12)
    try expect(storageFaults(database), equals: [])
  }

  @Test("what an earlier open left is done after the next", arguments: someEngines)
  func afterOpening(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    options.compaction = .off
    var database = try Database.open("test", in: directory.path, options: options)
    try fillAndPurge(database)
    try database.close()
    options.compaction = Self.standard()
    database = try Database.open("test", in: directory.path, options: options)
    try eventually { try database.engine.maintenance.statistics().fileBytes < 1 << 20 }
    try database.close()
  }

  @Test("a small file stays as it is, and one with much to copy", arguments: someEngines)
  func limits(_ engine: EngineName) throws {
    let much = Self.standard { ($0.minimumFreeBytes, $0.maximumCopiedBytes) = (1 << 18, 1 << 15) }
    for policy in [Self.standard(), much] {
      try withDatabase(engine, { $0.compaction = policy }) { database in
        let file = database.engine.location
        try fillAndPurge(database, bytes: 4_000)
        database.open.upkeep?.waitForLooks()
        // An engine that can't compact in place gets a new file.
        expect(database.engine.location, equals: file)
        let statistics = try database.engine.maintenance.statistics()
        expect(statistics.freePages * 2 > statistics.totalPages)
        // WiredTiger gives the unused end of its file back when it writes a checkpoint.
        if engine != .wiredtiger { expect(statistics.freePages * statistics.pageBytes > 1 << 21) }
      }
    }
  }

  @Test("a smaller file keeps the bodies of the latest revisions", arguments: someEngines)
  func keepsBodies(_ engine: EngineName) throws {
    try withDatabase(engine, { $0.compaction = Self.standard { $0.minimumFreeBytes = 1 << 20 } }) {
      database in
      try database.save("doc0", ["n": 1])
      try fillAndPurge(database, bytes: 4_000)
      try eventually { try database.engine.maintenance.statistics().fileBytes < 1 << 20 }
      try expect(database.store.bodyCounts().replaced, equals: 1)
    }
  }

  @Test("beside writers, a long reader and a live query nothing is lost", arguments: someEngines)
  func besideOthers(_ engine: EngineName) throws {
    let policy = CompactionPolicy(
      replacedBodies: 0.05, keepsLatestSequences: 5, freePages: 0.01, minimumFreeBytes: 1, quietSeconds: 0)
    try withDatabase(engine, { $0.compaction = policy }) { database in
      let rows = Lock<[String]>([])
      let query = try database.query("SELECT COUNT(*) AS count, SUM(n) AS sum FROM _")
      let live = try database.observe(query) { outcome in
        let lines = (try? outcome.get().map { try $0.json() }) ?? ["\(outcome)"]
        rows.withLock { $0 = lines }
      }
      let writers = 2
      try onThreads(writers + 2) { thread in
        switch thread - writers {
        case 0:
          for _ in 0..<100 {
            database.open.upkeep?.manyChangesWereMade()
            usleep(3_000)
          }
        case 1:
          for _ in 0..<8 {
            try database.read { snapshot in
              func state() throws -> [String] {
                try snapshot.documents().map { try "\($0.id) \($0.revisionID) \($0.json())" }
              }
              let before = try state()
              usleep(30_000)
              if try state() != before { throw ConformanceFailure("a snapshot has changed") }
            }
          }
        default:
          for number in 0..<100 {
            let id = "t\(thread)-\(number % 10)"
            let blob = try database.makeBlob("\(thread) \(number)".utf8)
            try database.inBatch {
              try database.save(id, ["n": .int(Int64(number)), "k\(number)": 1, "blob": blob.jsonValue])
              if number % 7 == 6 { try database.purge(id) }
            }
          }
        }
      }
      database.open.upkeep?.waitForLooks()
      for thread in 0..<writers {
        for number in 90..<100 {
          let document = try database.document("t\(thread)-\(number % 10)")
          expect((document == nil), equals: (number % 7 == 6))
          guard let document else { continue }
          expect(document["n"].int == Int64(number) && document["k\(number)"].int == 1)
          let blob = try #require(document["blob"].blob)
          try expect(database.contents(of: blob), equals: Array("\(thread) \(number)".utf8))
        }
      }
      try eventually { try rows.withLock { $0 } == query.run().map { try $0.json() } }
      live.cancel()
      try expect(storageFaults(database), equals: [])
      try expect(database.check(deep: true), equals: [])
    }
  }

  @Test("with the policy off nothing happens by itself")
  func off() throws {
    let database = try databases.open(.lmdb) { $0.compaction = .off }
    for _ in 0..<20 {
      try database.inBatch { for n in 0..<1_000 { try database.save("doc\(n)", ["n": .int(Int64(n))]) } }
    }
    try expect(database.store.bodyCounts().replaced, equals: 19_000)
  }
}
