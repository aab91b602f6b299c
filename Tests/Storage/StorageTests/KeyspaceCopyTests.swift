import StorageConformance
import StorageMemory
import TestTools

@testable import Storage

/// Copies of keyspaces, and what a comparison with what was read finds.
@Suite("Copies of keyspaces") struct KeyspaceCopyTests {
  private static func engine() throws -> any StorageEngine {
    try MemoryEngine.type.open("copy \(UInt64.random(in: 0...UInt64.max))", EngineOptions())
  }

  private func filled(_ count: Int) throws -> any StorageEngine {
    let engine = try Self.engine()
    try engine.write { (transaction: any WriteTransaction) throws -> Void in
      let entries = try transaction.createKeyspace("entries", shape: .entries)
      let documents = try transaction.createKeyspace("documents", shape: .documents)
      _ = try transaction.createKeyspace("empty", shape: .sequences)
      var random = SeededGenerator(seed: 5)
      for number in 0..<count {
        let key = Array("key \(1_000_000 + number)".utf8)
        try transaction.put(key, random.bytes(number % 40), in: entries)
        // Pieces and transactions of several values each.
        try transaction.put(key, random.bytes(20_000 + number), in: documents)
      }
    }
    return engine
  }

  private func copied(_ source: any StorageEngine) throws -> (any StorageEngine, KeyspaceRecord) {
    let target = try Self.engine()
    let record = try source.read { try KeyspaceCopy(from: $0, to: target).run() }
    return (target, record)
  }

  @Test("a copy is what was copied, in many pieces", arguments: [0, 1, 60, 1_500])
  func same(_ count: Int) throws {
    let source = try filled(count)
    let (target, record) = try copied(source)
    for threads in [1, 2, 5] {
      var last = CopyProgress(entries: 0, bytes: 0, totalEntries: 0)
      try record.verify(target, threads: threads) { last = $0 }
      expect(last.entries == 2 * count && last.totalEntries == 2 * count)
    }
    expect(record.pieces.count >= 3 && (count < 1_500 || record.pieces.count > 20))
  }

  @Test("values larger than what is read ahead come along")
  func large() throws {
    let source = try filled(3)
    try source.write { (transaction: any WriteTransaction) throws -> Void in
      let documents = try transaction.createKeyspace("documents", shape: .documents)
      for number in 0..<4 {
        let value = [UInt8](repeating: UInt8(number), count: 3_000_000 * number + number)
        try transaction.put(Array("large \(number)".utf8), value, in: documents)
      }
    }
    let (target, record) = try copied(source)
    try record.verify(target)
    let count = try target.read { transaction in
      let documents = try #require(try transaction.keyspace(named: "documents"))
      return try transaction.bytes(Array("large 3".utf8), in: documents)?.count
    }
    expect(count, equals: 9_000_003)
  }

  private struct Stop: Error {}

