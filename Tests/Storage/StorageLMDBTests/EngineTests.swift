import CLMDB
import LMDBTestSupport
import Synchronization
import TestTools

@testable import StorageLMDB

/// What is special to LMDB beyond the conformance suite. Serialized: some tests set what a whole process
/// shares.
@Suite(.serialized)
struct LMDBTests {
  let directory = TemporaryDirectory()

  // MARK: - One environment a path

  @Test func aSecondOpenOfOnePathIsRefusedUntilTheFirstIsClosed() throws {
    let first = try open(directory.file())
    symlink(directory.file(), directory.file("link.mdb"))
    link(directory.file(), directory.file("hard.mdb"))
    for path in [
      directory.file(), directory.path + "/./main.mdb", directory.file("link.mdb"),
      directory.file("hard.mdb"),
    ] {
      try expect(storageCode { _ = try open(path) }, equals: .inUse, "\(path)")
    }
    try first.close()
    let second = try open(directory.file("link.mdb"))
    try second.close()
  }

  @Test func anEngineThatGoesAwayClosesItsFileWhenItsLastSnapshotEnds() throws {
    var engine: LMDBEngine? = try open(directory.file())
    let snapshot = try #require(try engine?.beginRead())
    engine = nil
    try expect(storageCode { _ = try open(directory.file()) }, equals: .inUse)
    try expect(snapshot.keyspaces().isEmpty)
    snapshot.end()
    try open(directory.file()).close()
  }

  @Test func aSnapshotThatGoesAwayEnds() throws {
    let engine = try open(directory.file())
    for _ in 0..<100 { _ = try engine.beginRead() }
    try expect(engine.statistics().openReaders, equals: 0)
    try engine.close()
  }

  @Test func aForkedChildUsesNothingOfItsParentsEngine() throws {
    try expect(runLMDBChild("fork", directory.file()), equals: .exited(0))
  }

  @Test func aKeyIsRefused() throws {
    let options = EngineOptions(key: [UInt8](repeating: 1, count: 32))
    try expect(
      storageCode { _ = try LMDBEngine(path: directory.file(), options: options) }, equals: .notEncrypted)
    expect(!FilePath.exists(directory.file()))
  }

  // MARK: - Readers

  @Test func readersOfProcessesThatDiedAreClearedAtOpen() throws {
    // While somebody has the file open, slots stay as they are.
    let keeper = try startLMDBChild("readers", directory.file(), 1)
    try keeper.waitForOutput()
    let dying = try startLMDBChild("readers", directory.file(), 10)
    try dying.waitForOutput()
    try expect(dying.end(), equals: .exited(0))
    let engine = try open(directory.file())
    var stale: Int32 = 0
    mdb_reader_check(engine.environment.handle, &stale)
    expect(stale, equals: 0)
    var info = MDB_envinfo()
    mdb_env_info(engine.environment.handle, &info)
    expect(info.me_numreaders >= 11, "the readers were there")
    try engine.close()
    try expect(keeper.end(), equals: .exited(0))
  }

  @Test func slotsOfDeadReadersServeWhenAllAreTaken() throws {
    let engine = try open(directory.file())
    let dying = try startLMDBChild("readers", directory.file(), 200)
    try dying.waitForOutput()
    try expect(dying.end(), equals: .exited(0))
    var snapshots: [any ReadTransaction] = []
    for _ in 0..<Environment.maximumReaders { snapshots.append(try engine.beginRead()) }
    try expect(storageCode { _ = try engine.beginRead() }, equals: .tooManyReaders)
    try expect(engine.statistics().openReaders, equals: Environment.maximumReaders)
    for snapshot in snapshots { snapshot.end() }
    snapshots = []
    try expect(engine.statistics().openReaders, equals: 0)
    try engine.read { _ = try $0.keyspaces() }
    try engine.close()
  }

  // MARK: - Keyspaces

  @Test func keyspacesAreNamedDatabasesOfTheirNames() throws {
    let engine = try open(directory.file())
    try engine.write { transaction in
      for name in ["docs", "index.byType"] { _ = try transaction.createKeyspace(name, shape: .entries) }
    }
    try expect(namedDatabases(directory.file()), equals: ["@catalog", "docs", "index.byType"])
    try engine.close()
  }

