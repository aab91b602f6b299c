import CLMDB
import LMDBTestSupport
import TestTools

@testable import Storage
@testable import StorageLMDB
@testable import StorageEncrypted

let encryptionKey = [UInt8](repeating: 7, count: 32)

func openEncrypted(
  _ path: String, _ creation: FileCreation = .openOrCreate, nodePages: Int = 2,
  cacheBytes: Int = 1 << 20
) throws -> LMDBEncryptedEngine {
  try LMDBEncryptedEngine(
    path: path,
    options: EngineOptions(creation: creation, durability: .none, key: encryptionKey, cacheBytes: cacheBytes),
    mapBytes: MapSize.wanted(), nodePages: nodePages)
}

/// Everything an engine holds, by keyspace, read forwards and by key.
private func content(_ engine: any StorageEngine) throws -> [String: [[UInt8]: [UInt8]]] {
  try engine.read { transaction in
    try transaction.keyspaces().mapValues { keyspace in
      let entries = try transaction.entries(of: keyspace)
      for entry in entries {
        guard try transaction.bytes(entry.key, in: keyspace) == entry.value else {
          throw StorageError(.engineFailure, "a scan and a get give different values")
        }
      }
      return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
    }
  }
}

/// The records of a closed file, as LMDB's own functions give and take them.
struct Records {
  static func all(_ path: String) throws -> [UInt64: [UInt8]] {
    var records: [UInt64: [UInt8]] = [:]
    try with(path) { transaction, database in
      var cursor: OpaquePointer?
      expect(mdb_cursor_open(transaction, database, &cursor), equals: 0)
      defer { mdb_cursor_close(cursor) }
      var key = MDB_val()
      var value = MDB_val()
      while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0 {
        let number = UInt64(bigEndian: UnsafeRawBufferPointer(key).loadUnaligned(as: UInt64.self))
        records[number] = [UInt8](UnsafeRawBufferPointer(value))
      }
    }
    return records
  }

  static func put(_ records: [UInt64: [UInt8]], _ path: String) throws {
    try with(path) { transaction, database in
      for (number, bytes) in records {
        withUnsafeBytes(of: number.bigEndian) { key in
          bytes.withUnsafeBytes { value in
            var key = MDB_val(key)
            var value = MDB_val(value)
            expect(mdb_put(transaction, database, &key, &value, 0), equals: 0)
          }
        }
      }
    }
  }

  static func remove(_ numbers: some Sequence<UInt64>, _ path: String) throws {
    try with(path) { transaction, database in
      for number in numbers {
        withUnsafeBytes(of: number.bigEndian) { key in
          var key = MDB_val(key)
          expect(mdb_del(transaction, database, &key, nil), equals: 0)
        }
      }
    }
  }

  private static func with(_ path: String, _ body: (OpaquePointer, MDB_dbi) throws -> Void) throws {
    var environment: OpaquePointer?
    expect(mdb_env_create(&environment), equals: 0)
    defer { mdb_env_close(environment) }
    mdb_env_set_maxdbs(environment, 8)
    mdb_env_set_mapsize(environment, 1 << 30)
    expect(mdb_env_open(environment, path, UInt32(MDB_NOSUBDIR | MDB_NOSYNC), 0o644), equals: 0)
    var transaction: OpaquePointer?
    var database: MDB_dbi = 0
    expect(mdb_txn_begin(environment, nil, 0, &transaction), equals: 0)
    expect(mdb_dbi_open(transaction, "@records", 0, &database), equals: 0)
    try body(try #require(transaction), database)
    expect(mdb_txn_commit(transaction), equals: 0)
  }
}

/// Files of the encrypted engine that somebody without the key has changed, or looks at.
@Suite(.serialized)
struct EncryptedFileTests {
  let directory = TemporaryDirectory()

  private var path: String { directory.file("main.emdb") }

  /// A file with trees of three levels, large values and several sessions.
  @discardableResult
  private func make() throws -> [String: [[UInt8]: [UInt8]]] {
    for session in 0..<3 {
      let engine = try openEncrypted(path)
      try engine.write { transaction in
        let documents = try transaction.createKeyspace("docs", shape: .documents)
        let entries = try transaction.createKeyspace("index", shape: .entries)
        for number in stride(from: session, to: 900, by: 2) {
          try transaction.put(
            bytes("doc\(number)"), [UInt8](repeating: UInt8(session), count: 300), in: documents)
          let key = [UInt8](repeating: UInt8(number % 250), count: 400) + bytes("\(number)")
          try transaction.put(key, [], in: entries)
        }
        for number in 0..<10 {
          let value = [UInt8](repeating: UInt8(number), count: 2_000 + 3_000 * number)
          try transaction.put(bytes("large\(number)"), value, in: documents)
        }
      }
      try engine.close()
    }
    let engine = try openEncrypted(path)
    defer { try? engine.close() }
    try expect(engine.checkIntegrity(), equals: [])
    return try content(engine)
  }

