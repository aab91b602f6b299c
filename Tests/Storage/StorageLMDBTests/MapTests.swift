import CLMDB
import LMDBTestSupport
import Synchronization
import TestTools

@testable import StorageLMDB

/// The map: its size, its growth, and what is read beside it.
extension LMDBTests {
  @Test("a process opens more files than 1 TiB of addresses each allows") func manyFiles() throws {
    let engines = try (0..<(isLong ? 600 : 200)).map { try open(directory.file("many\($0).mdb")) }
    for (number, engine) in engines.enumerated() {
      try engine.write { transaction in
        try transaction.put(
          bytes("a"), bytes("\(number)"), in: transaction.createKeyspace("k", shape: .documents))
      }
    }
    for engine in engines { try engine.close() }
  }

  @Test func aFullMapIsATypedErrorAndGrowsBeforeTheNextWriteWhenNobodyReads() throws {
    let engine = try open(directory.file(), mapBytes: 1 << 20)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let value = [UInt8](repeating: 7, count: 900 << 10)
    try engine.write { try $0.put(bytes("a"), bytes("small"), in: keyspace) }
    let snapshot = try engine.beginRead()
    for _ in 0..<3 {
      // With a snapshot open the map must stay where it is.
      let failure = try storageCode {
        try engine.write { transaction in
          try transaction.put(bytes("b"), value, in: keyspace)
          try transaction.put(bytes("c"), value, in: keyspace)
        }
      }
      expect(failure, equals: .mapFull)
      try expect(snapshot.bytes(bytes("a"), in: keyspace), equals: bytes("small"))
    }
    snapshot.end()
    try engine.write { transaction in
      try transaction.put(bytes("b"), value, in: keyspace)
    }
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 2)
    var attempts = 0
    func isTooSmall() throws -> Bool {
      try storageCode { try engine.write { try $0.put(bytes("c"), value + value + value, in: keyspace) } }
        == .mapFull
    }
    while try isTooSmall() {
      attempts += 1
      try #require(attempts < 5)
    }
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 3)
    try engine.closeSound()
  }

  /// What a slot remembers of a transaction points into the map.
  @Test func entriesAreFollowedAfterTheMapHasMovedAndAfterOtherTransactions() throws {
    let engine = try open(directory.file(), mapBytes: 1 << 20)
    let (index, docs) = try engine.write { transaction in
      let index = try transaction.createKeyspace("index", shape: .entries)
      let docs = try transaction.createKeyspace("docs", shape: .documents)
      for number in 100..<200 {
        try transaction.put(bytes("\(number)"), [], in: index)
        try transaction.put(bytes("\(number)"), bytes("value \(number)"), in: docs)
      }
      return (index, docs)
    }
    func followed() throws -> [String] {
      var values: [String] = []
      try engine.read { transaction in
        for order in [ScanOrder.ascending, .descending] {
          try transaction.follow(index, .all, order: order, into: docs) { key, _ in
            .inKey(0..<key.byteCount)
          } _: { key, _, value in
            values.append("\(String(copying: key)) \(String(copying: value))")
            return true
          }
        }
      }
      return values
    }
    let numbers = Array(100..<200)
    let wanted = (numbers + numbers.reversed()).map { "\($0) value \($0)" }
    try expect(followed(), equals: wanted)
    let size = MapSize.current(of: engine.environment.handle)
    // It grows before the write after one that was too large, and none of them is committed.
    let large = [UInt8](repeating: 7, count: 3 << 20)
    for _ in 0..<3 {
      _ = try storageCode {
        try engine.write { transaction in
          try transaction.put(bytes("large"), large, in: docs)
          throw StorageError(.closed, "not to be committed")
        }
      }
      try expect(followed(), equals: wanted)
    }
    expect(MapSize.current(of: engine.environment.handle) > size)
    try engine.write { transaction in
      for number in numbers { try transaction.put(bytes("\(number)"), bytes("other \(number)"), in: docs) }
    }
    try expect(followed(), equals: wanted.map { $0.replacing("value", with: "other") })
    try expect(engine.write { try $0.delete(bytes("150"), in: docs) })
    try expect(followed().count, equals: wanted.count - 2)
    try engine.close()
  }

  @Test func aCopyIntoASmallMapGrowsIt() throws {
    let source = try open(directory.file("source"))
    try source.write { transaction in
      for name in ["a", "b", "c"] {
        let keyspace = try transaction.createKeyspace(name, shape: .documents)
        for number in 1_000..<2_500 {
          try transaction.put(
            bytes("\(number)"), [UInt8](repeating: UInt8(number & 255), count: number * 5), in: keyspace)
        }
      }
    }
    let target = try open(directory.file("target"), mapBytes: 1 << 20)
    let record = try source.read { try KeyspaceCopy(from: $0, to: target).run() }
    expect(record.total.entries, equals: 4_500)
    try record.verify(target)
    try target.close()
    try source.close()
  }

  @Test func aSwallowedFailureIsToldByTheCommit() throws {
    let engine = try open(directory.file(), mapBytes: 1 << 20)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let failure = try storageCode {
      try engine.write { transaction in
        try transaction.put(bytes("a"), bytes("1"), in: keyspace)
        try? transaction.put(bytes("b"), [UInt8](repeating: 1, count: 4 << 20), in: keyspace)
        try expect(
          storageCode { try transaction.put(bytes("c"), bytes("1"), in: keyspace) }, equals: .mapFull)
      }
    }
    expect(failure != nil)
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 0)
    try engine.write { try $0.put(bytes("a"), bytes("1"), in: keyspace) }
    try engine.close()
  }

  @Test func anotherProcesssGrowthIsTakenOverUnlessASnapshotIsOpen() throws {
    let engine = try open(directory.file(), mapBytes: 1 << 20)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let snapshot = try engine.beginRead()
    engine.environment.patience = .milliseconds(20)
    try #require(try runLMDBChild("large", directory.file(), 8 << 20, mapBytes: 64 << 20) == .exited(0))
    try expect(storageCode { _ = try engine.beginRead() }, equals: .mapFull)
    try expect(storageCode { try engine.write { (_: any WriteTransaction) in } }, equals: .mapFull)
    try expect(snapshot.count(of: keyspace), equals: 0)
    snapshot.end()
    try expect(engine.read { try $0.bytes(bytes("large"), in: keyspace)?.count }, equals: 8 << 20)
    try engine.write { try $0.put(bytes("a"), bytes("1"), in: keyspace) }
    try engine.close()
  }

  @Test func snapshotsOfManyThreadsTakeOverAnotherProcesssGrowth() throws {
    let engine = try open(directory.file(), mapBytes: 1 << 20)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    for round in 0..<3 {
      nonisolated(unsafe) let isReading = try engine.beginRead()
      try #require(
        try runLMDBChild("large", directory.file(), 8 << (20 + round), mapBytes: 256 << 20) == .exited(0))
      try onThreads(8) { thread in
        // An older snapshot ends while the others wait for it.
        if thread == 0 {
          usleep(20_000)
          isReading.end()
        }
        for _ in 0..<(isShort ? 8 : 20) {
          let count = try engine.read { try $0.bytes(bytes("large"), in: keyspace)?.count }
          guard count == 8 << (20 + round) else { throw ConformanceFailure("\(count as Any) bytes") }
        }
      }
    }
    try engine.close()
  }

  @Test func aMetaPageThatOthersHaveWrittenOverIsAskedForAnew() throws {
    let path = directory.file()
    let engine = try open(path)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    var rounds = 0
    let meta = try PageFile.withPinnedMeta {
      rounds += 1
      let snapshot = try engine.beginRead()
      defer { snapshot.end() }
      let number = mdb_txn_id((snapshot as? LMDBReadTransaction)?.slot.transaction)
      // Two commits leave no meta page of the snapshot's.
      for commit in 0..<(rounds <= 3 ? 2 : 1) {
        try engine.write { try $0.put(bytes("\(rounds) \(commit)"), bytes("v"), in: keyspace) }
      }
      return try PageFile(path: path).meta(of: UInt64(number))
    }
    expect(rounds, equals: 4)
    expect(meta.transaction > 0)
    #expect(throws: StorageError.self) {
      try PageFile.withPinnedMeta { throw StorageError(.damaged, "another fault") }
    }
    try engine.close()
  }

  @Test func theVariableGivesTheMapsSize() throws {
    try expect(runLMDBChild("small", directory.file(), 8 << 20, mapBytes: 4 << 20), equals: .exited(0))
    try expect(runLMDBChild("large", directory.file(), 8 << 20, mapBytes: 16 << 20), equals: .exited(0))
  }

  @Test(.enabled(if: !isSanitized, "a sanitizer takes more address space than that"))
  func theMapIsSmallerWhereAddressSpaceIsShort() throws {
    try expect(runLMDBChild("address-space", directory.file(), 8 << 30), equals: .exited(0))
  }
}
