import Foundation
import Storage
import StorageConformance
import StorageFlat
import Testing
import TestTools

#if ROCKSDB
  @testable import StorageRocksDB
#endif
#if WIREDTIGER
  @testable import StorageWiredTiger
#endif

/// What the engines have in common whose libraries have a directory of their own.
struct FlatEngineTests {
  static let types: [EngineType] = {
    var types: [EngineType] = []
    #if ROCKSDB
      types.append(RocksDBEngines.rocksdb)
    #endif
    #if WIREDTIGER
      types.append(WiredTigerEngines.wiredtiger)
    #endif
    return types
  }()

  private let directory = TemporaryDirectory()
  private var path: String { directory.path + "/main" }

  private func fill(_ type: EngineType, _ options: EngineOptions = EngineOptions()) throws {
    let engine = try type.open(path, options)
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      for number in 0..<100 {
        try transaction.put(Array("\(number)".utf8), [UInt8](repeating: 1, count: 100), in: keyspace)
      }
    }
    try engine.close()
  }

  private func failure(_ type: EngineType, _ options: EngineOptions = EngineOptions()) -> StorageError? {
    do { try type.open(path, options).close() } catch { return error as? StorageError }
    return nil
  }

  private func record() throws -> String {
    try String(contentsOfFile: path + "/touchstone", encoding: .utf8)
  }

  private func write(record: String) throws {
    try record.write(toFile: path + "/touchstone", atomically: true, encoding: .utf8)
  }

  @Test(arguments: types) func settingsHaveTheNamesOfTheLibrary(_ type: EngineType) throws {
    for (durability, wanted) in [(Durability.full, true), (.normal, false)] {
      let engine = try type.open(path, EngineOptions(durability: durability))
      let settings = Dictionary(engine.settings.map { ($0.name, $0.value) }) { first, _ in first }
      if type.name == "rocksdb" {
        expect(settings["WriteOptions.sync"], equals: "\(wanted)")
        expect(settings["write_buffer_size"], equals: "10485760")
      } else {
        expect(settings["transaction_sync"], equals: "(enabled=true,method=\(wanted ? "fsync" : "none"))")
        expect(settings["cache_size"], equals: "41943040")
      }
      try engine.close()
    }
  }

  @Test(arguments: types) func aCompressionIsOfNewDataAndAnyOpenReadsIt(_ type: EngineType) throws {
    let value = [UInt8](repeating: 7, count: 10_000)
    var sizes: [String: Int] = [:]
    for compression in type.compressions {
      let path = directory.path + "/" + compression
      func use(_ options: EngineOptions, _ body: (any StorageEngine) throws -> Void) throws {
        let engine = try type.open(path, options)
        try body(engine)
        try engine.close()
      }
      func count(_ engine: any StorageEngine) throws -> Int {
        let found = try engine.read { transaction in
          var count = 0
          guard let keyspace = try transaction.keyspace(named: "k") else { return 0 }
          try transaction.scan(keyspace, .all, order: .ascending, fetch: .entries) { _, stored in
            if stored.withUnsafeBytes({ $0.elementsEqual(value) }) { count += 1 }
            return true
          }
          return count
        }
        return found
      }
      try use(EngineOptions(compression: compression)) { engine in
        expect(engine.settings.contains { $0.name.hasPrefix("compress") || $0.name == "block_compressor" })
        expect(engine.settings.contains { $0.value == compression })
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k", shape: .documents)
          for number in 0..<300 { try transaction.put(Array("\(number)".utf8), value, in: keyspace) }
        }
      }
      sizes[compression] = try FileManager.default.contentsOfDirectory(atPath: path).reduce(0) { sum, name in
        let size = try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.size] as? Int
        // The log isn't compressed.
        return sum + (name.hasSuffix(".log") || name.contains("Log") ? 0 : size ?? 0)
      }
      // Other opens need not know.
      for other in [nil] + type.compressions {
        try use(EngineOptions(compression: other)) { engine in
          try expect(count(engine), equals: 300, "\(compression), then \(other ?? "nothing")")
          try engine.write { transaction in
            guard let keyspace = try transaction.keyspace(named: "k") else { return }
            let key: [UInt8] = [9]
            try transaction.put(key, value, in: keyspace)
            _ = try transaction.delete(key.span.bytes, in: keyspace)
          }
        }
      }
      try use(EngineOptions(isReadOnly: true)) { try expect(count($0), equals: 300) }
    }
    let plain = try #require(sizes["none"])
    for (compression, size) in sizes where compression != "none" {
      expect(size < plain / 2, "\(compression): \(size) bytes, without: \(plain)")
    }
  }

  @Test(arguments: types) func aRecordOfAnotherFormatOrEngineIsRefused(_ type: EngineType) throws {
    try fill(type)
    let sound = try record()
    expect(sound.hasPrefix("touchstone \(type.name) 1 "))
    for (line, code) in [
      ("touchstone \(type.name) 2 0\n", StorageError.Code.unsupportedVersion),
      ("touchstone other 1 0\n", .notADatabase), ("touchstone \(type.name) 1\n", .damaged),
      ("touchstone \(type.name) x 0\n", .damaged), ("", .damaged),
    ] {
      try write(record: line)
      let error = failure(type)
      expect(error?.code, equals: code)
      expect(error?.path, equals: path)
    }
    try FileManager.default.removeItem(atPath: path + "/touchstone")
    expect(failure(type)?.code, equals: .notADatabase)
    try write(record: sound)
    expect(failure(type) == nil)
  }

  @Test(arguments: types) func aMissingFileIsDamageAndNotANewDatabase(_ type: EngineType) throws {
    try fill(type)
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    // Without these, either library makes a new database.
    for name in names where name == "CURRENT" || name == "WiredTiger" || name == "WiredTiger.turtle" {
      try FileManager.default.moveItem(atPath: path + "/" + name, toPath: path + "-" + name)
      let code = failure(type)?.code
      expect(code == .damaged || code == .ioError, "without \(name): \(String(describing: code))")
      try? FileManager.default.removeItem(atPath: path + "/" + name)
      try FileManager.default.moveItem(atPath: path + "-" + name, toPath: path + "/" + name)
    }
    expect(failure(type) == nil)
  }

  @Test(arguments: types.filter { $0.name == "rocksdb" })
  func lostCommitsAreFoundByTheNumberOfTheLastClose(_ type: EngineType) throws {
    try fill(type)
    let old = directory.path + "/old"
    try FileManager.default.copyItem(atPath: path, toPath: old)
    let engine = try type.open(path, EngineOptions())
    try engine.write { try $0.put([1], [2], in: $0.createKeyspace("k", shape: .documents)) }
    try engine.close()
    let last = try record()
    // The files of before, with the record of now.
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: old, toPath: path)
    try write(record: last)
    expect(failure(type)?.code, equals: .damaged)
  }

  /// RocksDB with assertions ends the process if it can't write its own log, as on a full disk.
  @Test(arguments: types.filter { $0.name == "rocksdb" })
  func theLibrarysOwnLogStaysEmpty(_ type: EngineType) throws {
    try fill(type)
    try type.open(path, EngineOptions(creation: .openExisting)).close()
    let logs = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasPrefix("LOG") }
    expect(logs.contains("LOG"), "\(logs)")
    for log in logs {
      let size = try FileManager.default.attributesOfItem(atPath: path + "/" + log)[.size] as? Int
      expect(size, equals: 0, "\(log)")
    }
  }

  @Test(arguments: types) func aPipeInThePlaceOfAFileIsRefused(_ type: EngineType) throws {
    try fill(type)
    expect(mkfifo(path + "/pipe", 0o600), equals: 0)
    let error = failure(type, EngineOptions(creation: .openExisting))
    expect(error?.code == .notADatabase && error?.path == path + "/pipe", "\(String(describing: error))")
  }

  @Test(arguments: types) func entriesOfADroppedKeyspaceGo(_ type: EngineType) throws {
    try fill(type)
    let engine = try type.open(path, EngineOptions())
    let old = try engine.beginRead()
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      try transaction.dropKeyspace(keyspace)
    }
    if let keyspace = try old.keyspace(named: "k") { try expect(old.count(of: keyspace), equals: 100) }
    old.end()
    try engine.close()
    let again = try type.open(path, EngineOptions())
    try expect(again.maintenance.statistics().entries, equals: [:])
    try expect(again.maintenance.checkIntegrity(), equals: [])
    try again.close()
  }

  @Test(arguments: types) func aTransactionOfManyWritersUndoesOnlyTheOneThatFails(_ type: EngineType) throws {
    let engine = try type.open(path, EngineOptions(durability: .full))
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    try onThreads(8) { thread in
      for number in 0..<25 {
        let key = [UInt8(thread), UInt8(number)]
        do {
          try engine.write { transaction in
            try transaction.put(key, [1], in: keyspace)
            try transaction.put([255], key, in: keyspace)
            if number % 5 == 0 { throw CancellationError() }
          }
        } catch is CancellationError {}
      }
    }
    try engine.read { transaction in
      try expect(transaction.count(of: keyspace), equals: 8 * 20 + 1)
      for thread in 0..<8 {
        for number in 0..<25 {
          let isThere = try transaction.bytes([UInt8(thread), UInt8(number)], in: keyspace) != nil
          expect(isThere, equals: number % 5 != 0)
        }
      }
    }
    try expect(engine.maintenance.checkIntegrity(), equals: [])
    try engine.close()
  }

  @Test(arguments: types) func aTransactionMayBeLargerThanTheCache(_ type: EngineType) throws {
    let engine = try type.open(path, EngineOptions(durability: .none, cacheBytes: 1 << 20))
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let value = [UInt8](repeating: 1, count: 16_000)
    try engine.write { transaction in
      for number in 0..<2_000 { try transaction.put(Array("\(number)".utf8), value, in: keyspace) }
    }
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 2_000)
    try expect(engine.maintenance.checkIntegrity(), equals: [])
    try engine.close()
  }

  #if WIREDTIGER
    /// WiredTiger itself gives up when its log doesn't fit the disk.
    @Test func aCommitThatTheDiskHasNoRoomForIsRefusedBeforeWiredTigerSeesIt() throws {
      let log = WiredLog(directory: directory.path)
      try log.reserve(1_000, spare: 1_000, cacheBytes: 1 << 20, isBuffered: true)
      let error = #expect(throws: StorageError.self) {
        try log.reserve(1 << 60, spare: 0, cacheBytes: 1 << 20, isBuffered: true)
      }
      expect(error?.code == .diskFull && error?.path == directory.path, "\(String(describing: error))")
    }
  #endif

  #if ROCKSDB
    /// As RocksDB 7.8 writes it.
    @Test func totalsOfRocksDBAreFoundInItsText() {
      let heads =
        "Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) "
        + "Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)"
      let zeros = "0.0 0.0 0.0 0.1 0.1 0.0 0.0 0.0 20.8 20.8 5.43 0.65"
      let text = """

        ** Compaction Stats [default] **
        Level    \(heads)
          L0     13/10   3.11 MB \(zeros) 99 0.034 0 0 0.0 0.0
        ** Compaction Stats [default] **
        Priority    \(heads)
         Low      0/0    0.00 KB \(zeros) 14 0.388 114K 0 0.0 0.0
        High      0/0    0.00 KB \(zeros) 79 0.034 0 0 0.0 0.0
        Stalls(count): 3 level0_slowdown, 2 level0_slowdown_with_compaction, 23 memtable_compaction, interval 23 total count
        """
      let totals = RocksTotals(text)
      expect(totals.flushes, equals: 79)
      expect(totals.compactions, equals: 14)
      expect(totals.stalls, equals: 26)
      expect(RocksTotals("Low\nPriority Comp(cnt)\nHigh 1\nStalls(count):"), equals: RocksTotals(""))
    }

    @Test func rocksDBCountsItsFlushes() throws {
      let engine = try RocksDBEngines.rocksdb.open(path, EngineOptions(cacheBytes: 1 << 20))
      let flat = try #require(engine as? FlatEngine)
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        for number in 0..<2_000 {
          try transaction.put(Array("\(number)".utf8), [UInt8](repeating: 1, count: 1_000), in: keyspace)
        }
      }
      try flat.compact()
      let activity = try flat.activity()
      expect((activity.first { $0.name == "flushes" }?.value ?? 0) > 0, "\(activity)")
      try engine.close()
      #expect(throws: StorageError.self) { try flat.activity() }
    }
  #endif
}
