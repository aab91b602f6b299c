import CLMDB
import LMDBTestSupport
import StorageEncrypted
import TestTools

@testable import StorageLMDB

/// What opening a file does, and doesn't.
@Suite(.serialized)
struct OpeningTests {
  let directory = TemporaryDirectory()

  /// A sound file that ends before its last pages: they were taken and freed by one transaction, and never written.
  private func makeShort(_ path: String, entries: Int) throws -> Int {
    let engine = try open(path)
    let keyspace = try engine.write { try $0.createKeyspace("docs", shape: .documents) }
    try engine.write { transaction in
      for number in 0..<entries {
        try transaction.put(bytes("d\(100_000 + number)"), [UInt8](repeating: 1, count: 900), in: keyspace)
      }
    }
    for round in 0..<100 {
      try engine.write { transaction in
        for number in 0..<20 {
          try transaction.put(bytes("zz\(number)"), [UInt8](repeating: 3, count: 30_000), in: keyspace)
        }
        for number in 0..<20 { try expect(transaction.delete(bytes("zz\(number)"), in: keyspace)) }
        try transaction.put(bytes("e\(round)"), [UInt8](repeating: 2, count: 900), in: keyspace)
      }
      let statistics = try engine.statistics()
      if statistics.fileBytes / statistics.pageBytes < statistics.totalPages {
        // Reads to the end of what the file has.
        for order in [ScanOrder.ascending, .descending] {
          let found = try engine.read { try $0.entries(of: keyspace, order: order) }
          expect(found.count == entries + round + 1 && found.allSatisfy { $0.value.count == 900 })
        }
        try expect(engine.checkIntegrity(), equals: [])
        try engine.close()
        return entries + round + 1
      }
    }
    throw StorageError(.engineFailure, "the file has all its pages")
  }