  /// What a changed file gives: nil for an error that says so.
  private func found(checking: Bool) throws -> [String: [[UInt8]: [UInt8]]]? {
    do {
      let engine = try openEncrypted(path, .openExisting)
      defer { try? engine.close() }
      if checking, try !engine.checkIntegrity().isEmpty { return nil }
      return try content(engine)
    } catch let error as StorageError {
      let codes: [StorageError.Code] = [.damaged, .notADatabase, .unsupportedVersion, .notEncrypted]
      expect(codes.contains(error.code), "\(error)")
      return nil
    }
  }

  @Test func aFlippedByteAnywhereIsAnErrorOrChangesNothing() throws {
    let whole = try make()
    let sound = try Data(contentsOf: URL(fileURLWithPath: path))
    var generator = SeededGenerator(seed: testSeed)
    var noticed = 0
    let rounds = isShort ? 50 : 150
    for _ in 0..<rounds {
      var damaged = sound
      let place = generator.below(damaged.count)
      damaged[place] ^= UInt8(1 << generator.below(8))
      try damaged.write(to: URL(fileURLWithPath: path))
      if let found = try found(checking: true) {
        expect(found, equals: whole, "byte \(place), seed \(testSeed)")
      } else {
        noticed += 1
      }
    }
    expect(noticed > rounds / 10)
  }

  @Test func aFlippedByteInARecordIsMetByWhoReadsItWithoutACheck() throws {
    let whole = try make()
    let sound = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    // Overflow pages hold the records: flag 4, and how many they are.
    var places: [Range<Int>] = []
    var page = 2
    while page * 4_096 < sound.count {
      let start = page * 4_096
      let isRecord = sound[start + 10] == 4
      let pages = isRecord ? Int(sound[start + 12]) : 1
      if isRecord { places.append((start + 16)..<((page + pages) * 4_096)) }
      page += pages
    }
    expect(places.count > 20)
    var generator = SeededGenerator(seed: testSeed)
    var noticed = 0
    let rounds = isShort ? 40 : 100
    for _ in 0..<rounds {
      var damaged = sound
      let record = places[generator.below(places.count)]
      damaged[record.lowerBound + generator.below(record.count)] ^= UInt8(1 << generator.below(8))
      try Data(damaged).write(to: URL(fileURLWithPath: path))
      if let found = try found(checking: false) {
        // Of a page that was freed.
        expect(found, equals: whole, "seed \(testSeed)")
      } else {
        noticed += 1
      }
    }
    // Many lie in pages that were freed, which nobody reads.
    expect(noticed > rounds * 15 / 100, "seed \(testSeed)")
  }

  /// Opening reads header, root and, of many keyspaces, their tree, before a check can have looked at the pages on the way.
  @Test(arguments: [1, 300])
  func aFlippedBitInThePagesThatAnOpenGoesThroughIsAnErrorThere(keyspaces: Int) throws {
    try make()
    let engine = try openEncrypted(path)
    try engine.write { transaction in
      for number in 1..<keyspaces { _ = try transaction.createKeyspace("k\(number)", shape: .entries) }
    }
    try engine.close()
    let sound = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    var generator = SeededGenerator(seed: 11)
    var refused = 0
    for page in 2..<(sound.count / 4_096) {
      let start = page * 4_096
      guard sound[start] == UInt8(page & 0xFF), sound[start + 10] == 1 || sound[start + 10] == 2 else {
        continue
      }
      // A page of a long value is random bytes, which may look like that by chance.
      let upper = Int(sound[start + 14]) | Int(sound[start + 15]) << 8
      guard (26..<4_096).contains(upper) else { continue }
      // Header and offsets, and the nodes, which lie at the page's end.
      let places = Array(0..<26) + (0..<10).map { _ in upper + generator.below(4_096 - upper) }
      // Of many pages a short run takes other places each.
      for place in places where !isShort || keyspaces == 1 || place % 4 == page % 4 {
        var damaged = sound
        damaged[start + place] ^= place % 2 == 0 ? 1 << UInt8(generator.below(8)) : 0x80
        try Data(damaged).write(to: URL(fileURLWithPath: path))
        do { try openEncrypted(path, .openExisting).close() } catch let error as StorageError {
          let codes: [StorageError.Code] = [.damaged, .notEncrypted, .notADatabase, .unsupportedVersion]
          expect(codes.contains(error.code), "page \(page), byte \(place): \(error)")
          refused += 1
        }
      }
    }
    expect(refused > (isShort && keyspaces > 1 ? 20 : 100), "\(refused)")
  }

