import TestTools

@testable import StorageSQLite

struct MaintenanceTests {
  let directory = TemporaryDirectory()

  /// Whichever way the name was given.
  @Test(arguments: Kind.all, [true, false]) func theNameOfANewFileIsSynced(_ kind: Kind, hardLinks: Bool)
    throws
  {
    let watch = try #require(DirectoryWatch(directory.path))
    try withFileSystem(hardLinks: hardLinks, exclusiveRenames: false) {
      for durability in Durability.allCases {
        let engine = try kind.open(directory.file(durability.rawValue), durability: durability)
        expect(watch.opens(), equals: (durability == .none ? 0 : 1), "\(durability)")
        try engine.close()
        _ = watch.opens()
      }
    }
  }

  /// More than the caches hold, so that what the library builds aside is written to a file.
  @Test(arguments: Kind.all) func compactionGivesSpaceBackAndKeepsEverything(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 5_000, bytes: 1_000)
    try engine.fill("ghosts", count: 2_500, bytes: 1_000, text: UInt8(ascii: "G"))
    try engine.write { (transaction: any WriteTransaction) in
      for number in stride(from: 0, to: 5_000, by: 2) {
        _ = try key(number).withUnsafeBytes { try transaction.delete($0, in: keyspace) }
      }
      if let ghosts = try transaction.keyspace(named: "ghosts") { try transaction.dropKeyspace(ghosts) }
    }
    let snapshot = try engine.beginRead()
    let before = try engine.statistics()
    try engine.compact()
    try expect(snapshot.count(of: keyspace), equals: 2_500)
    try expect(snapshot.bytes(key(1), in: keyspace), equals: [UInt8](repeating: 0x41, count: 1_000))
    snapshot.end()
    try engine.compact()
    let after = try engine.statistics()
    expect(after.freePages, equals: 0)
    expect(after.fileBytes * 5 < before.fileBytes * 2)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.read { transaction in
      var count = 0
      try transaction.scan(keyspace) { _, value in
        count += 1
        return [UInt8](copying: value) == [UInt8](repeating: 0x41, count: 1_000)
      }
      expect(count, equals: 2_500)
    }
    try engine.close()
    if !kind.type.encrypts {
      try expect(!String(decoding: try contents(path), as: UTF8.self).contains("GGGGGGGG"))
    }
    let again = try kind.open(path, .openExisting)
    try expect(again.checkIntegrity(), equals: [])
    try again.close()
  }

  @Test(arguments: Kind.all) func aBackupIsAWholeFileOfTheLastCommit(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace = try engine.fill(count: 5_000, bytes: 1_000)
    for shape in KeyspaceShape.allCases {
      try engine.write { (transaction: any WriteTransaction) in
        let keyspace = try transaction.createKeyspace("\(shape)", shape: shape)
        for number in 0..<500 {
          try transaction.put(
            withUnsafeBytes(of: UInt64(number).bigEndian) { [UInt8]($0) }, [1, 2, 3], in: keyspace)
        }
      }
    }
    try engine.write { (transaction: any WriteTransaction) in
      for number in 0..<2_500 {
        _ = try key(number).withUnsafeBytes { try transaction.delete($0, in: keyspace) }
      }
      // Within a transaction, a backup is of the commit before it.
      try expect(storageCode { try engine.backup(to: directory.file("inside")) } == nil)
    }
    let inside = try kind.open(directory.file("inside"), .openExisting)
    try expect(inside.statistics().entries["k"], equals: 5_000)
    try inside.close()

    let target = directory.file("b")
    try engine.backup(to: target)
    try expect(engine.code { try $0.maintenance.backup(to: target) }, equals: .alreadyExists)
    let copy = try kind.open(target, .openExisting)
    try expect(copy.checkIntegrity(), equals: [])
    try expect(copy.statistics().entries, equals: engine.statistics().entries)
    try expect(copy.statistics().freePages, equals: 0)
    try expect(copy.statistics().totalPages < engine.statistics().totalPages)
    // Numbers go on where they were.
    let made: Keyspace = try copy.write { try $0.createKeyspace("new", shape: .entries) }
    expect(made.number, equals: 5)
    try copy.close()
    try expect(engine.code { try $0.maintenance.backup(to: directory.file("no/where")) } != nil)
    try engine.close()
    let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    expect(left.sorted(), equals: ["a", "b", "inside"])
  }

  @Test(arguments: Kind.all) func aReadOnlyEngineReadsCopiesAndChecksAndNothingElse(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    let keyspace = try engine.fill(count: 100, bytes: 100)
    let reader = try kind.open(path, isReadOnly: true)
    try expect(reader.code { try $0.write { (_: any WriteTransaction) in } }, equals: .readOnly)
    try expect(reader.code { try $0.maintenance.compact() }, equals: .readOnly)
    try engine.fill(count: 200, bytes: 100)
    try expect(reader.read { try $0.count(of: keyspace) }, equals: 200)
    try expect(reader.checkIntegrity(), equals: [])
    try reader.backup(to: directory.file("b"))
    let copy = try kind.open(directory.file("b"))
    try expect(copy.read { try $0.count(of: keyspace) }, equals: 200)
    try copy.close()
    try reader.close()
    try engine.close()
  }

  @Test(arguments: Kind.all) func settingsAndStatisticsSayWhatIsSet(_ kind: Kind) throws {
    for durability in Durability.allCases {
      let engine = try kind.open(directory.file("\(durability)"), durability: durability)
      let settings = Dictionary(uniqueKeysWithValues: engine.settings.map { ($0.name, $0.value) })
      expect(settings["journal_mode"], equals: "wal")
      expect(settings["synchronous"], equals: ["full": "2", "normal": "1", "none": "0"][durability.rawValue])
      expect(settings["page_size"], equals: "4096")
      expect(engine.library.hasPrefix(kind.type.name == "sqlite" ? "SQLite 3." : "SQLCipher 3."))
      let statistics = try engine.statistics()
      expect(statistics.pageBytes == 4096 && statistics.openReaders == 0)
      try engine.close()
    }
  }

  @Test(arguments: Kind.all) func aClosedEngineSaysSo(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let snapshot = try engine.beginRead()
    try expect(engine.code { try $0.close() }, equals: .inUse)
    snapshot.end()
    try engine.close()
    try engine.close()
    try expect(engine.code { _ = try $0.beginRead() }, equals: .closed)
    try expect(engine.code { try $0.write { (_: any WriteTransaction) in } }, equals: .closed)
    try expect(engine.code { _ = try $0.maintenance.statistics() }, equals: .closed)
    try expect(engine.code { try $0.maintenance.compact() }, equals: .closed)
    try expect(engine.code { try $0.maintenance.backup(to: directory.file("b")) }, equals: .closed)
    try expect(engine.code { _ = try $0.maintenance.checkIntegrity() }, equals: .closed)
  }
}
