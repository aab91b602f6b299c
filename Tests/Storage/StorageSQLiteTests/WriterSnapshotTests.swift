import SQLiteLibrary
import Synchronization
import TestTools

@testable import StorageSQLite

/// The snapshot that the writer keeps from one transaction to the next.
struct WriterSnapshotTests {
  let directory = TemporaryDirectory()

  /// A second writer of the engine's file, whose timer runs when the test says so.
  private final class Writer: @unchecked Sendable {
    let engine: SQLiteEngine
    let queue = GroupCommit()
    let driver: SQLiteWriter
    let timer = ManualTimer()
    let keyspace: Keyspace

    init(_ engine: SQLiteEngine) throws {
      self.engine = engine
      keyspace = try engine.fill(count: 1, bytes: 1)
      let connection = try engine.file.connect(cacheBytes: 1 << 20, vfs: engine.file.library.logLayer)
      driver = try SQLiteWriter(
        EngineConnection(connection, path: engine.path, places: engine.file.places, cacheRank: .whole), queue,
        engine.log, timer: timer)
      let snapshot = driver.snapshot
      engine.log.givesUpSnapshots.withLock { $0 = { snapshot.giveUp() } }
    }

    var isHeld: Bool { driver.snapshot.isHeld }

    func write(_ body: (any WriteTransaction) throws -> Void) throws { try queue.run(driver, body) }

    func put(_ number: Int, _ value: [UInt8]) throws {
      try write { try $0.put(key(number), value, in: keyspace) }
    }

    /// Commits until the snapshot is kept. On a busy machine a commit may come too late after the one before.
    func writeUntilHeld() throws {
      var commits = 0
      while !isHeld {
        try put(0, [UInt8(commits & 0xFF)])
        commits += 1
        try #require(commits < 1_000_000)
      }
    }

    func close() throws {
      driver.close()
      try engine.close()
    }
  }

  @Test(arguments: Kind.all) func theSnapshotIsKeptForOneRound(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    try writer.writeUntilHeld()
    expect(writer.timer.count, equals: 1)
    writer.timer.advance(by: ReaderPool.roundSeconds)
    expect(!writer.isHeld)
    expect(writer.timer.count, equals: 0)
    // The round ends while a transaction is open.
    try writer.writeUntilHeld()
    try writer.write { transaction in
      try transaction.put(key(1), [1], in: writer.keyspace)
      writer.timer.advance(by: ReaderPool.roundSeconds)
      expect(writer.isHeld)
    }
    expect(!writer.isHeld)
    try writer.writeUntilHeld()
    try writer.close()
  }