  @Test func swappedRecordsAreAnError() throws {
    try make()
    let records = try Records.all(path)
    var generator = SeededGenerator(seed: 3)
    let numbers = records.keys.filter { $0 > 1 }.sorted()
    for _ in 0..<30 {
      let left = numbers[generator.below(numbers.count)]
      let right = numbers[generator.below(numbers.count)]
      guard left != right, records[left]?.count == records[right]?.count else { continue }
      try Records.put([left: records[right] ?? [], right: records[left] ?? []], path)
      try expect(found(checking: true) == nil, "\(left) and \(right)")
      try expect(found(checking: false) == nil, "\(left) and \(right)")
      try Records.put([left: records[left] ?? [], right: records[right] ?? []], path)
    }
    try expect(found(checking: true) != nil)
  }

  @Test func anOlderStateOfARecordIsAnErrorAndOnlyTheWholeOlderFileIsntNoticed() throws {
    let whole = try make()
    let old = try Records.all(path)
    let engine = try openEncrypted(path)
    try engine.write { transaction in
      let documents = try #require(try transaction.keyspace(named: "docs"))
      try transaction.put(bytes("doc5"), [9], in: documents)
      try transaction.put(bytes("large5"), [UInt8](repeating: 9, count: 17_000), in: documents)
    }
    try engine.close()
    let new = try Records.all(path)
    let changed = new.keys.filter { old[$0] != nil && old[$0] != new[$0] }
    expect(changed.count >= 3 && changed.contains(RecordFormat.rootNumber))
    for number in changed {
      try Records.put([number: old[number] ?? []], path)
      try expect(found(checking: true) == nil, "record \(number)")
      try expect(found(checking: false) == nil, "record \(number)")
      try Records.put([number: new[number] ?? []], path)
    }
    try expect(found(checking: true) != whole)
    // All of it together is a sound file of an earlier time, but for records that there were none of then.
    try Records.put(old, path)
    try expect(found(checking: false) == nil)
    try Records.remove(new.keys.filter { old[$0] == nil }, path)
    try expect(found(checking: false), equals: whole)
  }

  @Test func recordsHaveTwoSizesWhateverIsInThem() throws {
    try make()
    try expect(Set(try Records.all(path).filter { $0.key > 1 }.values.map(\.count)), equals: [4_080, 8_176])
  }

  @Test func noSealIsGivenTwice() throws {
    var seen: Set<[UInt64]> = []
    for _ in 0..<20 {
      let sealer = Sealer()
      for count in 1...100 {
        let first = try sealer.take(count)
        for index in 0..<count {
          let seal = first.advanced(by: index)
          expect(seen.insert([seal.session, seal.middle, seal.nonce]).inserted)
        }
      }
    }
  }

  @Test func aPlainFileTakesNoKeyAndAnEncryptedOneNeedsIt() throws {
    try make()
    let options = EngineOptions(creation: .openExisting, durability: .none)
    try expect(storageCode { _ = try LMDBEngines.lmdb.open(path, options) }, equals: .keyRequired)
    let plain = try LMDBEngines.lmdb.open(directory.file("plain.mdb"), EngineOptions(durability: .none))
    try plain.write { _ = try $0.createKeyspace("k", shape: .entries) }
    try plain.close()
    try expect(storageCode { _ = try openEncrypted(directory.file("plain.mdb")) }, equals: .notEncrypted)
    let again = try LMDBEngines.lmdb.open(directory.file("plain.mdb"), options)
    try expect(again.read { try $0.keyspaces().count }, equals: 1)
  }

  @Test(arguments: ["mdb_stat", "mdb_dump"])
  func theToolsOfLMDBReadTheOuterFile(tool: String) throws {
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/\(tool)") else { return }
    try make()
    let output = try runTool(tool, "-n", "-a", path)
    expect(output.contains("@records"))
    expect(!output.contains("docs"))
  }

