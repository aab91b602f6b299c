import StorageLMDB
import StorageMemory
import StorageSQLite
import TestTools

@testable import StorageConformance

/// That the strict engine catches what it is made for. That it is a sound engine the conformance suite shows.
@Suite
struct StrictEngineTests {
  static let strict = [SQLiteEngines.sqlite, LMDBEngines.lmdb].map {
    StrictEngine.type(over: $0, name: "strict(\($0.name))")
  }
  static let ways = ["read", "scan", "cursor", "follow", "getMany", "past"]

  /// How a child ends that reads where lent bytes were, and what it says.
  private func keep(_ engine: String, _ way: String) throws -> (ChildProcess.Ending, String) {
    let directory = TemporaryDirectory()
    let child = try startChild(.storage, "storage", "keep", engine, "-", directory.file("main"), way)
    let ending = try child.wait()
    return (ending, child.outputText)
  }

  @Test(arguments: strict.map(\.name), ways)
  func readingBytesThatAreLentNoMoreIsAFaultOfMemory(engine: String, way: String) throws {
    let (ending, output) = try keep(engine, way)
    #expect(ending == .signalled(SIGSEGV), "\(output)")
    #expect(output == "lent\n")
  }

  @Test(arguments: strict.map(\.name))
  func readingBytesThatAreLentIsNone(engine: String) throws {
    let (ending, output) = try keep(engine, "sound")
    #expect(ending == .exited(0))
    #expect(output == "lent\nsurvived\n")
  }

  private func withEngine(
    _ strictness: Strictness = Strictness(), _ body: (any StorageEngine, Keyspace) throws -> Void
  ) throws {
    try withTemporaryDirectory { directory in
      let type = StrictEngine.type(over: MemoryEngine.type, strictness: strictness)
      let engine = try type.open(directory + "/main", EngineOptions())
      var made: Keyspace?
      while made == nil {
        // Makes the keyspace, however often that conflicts.
        made = try? engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k", shape: .documents)
          for number in 0..<5 { try transaction.put("\(number)", "value", in: keyspace) }
          return keyspace
        }
      }
      try body(engine, try #require(made))
      try engine.close()
    }
  }

  @Test func storedOrderIsAnyOrder() throws {
    try withEngine { engine, keyspace in
      let stored = try engine.read { try $0.entries(of: keyspace, order: .stored) }
      #expect(try stored == engine.read { try $0.entries(of: keyspace) }.reversed())
    }
  }

  @Test func aTransactionThatHasEndedIsClosed() throws {
    try withEngine { engine, keyspace in
      let snapshot = try engine.beginRead()
      let cursor = try snapshot.cursor(in: keyspace, .all)
      #expect(try cursor.first())
      snapshot.end()
      #expect(try storageCode { _ = try snapshot.count(of: keyspace) } == .closed)
      #expect(try storageCode { _ = try snapshot.bytes([1], in: keyspace) } == .closed)
      #expect(try storageCode { try snapshot.scan(keyspace) { _, _ in true } } == .closed)
      #expect(try storageCode { _ = try cursor.next() } == .closed)
      #expect(try storageCode { try cursor.lendEntry { _, _ in } } == .closed)
      var kept: (any WriteTransaction)?
      try engine.write { (transaction: any WriteTransaction) throws -> Void in kept = transaction }
      #expect(try storageCode { try kept?.put("a", "b", in: keyspace) } == .closed)
      #expect(try storageCode { _ = try kept?.keyspaces() } == .closed)
    }
  }

  @Test func writesWhereBytesAreLentAreRefused() throws {
    try withEngine { engine, keyspace in
      try engine.write { transaction in
        try transaction.scan(keyspace) { _, _ throws in
          #expect(try storageCode { try transaction.put("a", "b", in: keyspace) } == .bytesAreLent)
          #expect(try storageCode { _ = try transaction.deleteRange(.all, in: keyspace) } == .bytesAreLent)
          #expect(try storageCode { try transaction.dropKeyspace(keyspace) } == .bytesAreLent)
          return true
        }
        let cursor = try transaction.cursor(in: keyspace, .all)
        _ = try cursor.first { _, _ throws in
          #expect(try storageCode { _ = try cursor.next() } == .bytesAreLent)
        }
        try transaction.put("a", "b", in: keyspace)
        #expect(try storageCode { _ = try cursor.next() } == .notOnEntry)
      }
    }
  }

  @Test func conflictsRollBackAndCanBeRunAgain() throws {
    try withEngine(Strictness(conflicts: 3)) { engine, keyspace in
      var conflicts = 0
      for number in 0..<100 {
        let before = try engine.read { try $0.count(of: keyspace) }
        let found = try storageCode { try engine.write { try $0.put("new\(number)", "", in: keyspace) } }
        let after = try engine.read { try $0.count(of: keyspace) }
        if found == .conflict { conflicts += 1 } else { #expect(found == nil) }
        #expect(after == (found == nil ? before + 1 : before))
      }
      #expect(10..<70 ~= conflicts)
    }
  }

  @Test func snapshotsExpireAfterSoManyCommits() throws {
    try withEngine(Strictness(snapshotCommits: 2)) { engine, keyspace in
      let snapshot = try engine.beginRead()
      for _ in 0..<2 {
        try engine.write { try $0.put("a", "b", in: keyspace) }
        _ = try snapshot.count(of: keyspace)
      }
      try engine.write { try $0.put("a", "b", in: keyspace) }
      #expect(try storageCode { _ = try snapshot.count(of: keyspace) } == .snapshotExpired)
      snapshot.end()
    }
  }

  @Test func noMoreSnapshotsAreOpenThanAnEngineHasToAllow() throws {
    try withEngine(Strictness(maximumReaders: 3)) { engine, _ in
      let snapshots = try (0..<3).map { _ in try engine.beginRead() }
      #expect(try storageCode { _ = try engine.beginRead() } == .tooManyReaders)
      snapshots[1].end()
      let another = try engine.beginRead()
      for snapshot in snapshots + [another] { snapshot.end() }
    }
  }
}