  @Test(arguments: Kind.all) func aTransactionSeesWhatOthersHaveCommitted(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    for number in 0..<UInt8(100) {
      try writer.writeUntilHeld()
      var lineage: UInt64 = 0
      try writer.write { lineage = try #require(try $0.lineage) }
      // A transaction without changes is a commit too.
      try writer.engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(1), [number], in: writer.keyspace)
      }
      try writer.write { transaction in
        try expect(transaction.bytes(key(1), in: writer.keyspace), equals: [number])
        try expect(transaction.lineage != lineage)
        try transaction.put(key(2), [number], in: writer.keyspace)
      }
      try expect(writer.engine.read { try $0.bytes(key(2), in: writer.keyspace) }, equals: [number])
    }
    try writer.close()
  }

  @Test(arguments: Kind.all) func aTransactionWaitsForAnotherWriter(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    try writer.writeUntilHeld()
    nonisolated(unsafe) let other = try writer.engine.file.connect(cacheBytes: 0)
    try other.execute("BEGIN IMMEDIATE")
    let table = "k\(writer.keyspace.number)"
    let isWriting = Atomic(false)
    try onThreads(2) { thread in
      guard thread == 0 else {
        while !isWriting.load(ordering: .acquiring) { sched_yield() }
        try other.execute("UPDATE \(table) SET value = x'07'; COMMIT")
        return
      }
      isWriting.store(true, ordering: .releasing)
      try writer.write { transaction in
        try expect(transaction.bytes(key(0), in: writer.keyspace), equals: [7])
        try transaction.put(key(0), [8], in: writer.keyspace)
      }
    }
    try expect(writer.engine.read { try $0.bytes(key(0), in: writer.keyspace) }, equals: [8])
    other.close()
    try writer.close()
  }

  @Test(arguments: Kind.all) func failuresAndDropsEndWhatIsKept(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    try writer.writeUntilHeld()
    struct Refusal: Error {}
    #expect(throws: Refusal.self) {
      try writer.write { transaction in
        try transaction.put(key(0), [99, 99], in: writer.keyspace)
        throw Refusal()
      }
    }
    expect(!writer.isHeld)
    try writer.writeUntilHeld()
    try expect(writer.engine.read { try $0.bytes(key(0), in: writer.keyspace)?.count }, equals: 1)
    try writer.write { _ = try $0.createKeyspace("other", shape: .entries) }
    try writer.writeUntilHeld()
    try writer.write { try $0.dropKeyspace($0.createKeyspace("other", shape: .entries)) }
    try expect(writer.engine.read { try $0.keyspaces().keys.sorted() }, equals: ["k"])
    try writer.writeUntilHeld()
    try writer.close()
  }

  /// The log starts again after checkpoints of this process.
  @Test(arguments: Kind.all) func theLogStartsAgain(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let value = [UInt8](repeating: 3, count: 3_000)
    var held = 0
    var commits = 0
    while commits < 10_000 || held == 0 {
      try engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(commits % 10), value, in: keyspace)
      }
      if try engine.writer().snapshot.isHeld { held += 1 }
      commits += 1
      try #require(commits < 1_000_000)
    }
    // 10,000 commits wrote 40 MB and more; 1,000 pages are followed by a checkpoint.
    let bytes = SQLiteFile.size(path + "-wal") ?? 0
    expect(bytes < 10 << 20, "the log has grown to \(bytes) bytes")
    try engine.compact()
    expect(SQLiteFile.size(path + "-wal"), equals: 0)
    try engine.close()
  }

  /// A checkpoint of somebody else waits for a round at most.
  @Test(arguments: Kind.all) func othersCopyTheLogAfterARound(_ kind: Kind) throws {
    let path = directory.file("a")
    let writer = try Writer(kind.open(path))
    try writer.writeUntilHeld()
    let other = try writer.engine.file.connect(cacheBytes: 0)
    writer.timer.advance(by: ReaderPool.roundSeconds)
    try expect(other.integer("PRAGMA wal_checkpoint(TRUNCATE)"), equals: 0)
    expect(SQLiteFile.size(path + "-wal"), equals: 0)
    other.close()
    try writer.writeUntilHeld()
    try writer.close()
  }

  /// Commits of all sizes, each in a file that another connection reads without the writer's memory.
  @Test(arguments: Kind.all) func framesThatAreWrittenTogetherAreAllThere(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    var wanted: [Int: [UInt8]] = [:]
    for round in 0..<(isShort ? 22 : 60) {
      try writer.write { transaction in
        for number in 0..<(round % 7 == 0 ? 200 : round % 3) {
          let place = (round * 31 + number) % 300
          let value = [UInt8](repeating: UInt8(round), count: (round * 977 + number * 131) % 9_000)
          try transaction.put(key(place), value, in: writer.keyspace)
          wanted[place] = value
        }
      }
      let reader = try writer.engine.file.connect(cacheBytes: 1 << 20)
      try expect(reader.string("PRAGMA integrity_check"), equals: "ok")
      reader.close()
      for (place, value) in wanted {
        try expect(writer.engine.read { try $0.bytes(key(place), in: writer.keyspace) }, equals: value)
      }
    }
    // The pages that don't fit the cache are written before the commit, and some of them again.
    _ = try writer.driver.connection.connection.integer("PRAGMA cache_size = 10")
    for round in 0..<5 {
      try writer.write { transaction in
        for number in 0..<2_000 {
          try transaction.put(
            key(number % 700), [UInt8](repeating: UInt8(round), count: 2_000 + number), in: writer.keyspace)
        }
      }
      try expect(writer.engine.checkIntegrity(), equals: [])
    }
    try writer.close()
  }

  /// Two engines' writers and a reader, at the same time. Every commit counts, and none is lost.
  @Test(arguments: Kind.all) func twoWritersCountTogether(_ kind: Kind) throws {
    let writer = try Writer(kind.open(directory.file("a")))
    // The writers have a queue each, as those of two processes. No checkpoint of one may touch the connection of the other.
    writer.engine.log.givesUpSnapshots.withLock { $0 = nil }
    try writer.put(0, [0, 0])
    let commits = 600
    @Sendable func count(_ transaction: any WriteTransaction) throws {
      let old = try #require(try transaction.bytes(key(0), in: writer.keyspace))
      let next = Int(old[0]) + Int(old[1]) << 8 + 1
      try transaction.put(key(0), [UInt8(next & 0xFF), UInt8(next >> 8)], in: writer.keyspace)
    }
    try onThreads(2) { thread in
      for number in 0..<commits {
        if thread == 0 { try writer.write(count) } else { try writer.engine.write(count) }
        // Sometimes one of them commits alone for a while.
        if (number / 50) % 2 == thread { sched_yield() }
      }
    }
    let last = try #require(try writer.engine.read { try $0.bytes(key(0), in: writer.keyspace) })
    expect(Int(last[0]) + Int(last[1]) << 8, equals: 2 * commits)
    try expect(writer.engine.checkIntegrity(), equals: [])
    try writer.close()
  }
}
