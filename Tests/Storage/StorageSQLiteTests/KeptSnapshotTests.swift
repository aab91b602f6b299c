import SQLiteLibrary
import Synchronization
import TestTools

@testable import StorageSQLite

/// The snapshots that idle readers keep from one read to the next.
struct KeptSnapshotTests {
  let directory = TemporaryDirectory()

  /// A second pool of the engine's file, whose rounds end when the timer says so.
  private func pool(_ engine: SQLiteEngine) -> (ReaderPool, ManualTimer) {
    let timer = ManualTimer()
    return (ReaderPool(engine.file, engine.claim, nil, cacheBytes: 1 << 20, first: nil, timer: timer), timer)
  }

  /// Reads until the reader keeps its snapshot.
  private func readUntilKept(_ pool: ReaderPool, _ keyspace: Keyspace) throws {
    var isKept = false
    var reads = 0
    while !isKept {
      let reader = try pool.take(beginsSnapshot: false)
      _ = try reader.read(key(0).span.bytes, in: keyspace) { _ in }
      pool.give(reader)
      isKept = reader.state.pointee.isReading
      reads += 1
      try #require(reads < 1_000_000)
    }
  }

  private func value(_ pool: ReaderPool, _ keyspace: Keyspace) throws -> [UInt8]? {
    let reader = try pool.take(beginsSnapshot: false)
    defer { pool.give(reader) }
    var found: [UInt8]?
    _ = try reader.read(key(0).span.bytes, in: keyspace) { found = [UInt8](copying: $0) }
    return found
  }

  @Test(arguments: Kind.all) func aSnapshotIsKeptUntilItsRoundEnds(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let (pool, timer) = pool(engine)
    try readUntilKept(pool, keyspace)
    let reader = try pool.take()
    expect(reader.state.pointee.isReading)
    // The round ends while the snapshot is in use. Then it isn't kept.
    timer.advance(by: ReaderPool.roundSeconds)
    expect(reader.state.pointee.isReading)
    pool.give(reader)
    expect(!reader.state.pointee.isReading)
    try readUntilKept(pool, keyspace)
    // A round in which somebody has read is followed by another one, and one without reads by none.
    timer.advance(by: ReaderPool.roundSeconds)
    expect(!reader.state.pointee.isReading)
    timer.advance(by: ReaderPool.roundSeconds)
    timer.advance(by: ReaderPool.roundSeconds)
    expect(timer.count, equals: 0)
    try pool.close()
    try engine.close()
  }

  @Test(arguments: Kind.all) func aCommitEndsWhatIsKept(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let (pool, _) = pool(engine)
    for number in 0..<UInt8(50) {
      try readUntilKept(pool, keyspace)
      try engine.write { (transaction: any WriteTransaction) in
        try transaction.put(key(0), [number], in: keyspace)
      }
      try expect(value(pool, keyspace), equals: [number])
    }
    // So does that of another program.
    let other = try engine.file.connect(cacheBytes: 0)
    for number in 50..<UInt8(100) {
      try readUntilKept(pool, keyspace)
      try other.execute("UPDATE k\(keyspace.number) SET value = x'\(String(number, radix: 16))'")
      try expect(value(pool, keyspace), equals: [number])
    }
    other.close()
    try pool.close()
    try engine.close()
  }

  @Test(arguments: Kind.all) func aKeyspaceThatIsDroppedIsGone(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let (pool, _) = pool(engine)
    try readUntilKept(pool, keyspace)
    try engine.write { (transaction: any WriteTransaction) in try transaction.dropKeyspace(keyspace) }
    try expect(storageCode { _ = try value(pool, keyspace) }, equals: .noSuchKeyspace)
    // The next reads don't go on in the snapshot of the failure.
    let again = try engine.fill(count: 1, bytes: 3)
    try expect(value(pool, again), equals: [0x41, 0x41, 0x41])
    try pool.close()
    try engine.close()
  }

  /// Checkpoints of this process take away what is kept, and those of others wait for a round at most.
  @Test(arguments: Kind.all) func theLogStartsAgainWhileOthersRead(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 1, bytes: 1)
    let isDone = Atomic(false)
    let value = [UInt8](repeating: 3, count: 100_000)
    let largest = Atomic(0)
    try onThreads(2) { thread in
      guard thread > 0 else {
        defer { isDone.store(true, ordering: .relaxed) }
        for number in 0..<600 {
          try engine.write { (transaction: any WriteTransaction) in
            try transaction.put(key(number % 10), value, in: keyspace)
          }
          largest.max(SQLiteFile.size(path + "-wal") ?? 0, ordering: .relaxed)
        }
        return
      }
      while !isDone.load(ordering: .relaxed) {
        _ = try engine.read(key(0).span.bytes, in: keyspace) { _ in }
      }
    }
    // 60 MB were written. SQLite 3.15 lets the log grow further, until the writer waits for readers, without kept snapshots too.
    let bytes = largest.load(ordering: .relaxed)
    if kind.type.name == "sqlite" { expect(bytes < 40 << 20, "the log has grown to \(bytes) bytes") }
    try engine.compact()
    expect(SQLiteFile.size(path + "-wal"), equals: 0)
    try engine.close()
  }

  /// A read sees what was committed before it began, on every thread.
  @Test(arguments: Kind.all) func readsSeeAllEarlierCommits(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 1, bytes: 1, text: 0)
    let begun = Atomic(0)
    let committed = Atomic(0)
    try onThreads(4) { thread in
      if thread == 0 {
        defer { committed.store(.max, ordering: .sequentiallyConsistent) }
        for number in 1..<3_000 {
          begun.store(number, ordering: .sequentiallyConsistent)
          try engine.write { (transaction: any WriteTransaction) in
            try transaction.put(key(0), [UInt8(number & 0xff), UInt8(number >> 8)], in: keyspace)
          }
          committed.store(number, ordering: .sequentiallyConsistent)
          if number % 64 == 0 { sched_yield() }
        }
        return
      }
      while true {
        let before = committed.load(ordering: .sequentiallyConsistent)
        if before == .max { return }
        var seen = 0
        func look(_ value: RawSpan) {
          seen = [UInt8](copying: value).enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        }
        if thread == 1 {
          _ = try engine.read(key(0).span.bytes, in: keyspace, look)
        } else {
          try engine.read { _ = try $0.read(key(0).span.bytes, in: keyspace, look) }
        }
        let after = begun.load(ordering: .sequentiallyConsistent)
        try #require(before <= seen && seen <= after, "\(before) <= \(seen) <= \(after)")
      }
    }
    try engine.close()
  }
}
