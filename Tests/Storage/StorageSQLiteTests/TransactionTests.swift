import SQLiteLibrary
import Synchronization
import TestTools

@testable import StorageSQLite

struct TransactionTests {
  let directory = TemporaryDirectory()

  @Test(arguments: Kind.all) func aSnapshotIsOfItsFirstMoment(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 1, bytes: 1, text: 1)
    let snapshot = try engine.beginRead()
    try engine.write { (transaction: any WriteTransaction) in
      try transaction.put(key(0), [2], in: keyspace)
      try transaction.put(key(1), [2], in: keyspace)
    }
    for _ in 0..<3 {
      try expect(snapshot.bytes(key(0), in: keyspace), equals: [1])
      try expect(snapshot.bytes(key(1), in: keyspace) == nil)
      try expect(snapshot.count(of: keyspace), equals: 1)
    }
    snapshot.end()
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 2)
    try engine.close()
  }

  /// The reader that runs alone has the whole cache, whichever snapshot ended last.
  @Test(arguments: Kind.all) func theLargestIdleCacheIsTakenFirst(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let pool = engine.readers
    let connections = try (0..<4).map { _ in try pool.take() }
    expect(connections.map(\.cacheRank), equals: [.whole, .half, .eighth, .eighth])
    for index in [2, 0, 3, 1] { pool.give(connections[index]) }
    for _ in 0..<3 {
      let alone = try pool.take()
      expect(alone.cacheRank, equals: .whole)
      pool.give(alone)
    }
    let again = try (0..<4).map { _ in try pool.take() }
    expect(again.map(\.cacheRank), equals: [.whole, .half, .eighth, .eighth])
    again.forEach(pool.give)
    try engine.close()
  }

  @Test(arguments: Kind.all) func aFullFileFailsTheTransactionAndNothingOfItRemains(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 10, bytes: 10)
    let database = try engine.idleWriter()
    let pages = try #require(try database.integer("PRAGMA page_count"))
    _ = try database.integer("PRAGMA max_page_count = \(pages + 20)")
    let value = [UInt8](repeating: 7, count: 1_000)
    let failure = try storageCode {
      try engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(3), [1], in: keyspace)
        for number in 0..<1_000 { try transaction.put(key(number), value, in: keyspace) }
      }
    }
    expect(failure, equals: .diskFull)
    // Who goes on after the failure gets it again, and nothing of it is committed alone.
    let swallowed = try storageCode {
      try engine.write { (transaction: any WriteTransaction) in
        for number in 0..<1_000 { try? transaction.put(key(number), value, in: keyspace) }
      }
    }
    expect(swallowed, equals: .diskFull)
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 10)
    try expect(engine.read { try $0.bytes(key(3), in: keyspace)?.count }, equals: 10)
    try expect(engine.checkIntegrity(), equals: [])
    _ = try database.integer("PRAGMA max_page_count = 1000000")
    try engine.fill(count: 1_000, bytes: 1_000)
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 1_000)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
  }

  @Test(arguments: Kind.all) func countsFollowEveryPartAndEveryRollback(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 100, bytes: 10)
    struct Stop: Error {}
    // Writers that wait share a commit; every third fails.
    let failures = Atomic(0)
    try onThreads(60) { number in
      do {
        try engine.write { (transaction: any WriteTransaction) in
          for index in 0..<5 { try transaction.put(key(1_000 + number * 5 + index), [1], in: keyspace) }
          try transaction.put(key(number), [2], in: keyspace)
          if number % 3 == 0 { throw Stop() }
        }
      } catch is Stop { failures.wrappingAdd(1, ordering: .relaxed) }
    }
    let failed = failures.load(ordering: .relaxed)
    expect(failed, equals: 20)
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 100 + 40 * 5)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
  }

  @Test(arguments: Kind.all) func puttingLearnsWhetherKeysAreThereAndIsRightEitherWay(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    var generator = SeededGenerator(seed: testSeed)
    for shape in KeyspaceShape.allCases {
      let keyspace: Keyspace = try engine.write { try $0.createKeyspace("\(shape)", shape: shape) }
      var model: [[UInt8]: [UInt8]] = [:]
      try engine.write { (transaction: any WriteTransaction) in
        for _ in 0..<3_000 {
          let number = UInt64.random(in: 0..<300, using: &generator)
          let key = withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
          if Bool.random(using: &generator) {
            let value = generator.bytes(Int.random(in: 0...30, using: &generator))
            try transaction.put(key, value, in: keyspace)
            model[key] = value
          } else {
            let was = try key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
            expect(was, equals: (model.removeValue(forKey: key) != nil), "seed \(testSeed)")
          }
        }
        try expect(transaction.count(of: keyspace), equals: model.count, "seed \(testSeed)")
      }
      let found: [[UInt8]: [UInt8]] = try engine.read { transaction in
        var found: [[UInt8]: [UInt8]] = [:]
        try transaction.scan(keyspace) { key, value in
          found[[UInt8](copying: key)] = [UInt8](copying: value)
          return true
        }
        for key in model.keys where try transaction.bytes(key, in: keyspace) != found[key] { return [:] }
        return found
      }
      expect(found, equals: model, "seed \(testSeed)")
    }
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
  }

  @Test(arguments: Kind.all) func aWriterWaitsForAnotherConnection(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 1, bytes: 1)
    nonisolated(unsafe) let other = try engine.file.connect(cacheBytes: 0)
    try other.execute("BEGIN IMMEDIATE")
    // The lock is let go after the writer has begun to wait, and never before the flag is set.
    let isReleased = Atomic(false)
    let thread = Thread {
      Thread.sleep(forTimeInterval: 0.05)
      isReleased.store(true, ordering: .sequentiallyConsistent)
      try? other.execute("COMMIT")
    }
    thread.start()
    try engine.write { (transaction: any WriteTransaction) in
      let wasReleased = isReleased.load(ordering: .sequentiallyConsistent)
      expect(wasReleased)
      try transaction.put(key(0), [9], in: keyspace)
    }
    try expect(engine.read { try $0.bytes(key(0), in: keyspace) }, equals: [9])
    try engine.close()
  }

  @Test(arguments: Kind.all) func waitingTooLongForAnotherWriterIsBusy(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let other = try engine.file.connect(cacheBytes: 0)
    try other.execute("BEGIN IMMEDIATE")
    try engine.idleWriter().waitWhenBusy(upTo: .milliseconds(20))
    try expect(engine.code { try $0.write { (_: any WriteTransaction) in } }, equals: .busy)
    try other.execute("COMMIT")
    try expect(engine.code { try $0.write { (_: any WriteTransaction) in } } == nil)
    other.close()
    try engine.close()
  }

  @Test func oneFileIsNotOpenedThroughTwoLibraries() throws {
    let path = directory.file("a")
    let engine = try Kind(type: SQLiteEngines.sqlite).open(path)
    try expect(storageCode { _ = try Kind(type: SQLiteEngines.sqlcipherPlain).open(path) }, equals: .inUse)
    try Kind(type: SQLiteEngines.sqlite).open(path).close()
    try expect(storageCode { _ = try Kind(type: SQLiteEngines.sqlcipherPlain).open(path) }, equals: .inUse)
    try engine.close()
    try Kind(type: SQLiteEngines.sqlcipherPlain).open(path).close()
  }

  @Test(arguments: Kind.all) func aLongSnapshotDoesNotKeepTheLogGrowingAfterItsEnd(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let snapshot = try engine.beginRead()
    let value = [UInt8](repeating: 3, count: 100_000)
    for number in 0..<300 {
      try engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(number % 10), value, in: keyspace)
      }
    }
    try expect(snapshot.bytes(key(0), in: keyspace)?.count, equals: 1)
    snapshot.end()
    let grown = try #require(SQLiteFile.size(path + "-wal"))
    for number in 0..<600 {
      try engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(number % 10), value, in: keyspace)
      }
    }
    let after = try #require(SQLiteFile.size(path + "-wal"))
    expect(after <= grown + (8 << 20), "\(grown) bytes became \(after)")
    try engine.close()
    expect(SQLiteFile.size(path + "-wal") == nil)
  }
}