  /// Random changes in transactions of parts, with nodes of one page to many, next to no cache, and nodes that are
  /// written early, against a dictionary.
  @Test(arguments: [1, 2, 4])
  func randomTransactionsAgreeWithADictionary(nodePages: Int) throws {
    var generator = SeededGenerator(seed: testSeed)
    var model: [[UInt8]: [UInt8]] = [:]
    struct Undone: Error {}
    for round in 0..<4 {
      let engine = try openEncrypted(path, nodePages: nodePages, cacheBytes: round % 2 == 0 ? 0 : 1 << 20)
      engine.file.spillBytes = round < 2 ? 30_000 : 1 << 30
      let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
      for _ in 0..<12 {
        let before = model
        let isUndone = generator.below(4) == 0
        do {
          try engine.write { transaction in
            for _ in 0..<generator.below(400) {
              let key =
                bytes("key\(generator.below(700))") + [UInt8](repeating: 1, count: generator.below(200))
              switch generator.below(10) {
              case 0..<6:
                let size = generator.below(8) == 0 ? generator.below(30_000) : generator.below(600)
                let value = [UInt8](repeating: UInt8(generator.below(256)), count: size)
                try transaction.put(key, value, in: keyspace)
                model[key] = value
              case 6..<9:
                let found = model.keys.first { _ in true }
                let key = found ?? key
                try expect(
                  transaction.delete(key, in: keyspace), equals: (model.removeValue(forKey: key) != nil))
              default:
                let low = bytes("key\(generator.below(700))")
                let high = bytes("key\(generator.below(700))")
                guard generator.below(6) == 0 else { continue }
                let range = KeyRange(lower: .inclusive(low), upper: .exclusive(high))
                let inside = model.keys.filter {
                  !$0.lexicographicallyPrecedes(low) && $0.lexicographicallyPrecedes(high)
                }
                try expect(transaction.deleteRange(range, in: keyspace), equals: inside.count)
                for key in inside { model[key] = nil }
              }
            }
            if isUndone { throw Undone() }
          }
        } catch is Undone { model = before }
        try expect(content(engine), equals: ["k": model], "seed \(testSeed)")
      }
      try expect(engine.checkIntegrity(), equals: [], "seed \(testSeed)")
      try engine.close()
    }
    let engine = try openEncrypted(path)
    try expect(content(engine), equals: ["k": model], "seed \(testSeed)")
    let empty = try engine.write { transaction in
      let keyspace = try #require(try transaction.keyspace(named: "k"))
      return try transaction.deleteRange(.all, in: keyspace)
    }
    expect(empty, equals: model.count)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
    try expect(Records.all(path).count, equals: 2)
  }

  /// What the bodies of one commit share: they run one after another.
  private final class Shared: @unchecked Sendable {
    var generator: SeededGenerator
    var model: [[UInt8]: [UInt8]] = [:]
    var mostChanged = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    func change(_ count: Int, _ transaction: any WriteTransaction, _ keyspace: Keyspace) throws {
      for _ in 0..<count {
        let key = bytes("key\(generator.below(400))")
        if generator.below(4) == 0 {
          guard try transaction.delete(key, in: keyspace) == (model.removeValue(forKey: key) != nil) else {
            throw StorageError(.engineFailure, "a delete found another entry than there is")
          }
        } else {
          let value = [UInt8](repeating: UInt8(generator.below(256)), count: 500 + generator.below(500))
          try transaction.put(key, value, in: keyspace)
          model[key] = value
        }
        let changed = (transaction as? EncryptedWriteTransaction)?.write.changed.nodes.count ?? .max
        mostChanged = max(mostChanged, changed)
      }
    }
  }

  /// A part keeps no more nodes in memory than a transaction alone, and undone it leaves nothing, also of those that it
  /// has written.
  @Test func partsThatShareACommitWriteTheirNodesEarly() throws {
    struct Undone: Error {}
    let shared = Shared(seed: testSeed)
    let engine = try openEncrypted(path, nodePages: 1)
    engine.file.spillBytes = 40_000
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    for round in 0..<8 {
      let isIn = CountingSemaphore()
      try onThreads(4) { thread in
        if thread > 0 {
          isIn.wait()
          isIn.signal()
        }
        do {
          try engine.write { transaction in
            if thread == 0 {
              isIn.signal()
              // The others join it.
              while engine.file.environment.queue.waitingCount < 3 { usleep(100) }
            }
            let before = shared.model
            // The first changes less than is written early: that stays in memory beside what the next one writes.
            try shared.change(thread == 0 && round > 0 ? 4 : 300, transaction, keyspace)
            if thread > 0, (thread + round) % 2 == 0 {
              shared.model = before
              throw Undone()
            }
          }
        } catch is Undone {}
      }
      try expect(content(engine), equals: ["k": shared.model], "seed \(testSeed)")
    }
    // Ten nodes are too many, and a change touches a few more.
    expect(shared.mostChanged < 40)
    try expect(engine.checkIntegrity(), equals: [], "seed \(testSeed)")
    try engine.close()
    try expect(content(openEncrypted(path)), equals: ["k": shared.model], "seed \(testSeed)")
  }
}