  @Test func droppedKeyspacesLeaveAHuskThatABackupDoesNotHave() throws {
    let engine = try open(directory.file())
    for name in ["a", "b", "c"] {
      try engine.write { try $0.put(bytes("k"), bytes(name), in: $0.createKeyspace(name, shape: .documents)) }
    }
    let before = try engine.beginRead()
    let old = try #require(try before.keyspace(named: "a"))
    try engine.write { transaction in
      for name in ["a", "b"] {
        try transaction.dropKeyspace(try #require(try transaction.keyspace(named: name)))
      }
    }
    try expect(namedDatabases(directory.file()), equals: ["@catalog", "a", "b", "c"])
    let new = try engine.write { try $0.createKeyspace("a", shape: .entries) }
    expect(new.number != old.number)
    try expect(before.bytes(bytes("k"), in: old), equals: bytes("a"))
    try expect(storageCode { _ = try before.count(of: new) }, equals: .noSuchKeyspace)
    try expect(engine.read { try $0.count(of: new) }, equals: 0)
    try expect(storageCode { _ = try engine.read { try $0.count(of: old) } }, equals: .noSuchKeyspace)
    before.end()
    try engine.backup(to: directory.file("copy.mdb"))
    try expect(namedDatabases(directory.file("copy.mdb")), equals: ["@catalog", "a", "c"])
    try expect(
      FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.contains("partial") },
      equals: [])
    let copy = try open(directory.file("copy.mdb"), .openExisting)
    try expect(copy.read { try $0.keyspaces() }, equals: engine.read { try $0.keyspaces() })
    try expect(copy.checkIntegrity(), equals: [])
    // Numbers go on where they were.
    try expect(copy.write { try $0.createKeyspace("d", shape: .entries) }.number > new.number)
    try copy.close()
    try engine.close()
  }

  @Test func handlesOfDroppedKeyspacesAreUsedAgainUnlessSnapshotsMayReadThem() throws {
    let engine = try open(directory.file())
    func makeAndDrop(_ name: String) throws {
      let keyspace = try engine.write { try $0.createKeyspace(name, shape: .entries) }
      try engine.write { try $0.put(bytes(name), bytes("1"), in: keyspace) }
      try engine.write { try $0.dropKeyspace(keyspace) }
    }
    for round in 0..<2_000 { try makeAndDrop("k\(round)") }
    let snapshot = try engine.beginRead()
    var made = 0
    let failure = try storageCode {
      while made < 3_000 {
        try makeAndDrop("held\(made)")
        made += 1
      }
    }
    expect(failure, equals: .tooManyKeyspaces)
    expect(made < Environment.maximumHandles)
    try expect(snapshot.keyspaces().isEmpty)
    snapshot.end()
    for round in 0..<300 { try makeAndDrop("later\(round)") }
    try engine.closeSound()
  }

  @Test func keyspacesThatAnotherProcessMakesAreSeenByNewSnapshotsAndWriters() throws {
    let engine = try open(directory.file())
    let mine = try engine.write { try $0.createKeyspace("mine", shape: .documents) }
    for round in 0..<5 {
      let before = try engine.beginRead()
      try #require(try runLMDBChild("keyspaces", directory.file(), round) == .exited(0))
      try expect(before.keyspace(named: "theirs\(round)") == nil)
      before.end()
      if round % 2 == 0 {
        try engine.write { transaction in
          let theirs = try #require(try transaction.keyspace(named: "theirs\(round)"))
          try transaction.put(bytes("mine"), bytes("1"), in: theirs)
          try transaction.put(
            bytes("mine"), bytes("1"), in: transaction.createKeyspace("own\(round)", shape: .entries))
        }
      }
      try engine.read { transaction in
        let theirs = try #require(try transaction.keyspace(named: "theirs\(round)"))
        try expect(transaction.bytes(bytes("k"), in: theirs), equals: bytes("theirs\(round)"))
        try expect(transaction.keyspace(named: "dropped\(round - 1)") == nil)
        try expect(transaction.count(of: mine), equals: 0)
      }
    }
    try engine.closeSound()
  }

  @Test func aWriteBeginsWhileASnapshotOpensWhatAnotherProcessHasMade() throws {
    let engine = try open(directory.file())
    let child = try startLMDBChild("held-handles", directory.file())
    try child.waitForOutput()
    try engine.write { transaction in
      try transaction.put(bytes("k"), [1], in: transaction.createKeyspace("theirs", shape: .entries))
    }
    try expect(child.end(), equals: .exited(0))
    try engine.close()
  }