  @Test(
    "what the progress handler throws ends the copy, whatever was read ahead", arguments: [0, 1_024, 2_048])
  func stopped(_ entries: Int) throws {
    let source = try filled(1_500)
    let target = try Self.engine()
    for _ in 0..<20 {
      #expect(throws: Stop.self) {
        try source.read {
          try KeyspaceCopy(from: $0, to: target) { if $0.entries >= entries { throw Stop() } }.run()
        }
      }
      let names = try target.read { try $0.keyspaces().keys }
      try target.write { (transaction: any WriteTransaction) throws -> Void in
        for name in names {
          if let keyspace = try transaction.keyspace(named: name) { try transaction.dropKeyspace(keyspace) }
        }
      }
    }
  }

  /// All entries of an engine, by keyspace.
  private func contents(_ engine: any StorageEngine) throws -> [String: [[[UInt8]]]] {
    try engine.read { transaction in
      var found: [String: [[[UInt8]]]] = [:]
      for (name, keyspace) in try transaction.keyspaces() {
        found["\(name) \(keyspace.shape)"] = []
        try transaction.scan(keyspace) { key, value in
          found["\(name) \(keyspace.shape)"]?.append([[UInt8](copying: key), [UInt8](copying: value)])
          return true
        }
      }
      return found
    }
  }

  @Test(
    "a copy that was stopped goes on behind what it has", arguments: [0, 1_024, 1_500, 1_724, 2_600, 2_999])
  func resumed(_ entries: Int) throws {
    let source = try filled(1_500)
    let target = try Self.engine()
    #expect(throws: Stop.self) {
      try source.read {
        try KeyspaceCopy(from: $0, to: target) { if $0.entries >= entries { throw Stop() } }.run()
      }
    }
    let record = try source.read { try KeyspaceCopy(from: $0, to: target, resumes: true).run() }
    try record.verify(target)
    try expect(contents(target) == contents(source))
    expect(record.total.entries, equals: 3_000)
  }

  @Test("a copy that goes on from another source has nothing of the first one")
  func resumedFromAnother() throws {
    let first = try filled(1_500)
    let target = try Self.engine()
    for stop in [1_024, 2_800] {
      #expect(throws: Stop.self) {
        try first.read {
          try KeyspaceCopy(from: $0, to: target, resumes: true) { if $0.entries >= stop { throw Stop() } }
            .run()
        }
      }
      // Keyspaces that are gone, made and of another shape; entries that are gone, changed and new.
      let second = try filled(900)
      try second.write { (transaction: any WriteTransaction) throws -> Void in
        let keyspaces = try transaction.keyspaces()
        let documents = try #require(keyspaces["documents"])
        let entries = try #require(keyspaces["entries"])
        try transaction.dropKeyspace(try #require(keyspaces["empty"]))
        _ = try transaction.createKeyspace("new", shape: .entries)
        try transaction.delete(Array("key 1000100".utf8).span.bytes, in: documents)
        try transaction.put(Array("key 1000700".utf8), [1], in: documents)
        try transaction.put(Array("key 2".utf8), [2], in: entries)
        try transaction.put(Array("a".utf8), [3], in: entries)
      }
      let record = try second.read { try KeyspaceCopy(from: $0, to: target, resumes: true).run() }
      try record.verify(target)
      try expect(contents(target) == contents(second))
      // From the first one again, with another shape of a keyspace.
      try first.write { (transaction: any WriteTransaction) throws -> Void in
        let keyspace = try transaction.createKeyspace("empty", shape: .sequences)
        try transaction.dropKeyspace(keyspace)
        _ = try transaction.createKeyspace("empty", shape: .entries)
      }
      try first.read { try KeyspaceCopy(from: $0, to: target, resumes: true).run() }.verify(target)
      try expect(contents(target) == contents(first))
      try first.write { (transaction: any WriteTransaction) throws -> Void in
        let keyspace = try transaction.createKeyspace("empty", shape: .entries)
        try transaction.dropKeyspace(keyspace)
        _ = try transaction.createKeyspace("empty", shape: .sequences)
      }
    }
  }

  /// A snapshot whose scans fail behind some entries.
  private final class FailingSource: ReadTransaction {
    private let transaction: any ReadTransaction
    private var left: Int

    init(_ transaction: any ReadTransaction, after entries: Int) {
      self.transaction = transaction
      left = entries
    }

    func scan(
      _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
      _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
    ) throws {
      try transaction.scan(keyspace, range, order: order, fetch: fetch) { key, value in
        guard left > 0 else { throw Stop() }
        left -= 1
        return try body(key, value)
      }
    }

    func keyspace(named name: String) throws -> Keyspace? { try transaction.keyspace(named: name) }
    func keyspaces() throws -> [String: Keyspace] { try transaction.keyspaces() }
    func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool
    {
      try transaction.read(key, in: keyspace, body)
    }
    func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
      try transaction.cursor(in: keyspace, range)
    }
    func entryCount(of keyspace: Keyspace) throws -> EntryCount { try transaction.entryCount(of: keyspace) }
    func end() { transaction.end() }
  }

  @Test("what reading throws ends the copy", arguments: [0, 1, 1_700, 2_999])
  func unreadable(_ entries: Int) throws {
    let source = try filled(1_500)
    #expect(throws: Stop.self) {
      try source.read {
        try KeyspaceCopy(from: FailingSource($0, after: entries), to: try Self.engine()).run()
      }
    }
  }

  @Test("every difference is found", arguments: 0..<9)
  func different(_ kind: Int) throws {
    let source = try filled(300)
    let (target, record) = try copied(source)
    try target.write { (transaction: any WriteTransaction) throws -> Void in
      func keyspace(_ name: String) throws -> Keyspace { try #require(try transaction.keyspace(named: name)) }
      let documents = try keyspace("documents")
      let key = Array("key 1000157".utf8)
      var value = try transaction.bytes(key, in: documents) ?? []
      switch kind {
      case 0:
        value[value.count / 2] ^= 1
        try transaction.put(key, value, in: documents)
      case 1: try transaction.put(key, value.dropLast(), in: documents)
      case 2: try key.withUnsafeBytes { _ = try transaction.delete($0, in: documents) }
      case 3: try transaction.put(Array("zzz".utf8), [], in: documents)
      case 4:
        try key.withUnsafeBytes { _ = try transaction.delete($0, in: documents) }
        try transaction.put(Array("key 1000157a".utf8), value, in: documents)
      case 5: _ = try transaction.createKeyspace("more", shape: .entries)
      case 6: try transaction.dropKeyspace(try keyspace("empty"))
      case 7: try transaction.put([0, 0, 0, 0, 0, 0, 0, 1], [], in: try keyspace("empty"))
      default:
        // The same bytes, divided otherwise between key and value.
        let entries = try keyspace("entries")
        let short = Array("key 1000011".utf8)
        let old = try transaction.bytes(short, in: entries) ?? []
        try short.withUnsafeBytes { _ = try transaction.delete($0, in: entries) }
        try transaction.put(short + old.prefix(1), Array(old.dropFirst()), in: entries)
      }
    }
    for threads in [1, 2] {
      #expect(throws: StorageError.self) { try record.verify(target, threads: threads) }
    }
  }
}