  @Test("a sound file that ends before its last pages is read, and opened in constant work")
  func shortFiles() throws {
    var reads: [Int] = []
    for entries in [500, 8_000] {
      let path = directory.file("\(entries).mdb")
      let count = try makeShort(path, entries: entries)
      for _ in 0..<2 {
        let engine = try open(path, .openExisting)
        try expect(engine.read { try $0.count(of: #require(try $0.keyspace(named: "docs"))) }, equals: count)
        try engine.close()
      }
      let file = try PageFile(path: path)
      let meta = try file.newestMeta()
      let before = file.reads
      var check = PageCheck(file: file, meta: meta)
      check.run(.roots)
      check.checkMissingPages()
      expect(check.faults, equals: [])
      reads.append(file.reads - before)
    }
    expect(reads[1] < 30, "pages read at open: \(reads)")
  }

  /// How many calls an opening makes that read from files.
  private func readCalls(_ open: () throws -> any StorageEngine) throws -> Int {
    // Whatever is done once a process.
    try open().close()
    let before = try #require(readCallsOfThread())
    let engine = try open()
    let after = try #require(readCallsOfThread())
    try engine.close()
    return after - before
  }

  @Test(
    "an opening reads as much of a large file as of a small one",
    .enabled(if: readCallsOfThread() != nil, "the system doesn't count"), arguments: LendingEngine.allCases)
  func constantWork(kind: LendingEngine) throws {
    var calls: [Int] = []
    for entries in [500, 8_000] {
      let directory = TemporaryDirectory()
      if kind == .plain {
        _ = try makeShort(directory.file(), entries: entries)
      } else {
        let engine = try kind.open(directory)
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("docs", shape: .documents)
          for number in 0..<entries {
            try transaction.put(bytes("d\(number)"), [UInt8](repeating: 1, count: 900), in: keyspace)
          }
        }
        try engine.close()
      }
      calls.append(try readCalls { try kind.open(directory) })
    }
    // A page more or less on the way to a leaf.
    expect(calls[1] < calls[0] + 20, "calls that read at open: \(calls)")
  }

  @Test("no byte of the meta pages ends the process at open")
  func metaPages() throws {
    let path = directory.file()
    let engine = try open(path)
    for round in 0..<3 {
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        for number in 0..<50 { try transaction.put(bytes("\(number)"), bytes("\(round)"), in: keyspace) }
      }
    }
    try engine.close()
    let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    expect(whole[151], equals: 0)
    var refused = 0
    for pages in [[0], [1], [0, 1]] {
      for offset in 0..<MetaPage.size {
        for change in [UInt8(0xFF), 0x80, 0x01] {
          var damaged = whole
          for page in pages { damaged[page * 4_096 + offset] ^= change }
          try Data(damaged).write(to: URL(fileURLWithPath: path))
          do {
            try open(path, .openExisting).closing { _ = try $0.checkIntegrity() }
          } catch is StorageError { refused += 1 }
        }
      }
    }
    expect(refused > 200)
    var damaged = whole
    damaged[151] = 0xFF
    try Data(damaged).write(to: URL(fileURLWithPath: path))
    try expect(storageCode { _ = try open(path, .openExisting) }, equals: .damaged)
  }

  @Test("an opening for reading only leaves nothing behind", arguments: LendingEngine.allCases)
  func readOnly(kind: LendingEngine) throws {
    var engine = try kind.open(directory)
    let path = engine.location
    try engine.write { _ = try $0.createKeyspace("k", shape: .documents) }
    try engine.close()
    let type = kind == .plain ? LMDBEngines.lmdb : LMDBEngines.encrypted
    let options = EngineOptions(
      creation: .openExisting, isReadOnly: true, key: kind == .plain ? nil : LendingEngine.key)
    for hasLockFile in [true, false] {
      if !hasLockFile { unlink(path + "-lock") }
      let before = try directory.names()
      expect(before.count, equals: (hasLockFile ? 2 : 1))
      engine = try type.open(path, options)
      try expect(engine.read { try $0.keyspaces().count }, equals: 1)
      try engine.close()
      try expect(directory.names(), equals: before)
    }
    // Also one that fails.
    try expect(
      storageCode {
        _ = try type.open(
          path,
          EngineOptions(creation: .openExisting, isReadOnly: true, key: [UInt8](repeating: 9, count: 32)))
      } != nil)
    try expect(directory.names().count, equals: 1)
  }

  @Test("a lock file that another process uses stays") func usedLockFile() throws {
    try open(directory.file()).close()
    unlink(directory.file() + "-lock")
    let engine = try LMDBEngine(
      path: directory.file(), options: EngineOptions(creation: .openExisting, isReadOnly: true))
    let other = try startLMDBChild("readers", directory.file(), 1)
    try other.waitForOutput()
    try engine.close()
    expect(FilePath.exists(directory.file() + "-lock"))
    try expect(other.end(), equals: .exited(0))
  }

  @Test("a file that is made gets the inode of one that is just closed") func reusedInodes() throws {
    try onThreads(4) { [directory] thread in
      let path = directory.file("\(thread).mdb")
      for _ in 0..<times(600, sanitized: 2_000, long: 20_000) {
        let engine = try open(path, .createNew)
        unlink(path)
        try engine.close()
        unlink(path + "-lock")
      }
    }
  }

  @Test(
    "an opening waits for the one that makes the file, and makes it anew when that one has given up",
    arguments: LendingEngine.allCases)
  func waitsForMaker(kind: LendingEngine) throws {
    // As an opening that has just made the file: it holds the lock.
    let path = kind == .plain ? directory.file() : directory.file("main.emdb")
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    expect(descriptor >= 0 && flock(descriptor, LOCK_EX) == 0)
    let done = CountingSemaphore()
    let opened = Lock<Result<any StorageEngine, any Error>?>(nil)
    Thread.detachNewThread { [directory] in
      let result = Result { try kind.open(directory) }
      opened.withLock { $0 = result }
      done.signal()
    }
    expect(!done.wait(seconds: 0.2), "it didn't wait")
    // Failed, for want of the right key perhaps: its file goes.
    unlink(path)
    close(descriptor)
    expect(done.wait(seconds: 30))
    let engine = try #require(try opened.withLock { $0 }?.get())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
    try engine.write { try $0.put(bytes("a"), bytes("1"), in: keyspace) }
    try engine.close()
    let again = try kind.open(directory)
    try expect(again.read { try $0.bytes(bytes("a"), in: keyspace) }, equals: bytes("1"))
    try again.close()
  }

  @Test("what the sync at the end says is thrown, and the file is closed all the same") func failedSync()
    throws
  {
    let path = directory.file()
    let engine = try LMDBEngine(
      path: path, options: EngineOptions(durability: .normal), mapBytes: MapSize.wanted())
    try engine.write { _ = try $0.createKeyspace("k", shape: .entries) }
    // What LMDB syncs is a pipe from here on, which can't be synced.
    var descriptor: mdb_filehandle_t = -1
    mdb_env_get_fd(engine.environment.handle, &descriptor)
    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends), equals: 0)
    expect(dup2(ends[1], descriptor), equals: descriptor)
    let failure = try storageCode { try engine.close() }
    for end in ends { close(end) }
    expect(failure != nil && failure != .inUse)
    try expect(storageCode { _ = try engine.beginRead() }, equals: .closed)
    try open(path, .openExisting).close()
  }

  @Test("at full the name of a new file is synced", arguments: LendingEngine.allCases)
  func syncedName(kind: LendingEngine) throws {
    let type = kind == .plain ? LMDBEngines.lmdb : LMDBEngines.encrypted
    let watch = try #require(DirectoryWatch(directory.path))
    for durability in [Durability.none, .full] {
      let options = EngineOptions(durability: durability, key: kind == .plain ? nil : LendingEngine.key)
      // A combining mark makes another Character of the slash.
      let path = directory.file("\u{301}" + durability.rawValue)
      try type.open(path, options).close()
      expect(watch.opens(), equals: (durability == .full ? 1 : 0), "made at \(durability)")
      try type.open(path, options).close()
      expect(watch.opens(), equals: 0, "opened at \(durability)")
    }
  }

  @Test("a link that leads nowhere is an existing file") func brokenLink() throws {
    symlink(directory.file("nowhere"), directory.file("link.mdb"))
    try expect(storageCode { _ = try open(directory.file("link.mdb")) }, equals: .alreadyExists)
  }

  @Test("a snapshot of a process that died doesn't make the file grow") func deadReaders() throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    func update(_ count: Int) throws -> Int {
      for number in 0..<count {
        try engine.write { transaction in
          try transaction.put(
            bytes("\(number % 300)"), [UInt8](repeating: UInt8(number & 255), count: 1_000), in: keyspace)
        }
      }
      return try engine.statistics().fileBytes
    }
    let before = try update(900)
    let dying = try startLMDBChild("readers", directory.file(), 3)
    try dying.waitForOutput()
    try expect(dying.end(), equals: .exited(0))
    let after = try update(3_000)
    // Without an end to it 3,000 commits take 40 MB.
    expect(after < before + (4 << 20), "\(before) bytes became \(after)")
    try engine.close()
  }
}
