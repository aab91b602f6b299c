import CLMDB
import Foundation
import Glibc
import Storage
import TestSupport
import Testing

@testable import StorageLMDB

/// What opening a file does, and doesn't.
@Suite(.serialized)
struct OpeningTests {
  let directory: TemporaryDirectory
  init() { directory = TemporaryDirectory() }

  /// A sound file that ends before its last pages: they were taken and freed by one transaction, and never written.
  private func makeShort(_ path: String, entries: Int) throws -> Int {
    let engine = try open(path)
    let keyspace = try engine.write { try $0.createKeyspace("docs", shape: .documents) }
    try engine.write { transaction in
      for number in 0..<entries {
        try transaction.put(
          bytes("d\(100_000 + number)"), [UInt8](repeating: 1, count: 900), in: keyspace)
      }
    }
    for round in 0..<100 {
      try engine.write { transaction in
        for number in 0..<20 {
          try transaction.put(bytes("zz\(number)"), [UInt8](repeating: 3, count: 30_000), in: keyspace)
        }
        for number in 0..<20 { #expect(try transaction.delete(bytes("zz\(number)"), in: keyspace)) }
        try transaction.put(bytes("e\(round)"), [UInt8](repeating: 2, count: 900), in: keyspace)
      }
      let statistics = try engine.statistics()
      if statistics.fileBytes / statistics.pageBytes < statistics.totalPages {
        // Reads to the end of what the file has.
        for order in [ScanOrder.ascending, .descending] {
          var count = 0
          try engine.read { transaction in
            try transaction.scan(keyspace, order: order) { _, value in
              #expect(value.byteCount == 900)
              count += 1
              return true
            }
          }
          #expect(count == entries + round + 1)
        }
        #expect(try engine.checkIntegrity() == [])
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
        #expect(try engine.read { try $0.count(of: #require(try $0.keyspace(named: "docs"))) } == count)
        try engine.close()
      }
      let file = try PageFile(path: path)
      let meta = try #require((0..<200).compactMap { try? file.meta(of: UInt64($0)) }.last)
      let before = file.reads
      var check = PageCheck(file: file, meta: meta)
      check.run(.roots)
      check.checkMissingPages()
      #expect(check.faults == [])
      reads.append(file.reads - before)
    }
    #expect(reads[1] < 30, "pages read at open: \(reads)")
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
    #expect(whole[151] == 0)
    var refused = 0
    for pages in [[0], [1], [0, 1]] {
      for offset in 0..<MetaPage.size {
        for change in [UInt8(0xFF), 0x80, 0x01] {
          var damaged = whole
          for page in pages { damaged[page * 4_096 + offset] ^= change }
          try Data(damaged).write(to: URL(fileURLWithPath: path))
          do {
            let engine = try open(path, .openExisting)
            _ = try engine.checkIntegrity()
            try engine.close()
          } catch is StorageError { refused += 1 }
        }
      }
    }
    #expect(refused > 200)
    var damaged = whole
    damaged[151] = 0xFF
    try Data(damaged).write(to: URL(fileURLWithPath: path))
    #expect(try code { _ = try open(path, .openExisting) } == .damaged)
  }

  @Test("an opening for reading only leaves nothing behind", arguments: LendingEngine.allCases)
  func readOnly(kind: LendingEngine) throws {
    var engine = try kind.open(directory)
    let path = engine.location
    try engine.write { _ = try $0.createKeyspace("k", shape: .documents) }
    try engine.close()
    func listing() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    }
    let type = kind == .plain ? LMDBEngines.lmdb : LMDBEngines.encrypted
    let options = EngineOptions(
      creation: .openExisting, isReadOnly: true, key: kind == .plain ? nil : encryptionKey)
    for hasLockFile in [true, false] {
      if !hasLockFile { unlink(path + "-lock") }
      let before = try listing()
      #expect(before.count == (hasLockFile ? 2 : 1))
      engine = try type.open(path, options)
      #expect(try engine.read { try $0.keyspaces().count } == 1)
      try engine.close()
      #expect(try listing() == before)
    }
    // Also one that fails.
    #expect(
      try code {
        _ = try type.open(
          path,
          EngineOptions(creation: .openExisting, isReadOnly: true, key: [UInt8](repeating: 9, count: 32)))
      } != nil)
    #expect(try listing().count == 1)
  }

  @Test("a lock file that another process uses stays") func usedLockFile() throws {
    try open(directory.file()).close()
    unlink(directory.file() + "-lock")
    let engine = try LMDBEngine(
      path: directory.file(), options: EngineOptions(creation: .openExisting, isReadOnly: true))
    let other = try Child("readers", directory.file(), 1)
    other.waitUntilReady()
    try engine.close()
    #expect(FilePath.exists(directory.file() + "-lock"))
    #expect(try other.end() == 0)
  }

  @Test("of two processes that make one encrypted file the loser leaves it alone") func races() throws {
    for round in 0..<25 {
      let path = directory.file("\(round).emdb")
      let children = try (1...2).map { try Child("encrypted", path, $0) }
      let statuses = try children.map { try $0.end() }
      #expect(statuses.sorted() == [0, 7], "round \(round): \(statuses)")
      let winner = statuses[0] == 0 ? 1 : 2
      // It has its key and its data.
      #expect(try Child.run("encrypted", path, winner) == 0)
    }
  }

  @Test("a new file whose opening fails is removed") func failures() throws {
    let path = directory.file("new.emdb")
    #expect(
      try code {
        _ = try LMDBEncryptedEngine(
          path: path, options: EngineOptions(key: encryptionKey), mapBytes: MapSize.wanted(), nodePages: 99)
      } != nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
    symlink(directory.file("nowhere"), directory.file("link.mdb"))
    #expect(try code { _ = try open(directory.file("link.mdb")) } == .alreadyExists)
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
    let dying = try Child("readers", directory.file(), 3)
    dying.waitUntilReady()
    #expect(try dying.end() == 0)
    let after = try update(3_000)
    // Without an end to it 3,000 commits take 40 MB.
    #expect(after < before + (4 << 20), "\(before) bytes became \(after)")
    try engine.close()
  }
}