  @Test func keyspacesMadeInAbortedWritesCanBeMadeAgain() throws {
    let engine = try open(directory.file())
    for round in 0..<50 {
      let isKept = round % 3 == 2
      let failure = try storageCode {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(round / 3)", shape: .entries)
          try transaction.put(bytes("round"), bytes("\(round)"), in: keyspace)
          if !isKept { throw StorageError(.busy, "on purpose") }
        }
      }
      expect(failure, equals: (isKept ? nil : .busy))
      try engine.read { transaction throws in
        try expect((transaction.keyspace(named: "k\(round / 3)") != nil), equals: isKept)
      }
    }
    try engine.closeSound()
  }

  @Test func writersThatShareACommitMakeAndDropKeyspacesAndFailAlone() throws {
    let engine = try open(directory.file())
    let threads = 6
    let rounds = 40
    try onThreads(threads) { thread in
      for round in 0..<rounds {
        do {
          try engine.write { transaction in
            let keyspace = try transaction.createKeyspace("t\(thread).\(round)", shape: .entries)
            try transaction.put(bytes("a"), bytes("\(round)"), in: keyspace)
            if let old = try transaction.keyspace(named: "t\(thread).\(round - 2)") {
              try transaction.dropKeyspace(old)
            }
            if round % 5 == 4 { throw StorageError(.busy, "on purpose") }
          }
        } catch let error as StorageError where error.code == .busy {}
        try engine.read { transaction in
          for (name, keyspace) in try transaction.keyspaces() where name.hasPrefix("t\(thread).") {
            let count = try transaction.count(of: keyspace)
            guard count == 1 else { throw ConformanceFailure("\(count) entries in \(name)") }
          }
        }
      }
    }
    try engine.closeSound()
  }

  @Test func snapshotsOfManyThreadsReadWhileAWriterCommits() throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
    let isDone = Atomic<Bool>(false)
    try onThreads(5) { thread in
      if thread == 0 {
        defer { isDone.store(true, ordering: .relaxed) }
        for round in 0..<300 {
          try engine.write { transaction in
            for entry in 0..<10 { try transaction.put(bytes("\(entry)"), bytes("\(round)"), in: keyspace) }
          }
        }
      } else {
        while !isDone.load(ordering: .relaxed) {
          try engine.read { transaction in
            let values = Set(try transaction.entries(of: keyspace).map(\.value))
            guard values.count <= 1 else { throw ConformanceFailure("values of \(values.count) commits") }
          }
        }
      }
    }
    try expect(engine.statistics().openReaders, equals: 0)
    try engine.close()
  }

  // MARK: - Deleting and copying

  @Test(arguments: [150, 1_000, 9_000])
  func rangesAreDeletedWithinTheirBounds(valueBytes: Int) throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
    var expected: Set<Int> = []
    var generator = SeededGenerator(seed: 11)
    func key(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }
    for round in 0..<40 {
      try engine.write { transaction in
        for _ in 0..<200 {
          let number = generator.below(2_000)
          try transaction.put(
            key(number), [UInt8](repeating: 1, count: generator.below(valueBytes)), in: keyspace)
          expected.insert(number)
        }
        let lower = generator.below(2_000)
        let upper = lower + generator.below(round % 4 == 0 ? 1_500 : 100)
        let count = try transaction.deleteRange(
          KeyRange(lower: .exclusive(key(lower)), upper: .inclusive(key(upper))), in: keyspace)
        let gone = expected.filter { $0 > lower && $0 <= upper }
        expect(count, equals: gone.count, "round \(round)")
        expected.subtract(gone)
        try expect(transaction.count(of: keyspace), equals: expected.count, "round \(round)")
      }
    }
    try expect(engine.checkIntegrity(), equals: [])
    try expect(engine.write { try $0.deleteRange(.all, in: keyspace) }, equals: expected.count)
    try engine.close()
  }

  @Test func aBackupThatFailsLeavesNoFile() throws {
    let engine = try open(directory.file())
    let folder = directory.file("folder")
    try expect(storageCode { try engine.backup(to: folder + "/copy.mdb") }, equals: .notFound)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try engine.backup(to: folder + "/copy.mdb")
    try expect(storageCode { try engine.backup(to: folder + "/copy.mdb") }, equals: .alreadyExists)
    try expect(FileManager.default.contentsOfDirectory(atPath: folder), equals: ["copy.mdb"])
    try engine.close()
  }

  @Test func statisticsCountPagesAndEntries() throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    try engine.write { transaction in
      for number in 0..<1_000 {
        try transaction.put(bytes("\(number)"), [UInt8](repeating: 0, count: 1_000), in: keyspace)
      }
    }
    let full = try engine.statistics()
    expect(full.entries, equals: ["k": 1_000])
    expect(full.fileBytes >= full.totalPages * full.pageBytes - 64 * full.pageBytes)
    try engine.write { _ = try $0.deleteRange(.all, in: keyspace) }
    try expect(engine.statistics().freePages > full.totalPages / 2)
    try expect(storageCode { try engine.compact() }, equals: .unsupported)
    try engine.close()
  }

  @Test("statistics and the check are of the open file, whoever has its name")
  func fileWithoutItsName() throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
    try engine.write { try $0.put(bytes("a"), bytes("1"), in: keyspace) }
    let before = try engine.statistics()
    // A compaction removes the old file while snapshots still read it.
    unlink(directory.file())
    try expect(engine.statistics().fileBytes, equals: before.fileBytes)
    try engine.closeSound()
  }

  @Test("snapshots beyond the pool share the catalog of 1,000 keyspaces") func sharedCatalog() throws {
    let engine = try open(directory.file())
    try engine.write { transaction in
      for number in 0..<1_000 { _ = try transaction.createKeyspace("k\(number)", shape: .entries) }
    }
    for _ in 0..<2 {
      let snapshots = try (0..<120).map { _ in try engine.environment.beginRead() }
      let catalog = try #require(snapshots[0].slot.catalog)
      expect(catalog.items.count, equals: 1_000)
      for snapshot in snapshots {
        expect(snapshot.slot.catalog === catalog)
        snapshot.end()
      }
    }
    try engine.close()
  }

  /// The names in LMDB's main database, read from the file.
  private func namedDatabases(_ path: String) throws -> [String] {
    let file = try PageFile(path: path)
    var check = PageCheck(file: file, meta: try file.newestMeta())
    check.run(.roots)
    expect(check.faults, equals: [])
    return check.trees.map { String(decoding: $0.name, as: UTF8.self) }
  }
}
