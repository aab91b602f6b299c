import SQLiteLibrary
import TestTools

@testable import StorageSQLite

/// The counts that the table of keyspaces implies are those that SQLite counts.
@Suite struct CountTests {
  private let directory = TemporaryDirectory()

  @Test(arguments: Kind.all, [KeyspaceShape.documents, .sequences, .entries])
  func countsAreExactWhateverIsDone(_ kind: Kind, _ shape: KeyspaceShape) throws {
    var random = SeededGenerator(seed: testSeed)
    let path = directory.file("a")
    var engine = try kind.open(path)
    let keyspace: Keyspace = try engine.write { try $0.createKeyspace("k", shape: shape) }
    var counting = try engine.file.connect(cacheBytes: 1 << 20)
    var next: UInt64 = 0
    for step in 0..<400 {
      let before = try count(engine, keyspace)
      let isKept = random.below(8) > 0
      do {
        try engine.write { (transaction: any WriteTransaction) throws -> Void in
          var expected = before
          // Mostly what leaves the highest row to tell: appends, and replacing what is there.
          let kinds = random.below(3) == 0 ? 6 : random.below(2) + 1
          for _ in 0..<random.below(5) {
            switch random.below(kinds) {
            case 0:
              next += 1 + (kinds == 6 ? random.below(2) : 0)
              try key(next, shape).withUnsafeBytes { try transaction.append($0, value, in: keyspace) }
              expected += 1
            case 1, 2:
              let bytes = key(random.below(next + 3), shape)
              let isThere = try transaction.bytes(bytes, in: keyspace) != nil
              try transaction.put(bytes, [1], in: keyspace)
              expected += isThere ? 0 : 1
              next = max(next, number(bytes))
            case 3:
              let bytes = key(random.below(next + 3), shape)
              next = max(next, number(bytes))
              if try bytes.withUnsafeBytes({ try transaction.insert($0, value, in: keyspace) }) {
                expected += 1
              }
            case 4:
              // Often the last, whose number the next row takes.
              let bytes = key(next - random.below(min(next + 1, 3)), shape)
              if try bytes.withUnsafeBytes({ try transaction.delete($0, in: keyspace) }) { expected -= 1 }
            default:
              let from = random.below(next + 1)
              let isWhole = random.below(20) == 0
              expected -= try transaction.deleteRange(
                isWhole
                  ? .all
                  : KeyRange(
                    lower: .inclusive(key(from, shape)), upper: .exclusive(key(from + random.below(4), shape))
                  ),
                in: keyspace)
            }
            try expect(transaction.count(of: keyspace), equals: expected, "seed \(testSeed), step \(step)")
          }
          if !isKept { throw Undone() }
        }
      } catch is Undone {
        try expect(count(engine, keyspace), equals: before, "seed \(testSeed), step \(step)")
      }
      try expect(
        count(engine, keyspace), equals: counted(counting, keyspace), "seed \(testSeed), step \(step)")
      if step % 50 == 20 { try engine.compact() }
      if step % 50 == 40 {
        try engine.backup(to: directory.file("b\(step)"))
        counting.close()
        try engine.close()
        engine = try kind.open(directory.file("b\(step)"), .openExisting)
        counting = try engine.file.connect(cacheBytes: 1 << 20)
      }
      try expect(engine.checkIntegrity(), equals: [], "seed \(testSeed), step \(step)")
    }
    counting.close()
    try engine.close()
  }

  @Test(arguments: Kind.all) func appendsLeaveTheTableOfKeyspacesAsItIs(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let docs: Keyspace = try engine.write { try $0.createKeyspace("docs", shape: .documents) }
    let changes: Keyspace = try engine.write { try $0.createKeyspace("changes", shape: .sequences) }
    func save(_ number: UInt64) throws {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        try transaction.put(key(number, .documents), [1], in: docs)
        try key(number, .sequences).withUnsafeBytes { try transaction.append($0, value, in: changes) }
      }
    }
    try save(1)
    let database = try engine.file.connect(cacheBytes: 1 << 20)
    defer { database.close() }
    let rows = try database.strings("SELECT entries || ',' || highest FROM keyspaces")
    for number in 2..<50 { try save(UInt64(number)) }
    try expect(database.strings("SELECT entries || ',' || highest FROM keyspaces"), equals: rows)
    try expect(count(engine, docs), equals: 49)
    try expect(count(engine, changes), equals: 49)
    // What replaces the change of a document notes the bare number once, and then no more.
    func update(_ old: UInt64, _ new: UInt64) throws {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        _ = try key(old, .sequences).withUnsafeBytes { try transaction.delete($0, in: changes) }
        try key(new, .sequences).withUnsafeBytes { try transaction.append($0, value, in: changes) }
      }
    }
    try update(1, 50)
    let bare = try database.strings("SELECT entries || ',' || ifnull(highest, '') FROM keyspaces")
    expect(bare, equals: [rows[0], "49,"])
    for number in 2..<30 { try update(UInt64(number), UInt64(number + 49)) }
    try expect(database.strings("SELECT entries || ',' || ifnull(highest, '') FROM keyspaces"), equals: bare)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
  }

  private struct Undone: Error {}

  private let value = UnsafeRawBufferPointer(start: nil, count: 0)

  private func key(_ number: UInt64, _ shape: KeyspaceShape) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
  }

  private func number(_ key: [UInt8]) -> UInt64 { key.reduce(0) { $0 << 8 | UInt64($1) } }

  private func count(_ engine: SQLiteEngine, _ keyspace: Keyspace) throws -> Int {
    try engine.read { try $0.count(of: keyspace) }
  }

  private func counted(_ database: Connection, _ keyspace: Keyspace) throws -> Int {
    try #require(try database.integer("SELECT count(*) FROM \(SQLiteLayout.table(keyspace.number))"))
  }
}

extension SeededGenerator {
  fileprivate mutating func below(_ bound: UInt64) -> UInt64 { bound == 0 ? 0 : next() % bound }
}
