import CLMDB
import LMDBTestSupport
import TestTools

@testable import StorageLMDB

/// Files that are cut short, foreign or damaged.
@Suite(.serialized)
struct LMDBDamageTests {
  let directory = TemporaryDirectory()

  /// A file with trees of several levels, overflow pages, husks and free pages, and its bytes.
  private func make() throws -> [UInt8] {
    let engine = try open(directory.file())
    var generator = SeededGenerator(seed: 5)
    let documents = try engine.write { try $0.createKeyspace("docs", shape: .documents) }
    let entries = try engine.write { try $0.createKeyspace("index", shape: .entries) }
    for _ in 0..<10 {
      try engine.write { transaction in
        for _ in 0..<100 {
          let key = bytes("key\(generator.below(600))")
          try transaction.put(key, [UInt8](repeating: 1, count: generator.below(700)), in: documents)
          try transaction.put([UInt8](repeating: 2, count: 40) + key, [], in: entries)
        }
        try transaction.put(
          bytes("large\(generator.below(5))"), [UInt8](repeating: 3, count: 9_000), in: documents)
        for _ in 0..<30 { _ = try transaction.delete(bytes("key\(generator.below(600))"), in: documents) }
      }
    }
    try engine.closeSound()
    return [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.file())))
  }

  private func write(_ bytes: [UInt8], _ name: String = "damaged.mdb") throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file(name)))
    return directory.file(name)
  }

  @Test func everyLengthThatLosesPagesInUseIsRefusedAtOpen() throws {
    let whole = try make()
    var refused = 0
    for pages in 0..<(whole.count / 4096) {
      for extra in [0, 2_000] {
        let path = try write(Array(whole.prefix(pages * 4096 + extra)))
        do {
          let engine = try open(path, .openExisting)
          // Only free pages were lost.
          try expect(engine.checkIntegrity(), equals: [], "\(pages) pages")
          try engine.close()
        } catch let error as StorageError {
          let expected: [StorageError.Code] = pages == 0 && extra == 0 ? [.notADatabase] : [.damaged]
          expect(expected.contains(error.code), "\(pages) pages and \(extra) bytes: \(error)")
          refused += 1
        }
      }
    }
    expect(refused > whole.count / 4096)
  }

  /// LMDB writes to a page in place when its flags say that it has been copied to memory, also to one in the map.
  @Test func pagesThatClaimToBeInMemoryAreFound() throws {
    let whole = try make()
    let flagsOffset = 10
    func isFound(_ damage: (inout [UInt8]) -> Void) throws -> Bool {
      var damaged = whole
      damage(&damaged)
      return try !faults(of: write(damaged)).isEmpty
    }
    var inUse = 0
    for page in 2..<(whole.count / 4096) {
      // All but the pages that follow the first of a long value, and free ones.
      let hasHeader = try isFound { bytes in
        for offset in 0..<8 { bytes[page * 4096 + offset] = 0xFF }
      }
      try expect(isFound { $0[page * 4096 + flagsOffset] |= 0x10 }, equals: hasHeader, "page \(page)")
      if hasHeader { inUse += 1 }
    }
    expect(inUse > whole.count / 4096 / 4)
  }

  @Test func otherFilesAreToldFromDamagedOnes() throws {
    let whole = try make()
    try expect(storageCode { _ = try open(write(bytes("this is no database"))) }, equals: .notADatabase)
    try expect(
      storageCode { _ = try open(write([UInt8](repeating: 0, count: 100_000))) }, equals: .notADatabase)
    var version = whole
    version[20] = 2
    try expect(storageCode { _ = try open(write(version)) }, equals: .unsupportedVersion)
    var second = whole
    for index in 4096..<4200 { second[index] = 0x55 }
    try expect(storageCode { _ = try open(write(second)) }, equals: .damaged)
    for (offset, value) in [(40, UInt8(7)), (139, 0xFF), (143, 0xFF)] {
      var meta = whole
      meta[offset] = value
      meta[4096 + offset] = value
      try expect(storageCode { _ = try open(write(meta)) }, equals: .damaged, "byte \(offset)")
    }
    try expect(storageCode { _ = try open(directory.path) }, equals: .notADatabase)
    try expect(storageCode { _ = try open(directory.file("none.mdb"), .openExisting) }, equals: .notFound)
    try expect(storageCode { _ = try open(directory.file("none/none.mdb")) }, equals: .notFound)
  }

  /// LMDB takes the meta page that the last bit of the newest number says, whichever page has the number.
  @Test func numbersOfTransactionsOnTheWrongMetaPagesAreDamage() throws {
    var file = try make()
    let (mainRoot, lastPage, transaction) = (128, 136, 144)
    func number(_ page: Int) -> Int { Int(file[page * 4096 + transaction]) }
    let newest = number(0) > number(1) ? 0 : 1
    expect(number(newest) & 1 == newest && number(newest) == number(1 - newest) + 1)
    for page in [0, 1] { file[page * 4096 + transaction] ^= UInt8(number(0) ^ number(1)) }
    // LMDB would follow this root past the end of the file.
    file[newest * 4096 + mainRoot + 2] = 0x0F
    file[newest * 4096 + lastPage + 2] = 0x1F
    for creation in [FileCreation.openExisting, .openOrCreate] {
      try expect(storageCode { _ = try open(write(file), creation) }, equals: .damaged)
    }
  }

  @Test func anLMDBFileOfSomebodyElseIsRefused() throws {
    var created: OpaquePointer?
    expect(mdb_env_create(&created), equals: 0)
    let environment = try #require(created)
    mdb_env_set_maxdbs(environment, 4)
    expect(mdb_env_open(environment, directory.file(), UInt32(MDB_NOSUBDIR), 0o644), equals: 0)
    var transaction: OpaquePointer?
    mdb_txn_begin(environment, nil, 0, &transaction)
    var handle: MDB_dbi = 0
    expect(mdb_dbi_open(transaction, "theirs", UInt32(MDB_CREATE), &handle), equals: 0)
    expect(mdb_txn_commit(transaction), equals: 0)
    mdb_env_close(environment)
    try expect(storageCode { _ = try open(directory.file()) }, equals: .notADatabase)
  }

  @Test func aCheckOfDamagedPagesNeverCrashesAndFindsBrokenStructure() throws {
    let whole = try make()
    var generator = SeededGenerator(seed: 17)
    var found = 0
    var opened = 0
    for round in 0..<600 {
      var damaged = whole
      let page = 2 + generator.below(whole.count / 4096 - 2)
      if round % 3 == 0 {
        // A whole page of something else.
        for index in 0..<4096 { damaged[page * 4096 + index] = UInt8(truncatingIfNeeded: generator.next()) }
      } else {
        // The header, the offsets of nodes, or anything.
        for _ in 0..<3 {
          let offset = generator.below(round % 3 == 1 ? 64 : 4096)
          damaged[page * 4096 + offset] ^= UInt8(1 + generator.below(255))
        }
      }
      let path = try write(damaged)
      // Without LMDB: the check alone.
      let file = try PageFile(path: path)
      var check = PageCheck(file: file, meta: try file.newestMeta())
      check.run(.everything)
      opened += 1
      if !check.faults.isEmpty { found += 1 }
    }
    // Bytes inside values, keys of equal rank and free pages can't be told from sound ones.
    expect(found > opened / 4, "\(found) of \(opened)")
  }

  /// Changes the first leaf of the free list, of which `change` gets the offsets of two nodes, and looks whether the check
  /// finds that: LMDB ends the process at a later write.
  private func expectFound(_ change: (inout [UInt8], _ first: Int, _ second: Int) -> Void) throws {
    var file = try make()
    func number(_ offset: Int, _ bytes: Int) -> Int {
      (0..<bytes).reduce(0) { $0 | Int(file[offset + $1]) << (8 * $1) }
    }
    let transaction = 16 + 128
    let meta = number(transaction, 8) > number(4096 + transaction, 8) ? 0 : 4096
    let record = meta + 16 + 24
    var page = number(record + 40, 8)
    for _ in 1..<max(1, number(record + 6, 2)) { page = number(page * 4096 + number(page * 4096 + 16, 2), 6) }
    try #require(number(page * 4096 + 12, 2) >= 20, "the free list has two records")
    let nodes = [16, 18].map { page * 4096 + number(page * 4096 + $0, 2) }
    change(&file, nodes[0], nodes[1])
    try expect(faults(of: write(file)) != [])
  }

  @Test func freePagesOfATransactionThatWasNeverAreFound() throws {
    let keyOffset = 8
    try expectFound { file, first, _ in for index in 0..<8 { file[first + keyOffset + index] = 0 } }
    try expectFound { file, _, second in file[second + keyOffset + 4] = 1 }
  }

  @Test func nodesThatOverlapAreFound() throws {
    // The one that lies before the other in the page.
    try expectFound { file, first, second in file[min(first, second)] &+= 8 }
    try expectFound { file, first, second in file[min(first, second)] &-= 8 }
    // An odd number of bytes of page numbers.
    try expectFound { file, first, _ in file[first] &+= 1 }
  }

  /// Makes a file, changes its bytes, and says what opening it threw or else what the check found.
  private func found(
    after make: (any StorageEngine) throws -> Void, _ change: (inout [UInt8]) throws -> Void
  ) throws -> [String] {
    let path = directory.file("\(UUID().uuidString).mdb")
    let engine = try open(path)
    try make(engine)
    try engine.closeSound()
    var file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    try change(&file)
    return try faults(of: write(file))
  }

  /// LMDB moves nodes by their lengths: two wrong ones destroy each other's neighbours, also when their sum is right.
  @Test func nodesThatOverlapBySumsThatAreRightAreFound() throws {
    let valueBytes = 200
    func key(_ number: Int) -> [UInt8] { bytes("k\(100 + number)") }
    func make(_ engine: any StorageEngine) throws {
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("docs", shape: .entries)
        for number in 0..<10 {
          // A node of the next key, as text in the value of this one.
          var value = [UInt8](repeating: 0xFF, count: valueBytes)
          let node = [UInt8(valueBytes), 0, 0, 0, 0, 0, UInt8(key(0).count), 0] + key(number + 1)
          value.replaceSubrange(20..<(20 + node.count), with: node)
          try transaction.put(key(number), value, in: keyspace)
        }
      }
    }
    /// Calls `body` with where the page of the entries begins, and its nodes.
    func change(
      _ file: inout [UInt8], _ body: (inout [UInt8], _ page: Int, _ nodes: [Int]) -> Void
    ) throws {
      func number(_ offset: Int) -> Int { Int(file[offset]) | Int(file[offset + 1]) << 8 }
      let pages = stride(from: 2 * 4096, to: file.count, by: 4096)
        .filter { number($0 + 10) == 2 && number($0 + 12) == 16 + 2 * 10 }
      expect(!pages.isEmpty)
      for page in pages { body(&file, page, (0..<10).map { page + number(page + 16 + 2 * $0) }) }
    }
    let lengths = try found(after: make) { file in
      try change(&file) { file, _, nodes in
        file[nodes[2]] -= 150
        file[nodes[7]] += 50
        file[nodes[8]] += 50
        file[nodes[9]] += 50
      }
    }
    expect(lengths.contains { $0.contains("has a node at") }, "\(lengths)")
    let places = try found(after: make) { file in
      try change(&file) { file, page, nodes in
        let inside = nodes[3] - page + 8 + key(3).count + 20
        file[page + 16 + 2 * 4] = UInt8(inside & 0xFF)
        file[page + 16 + 2 * 4 + 1] = UInt8(inside >> 8)
      }
    }
    expect(places.contains { $0.contains("has a node at") }, "\(places)")
  }

  /// What LMDB writes next goes on from the depth and the counts of a tree without pages.
  @Test func recordsOfTreesWithoutPagesAreLookedAtWhenAFileIsOpened() throws {
    for field in [6, 8, 16, 24, 32] {
      for value: UInt8 in [1, 40] {
        let found = try found(after: { engine in
          try engine.write { _ = try $0.createKeyspace("docs", shape: .documents) }
        }) { file in
          let node: [UInt8] = [48, 0, 0, 0, 2, 0, 4, 0] + bytes("docs")
          let records = file.indices.dropLast(64).filter { file[$0...].starts(with: node) }
          expect(!records.isEmpty)
          for record in records { file[record + node.count + field] = value }
        }
        expect(
          found,
          equals: [
            "at open: the file is damaged or cut off: keyspace docs has no root, but its counts aren't zero"
          ],
          "field \(field)")
      }
    }
  }

  /// Entries are found by the number: one that is another's shows one keyspace's entries as the other's.
  /// Such a file was once made anew over its data.
  @Test func anEmptyTreeInTheNewestMetaPageIsDamage() throws {
    var damaged = try make()
    func transaction(_ page: Int) -> UInt64 {
      damaged.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page * 4096 + 144, as: UInt64.self) }
    }
    let newest = transaction(0) > transaction(1) ? 0 : 4096
    damaged.replaceSubrange((newest + 92)..<(newest + 128), with: [UInt8](repeating: 0, count: 36))
    damaged.replaceSubrange((newest + 128)..<(newest + 136), with: [UInt8](repeating: 0xFF, count: 8))
    for creation in [FileCreation.openExisting, .openOrCreate] {
      let path = try write(damaged)
      try expect(storageCode { _ = try open(path, creation) }, equals: .damaged)
      try expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))), equals: damaged)
    }
  }

  @Test func impossibleCountsOfTheFreeListAreDamage() throws {
    let sound = try make()
    func number<Number: FixedWidthInteger>(_: Number.Type, at offset: Int) -> Int {
      sound.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
    }
    let newest = number(UInt64.self, at: 144) > number(UInt64.self, at: 4096 + 144) ? 0 : 4096
    // The tree of the free list is one leaf. A node is its header of 8 bytes, the key, and the count of pages.
    let leaf = number(UInt64.self, at: newest + 80) * 4096
    expect(number(UInt16.self, at: leaf + 10), equals: 2)
    let nodes = (number(UInt16.self, at: leaf + 12) - 16) / 2
    expect(nodes > 0)
    for count: UInt64 in [1 << 62, UInt64.max, 1 << 20] {
      var damaged = sound
      for node in 0..<nodes {
        let count = withUnsafeBytes(of: count.littleEndian, Array.init)
        let place = leaf + number(UInt16.self, at: leaf + 16 + 2 * node) + 16
        damaged.replaceSubrange(place..<(place + 8), with: count)
      }
      let engine = try open(write(damaged))
      try expect(storageCode { _ = try engine.statistics() }, equals: .damaged)
      try engine.close()
    }
  }

  @Test func numbersAndShapesOfKeyspacesAreLookedAt() throws {
    func found(_ change: @escaping (inout [UInt8], _ value: Int) -> Void) throws -> [String] {
      try self.found(after: { engine in
        try engine.write { transaction in
          for name in ["a", "b"] {
            let keyspace = try transaction.createKeyspace(name, shape: .documents)
            try transaction.put(bytes("a key of \(name)"), [], in: keyspace)
          }
        }
      }) { file in
        let node: [UInt8] = [9, 0, 0, 0, 0, 0, 1, 0] + bytes("a")
        let entries = file.indices.dropLast(64).filter { file[$0...].starts(with: node) }
        expect(!entries.isEmpty)
        for entry in entries { change(&file, entry + node.count) }
      }
    }
    try expect(found { _, _ in }, equals: [])
    for number: UInt8 in [2, 3, 200] {
      let faults = try found { $0[$1 + 7] = number }
      expect(
        faults.count == 1 && faults[0].hasPrefix("at open: the catalog's number of keyspace"), "\(faults)")
    }
    let faults = try found { $0[$1 + 8] = KeyspaceShape.sequences.rawValue }
    expect(faults.contains { $0.contains("that isn't a sequence") }, "\(faults)")
  }

  /// LMDB takes names as C strings: it would open the keyspace of a shorter name.
  @Test func aZeroByteInTheNameOfAKeyspaceIsDamage() throws {
    let found = try found(after: { engine in
      try engine.write { transaction in
        for name in ["a", "ab"] { _ = try transaction.createKeyspace(name, shape: .documents) }
      }
    }) { file in
      let node: [UInt8] = [9, 0, 0, 0, 0, 0, 2, 0] + bytes("ab")
      let entries = file.indices.dropLast(64).filter { file[$0...].starts(with: node) }
      expect(!entries.isEmpty)
      for entry in entries { file[entry + node.count - 1] = 0 }
    }
    expect(found, equals: ["at open: the catalog has a keyspace with an invalid name"])
  }

  @Test func aNameOfADamagedPageIsToldOnOneLine() {
    expect(PageCheck.describe(bytes("index.1")), equals: "keyspace index.1")
    expect(PageCheck.describe(bytes("a\n\0b")), equals: #"keyspace "a\n\0b""#)
  }

  @Test func aDamagedRootIsRefusedAtOpenAndADamagedLeafFoundByTheCheck() throws {
    let whole = try make()
    let file = try PageFile(path: directory.file())
    let meta = try file.newestMeta()
    var check = PageCheck(file: file, meta: meta)
    check.run(.everything)
    expect(check.faults, equals: [])
    expect(check.lostPages, equals: 0)
    for root in [meta.main.root] + check.trees.map(\.record.root) {
      var damaged = whole
      for index in 0..<16 { damaged[Int(root) * 4096 + index] = 0xEE }
      try expect(
        storageCode { _ = try open(write(damaged), .openExisting) }, equals: .damaged, "root \(root)")
    }
    // Every page in use, with its number changed: the check says so each time.
    var faults = 0
    for page in 2...Int(meta.lastPage) {
      var damaged = whole
      let flags = damaged[page * 4096 + 10]
      guard flags == 1 || flags == 2 else { continue }
      damaged[page * 4096] ^= 0x40
      let copy = try PageFile(path: try write(damaged))
      var check = PageCheck(file: copy, meta: meta)
      check.run(.everything)
      if !check.faults.isEmpty { faults += 1 }
    }
    let inUse = check.trees.reduce(Int(meta.main.leafPages + meta.free.leafPages + meta.free.branchPages)) {
      $0 + Int($1.record.leafPages + $1.record.branchPages)
    }
    expect(faults, equals: inUse)
  }

  @Test func anEmptyFileIsMadeIntoADatabaseOnlyWhenOneMayBeMade() throws {
    let path = try write([], "empty.mdb")
    try expect(storageCode { _ = try open(path, .openExisting) }, equals: .notADatabase)
    try open(path, .openOrCreate).close()
    try open(path, .openExisting).close()
  }
}
