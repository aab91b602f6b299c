import LMDBTestSupport
import TestTools

@testable import StorageLMDB
@testable import StorageEncrypted

/// The engines over LMDB, with next to no cache of decrypted nodes.
enum LendingEngine: String, CaseIterable {
  case plain
  case encrypted

  /// The key of the encrypted engine.
  static let key = [UInt8](repeating: 7, count: 32)

  func open(_ directory: TemporaryDirectory) throws -> any StorageEngine {
    switch self {
    case .plain: try StorageLMDBTests.open(directory.file())
    case .encrypted:
      try LMDBEncryptedEngine(
        path: directory.file("main.emdb"),
        options: EngineOptions(durability: .none, key: Self.key, cacheBytes: 0),
        mapBytes: MapSize.wanted(), nodePages: 1)
    }
  }
}

/// Bytes stay where they are until the closure returns that they are lent to.
struct LendingTests {
  let directory = TemporaryDirectory()

  private static let count = 300

  private static func value(_ number: Int, of letter: String) -> [UInt8] {
    let size = number % 9 == 0 ? 6_000 : number % 4 == 0 ? 900 : 20
    return bytes("\(letter)\(number) ") + [UInt8](repeating: UInt8(number % 251), count: size)
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("d\(1_000 + number)") }

  /// Entries `eN` in two indexes, which refer to `dN` in two keyspaces of other values.
  private struct Keyspaces {
    let indexes: [Keyspace]
    let documents: [Keyspace]
  }

  private func fill(_ engine: any StorageEngine) throws -> Keyspaces {
    try engine.write { transaction in
      let keyspaces = Keyspaces(
        indexes: try ["ia", "ib"].map { try transaction.createKeyspace($0, shape: .entries) },
        documents: try ["a", "b"].map { try transaction.createKeyspace($0, shape: .documents) })
      for number in 0..<Self.count {
        for (index, letter) in ["A", "B"].enumerated() {
          try transaction.put(bytes("e") + Self.key(number), [], in: keyspaces.indexes[index])
          try transaction.put(
            Self.key(number), Self.value(number, of: letter), in: keyspaces.documents[index])
        }
      }
      return keyspaces
    }
  }

  /// In a snapshot and in a write transaction.
  private func both(_ engine: any StorageEngine, _ body: (any ReadTransaction) throws -> Void) throws {
    try engine.read { try body($0) }
    try engine.write { (transaction: any WriteTransaction) throws -> Void in
      try transaction.put(bytes("touched"), bytes("1"), in: transaction.createKeyspace("t", shape: .entries))
      try body(transaction)
    }
  }

  @Test("a follow inside a follow gives each its own keyspace's values", arguments: LendingEngine.allCases)
  func nestedFollows(kind: LendingEngine) throws {
    let engine = try kind.open(directory)
    let keyspaces = try fill(engine)
    let range = 1..<(1 + Self.key(0).count)
    try both(engine) { transaction in
      var outer = 0
      for order in [ScanOrder.ascending, .descending] {
        try transaction.follow(
          keyspaces.indexes[0], .all, order: order, into: keyspaces.documents[0],
          reference: { _, _ in .inKey(range) }
        ) { key, _, found in
          let number = order == .ascending ? outer : Self.count - 1 - outer
          var inner = 0
          try transaction.follow(
            keyspaces.indexes[1], .all, order: .ascending, into: keyspaces.documents[1],
            reference: { _, _ in .inKey(range) }
          ) { _, _, found in
            expect([UInt8](copying: found), equals: Self.value(inner, of: "B"))
            inner += 1
            return inner < 40
          }
          expect([UInt8](copying: key), equals: bytes("e") + Self.key(number))
          expect([UInt8](copying: found), equals: Self.value(number, of: "A"))
          outer += 1
          return outer < 60
        }
        expect(outer, equals: 60)
        outer = 0
      }
    }
    try engine.close()
  }

  @Test("lent bytes stay whatever else is read", arguments: LendingEngine.allCases)
  func nestedReads(kind: LendingEngine) throws {
    let engine = try kind.open(directory)
    let keyspaces = try fill(engine)
    /// Lends values in one another, as deep as it goes.
    func nest(_ transaction: any ReadTransaction, _ number: Int) throws {
      if number >= Self.count { return }
      let letter = number % 2 == 0 ? "A" : "B"
      let found: Void? = try transaction.withValue(
        at: Self.key(number), in: keyspaces.documents[number % 2]
      ) { value in
        try nest(transaction, number + 7)
        expect([UInt8](copying: value), equals: Self.value(number, of: letter))
      }
      expect(found != nil)
    }
    try both(engine) { transaction in
      try nest(transaction, 0)
      let cursors = try keyspaces.documents.map { try transaction.cursor(in: $0, .all) }
      var outer = 0
      try transaction.scan(keyspaces.documents[0]) { key, value in
        _ = try cursors[0].next()
        _ = outer == 0 ? try cursors[1].last() : try cursors[1].previous()
        try cursors[0].withEntry { left, leftValue in
          try cursors[1].withEntry { right, rightValue in
            var inner = 0
            try transaction.scan(keyspaces.documents[1], .all, order: .descending) { _, value in
              inner += 1
              expect([UInt8](copying: value), equals: Self.value(Self.count - inner, of: "B"))
              return inner < 30
            }
            expect([UInt8](copying: left), equals: Self.key(outer))
            expect([UInt8](copying: leftValue), equals: Self.value(outer, of: "A"))
            expect([UInt8](copying: right), equals: Self.key(Self.count - 1 - outer))
            expect([UInt8](copying: rightValue), equals: Self.value(Self.count - 1 - outer, of: "B"))
          }
        }
        expect([UInt8](copying: key), equals: Self.key(outer))
        expect([UInt8](copying: value), equals: Self.value(outer, of: "A"))
        outer += 1
        return true
      }
      expect(outer, equals: Self.count)
    }
    try engine.close()
  }

  @Test(
    "a write while bytes are lent is refused, and goes through afterwards", arguments: LendingEngine.allCases)
  func writes(kind: LendingEngine) throws {
    let engine = try kind.open(directory)
    let keyspaces = try fill(engine)
    let documents = keyspaces.documents[0]
    try engine.write { transaction in
      func expectRefused() throws {
        let key = bytes("zz")
        try expect(storageCode { try transaction.put(key, [1], in: documents) }, equals: .bytesAreLent)
        try expect(
          storageCode { _ = try transaction.insert(key.span.bytes, key.span.bytes, in: documents) },
          equals: .bytesAreLent)
        try expect(
          storageCode { try transaction.append(key.span.bytes, key.span.bytes, in: documents) },
          equals: .bytesAreLent)
        try expect(
          storageCode { _ = try transaction.delete(Self.key(0).span.bytes, in: documents) },
          equals: .bytesAreLent)
        try expect(
          storageCode { _ = try transaction.deleteRange(.all, in: documents) }, equals: .bytesAreLent)
        try expect(
          storageCode { _ = try transaction.createKeyspace("new", shape: .entries) }, equals: .bytesAreLent)
        try expect(storageCode { try transaction.dropKeyspace(documents) }, equals: .bytesAreLent)
      }
      let first = Self.key(0)
      _ = try transaction.read(first.span.bytes, in: documents) { _ in try expectRefused() }
      try transaction.scan(documents) { _, _ in
        try expectRefused()
        return false
      }
      try transaction.scan(documents, .all, order: .descending, fetch: .keys) { _, _ in
        try expectRefused()
        return false
      }
      let cursor = try transaction.cursor(in: documents, .all)
      try expect(cursor.first())
      try cursor.withEntry { _, _ in
        try expectRefused()
        try expect(storageCode { _ = try cursor.next() }, equals: .bytesAreLent)
        try expect(storageCode { _ = try cursor.seek(first.span.bytes) }, equals: .bytesAreLent)
        try expect(transaction.cursor(in: documents, .all).last())
      }
      try expect(cursor.next())
      // A write leaves it nowhere.
      try transaction.put(bytes("zz"), [1], in: documents)
      try expect(storageCode { try cursor.withEntry { _, _ in } }, equals: .notOnEntry)
      try expect(storageCode { _ = try cursor.next() }, equals: .notOnEntry)
      try expect(cursor.last())
      try expect(cursor.withEntry { key, _ in [UInt8](copying: key) }, equals: bytes("zz"))
    }
    try engine.close()
  }

  @Test("what is used after its end says so", arguments: LendingEngine.allCases)
  func ends(kind: LendingEngine) throws {
    let engine = try kind.open(directory)
    let keyspaces = try fill(engine)
    let documents = keyspaces.documents[0]
    var kept: (any ReadTransaction, any Cursor)?
    try engine.write { (transaction: any WriteTransaction) throws -> Void in
      let cursor = try transaction.cursor(in: documents, .all)
      _ = try cursor.first()
      kept = (transaction, cursor)
    }
    func expectClosed(_ transaction: any ReadTransaction, _ cursor: any Cursor) throws {
      try expect(storageCode { _ = try transaction.bytes(Self.key(1), in: documents) }, equals: .closed)
      try expect(storageCode { _ = try transaction.keyspaces() }, equals: .closed)
      try expect(storageCode { try transaction.scan(documents) { _, _ in true } }, equals: .closed)
      try expect(storageCode { _ = try transaction.cursor(in: documents, .all) }, equals: .closed)
      try expect(storageCode { _ = try cursor.next() }, equals: .closed)
      try expect(storageCode { _ = try cursor.first() }, equals: .closed)
      try expect(storageCode { try cursor.withEntry { _, _ in } }, equals: .closed)
    }
    let (written, placed) = try #require(kept)
    try expectClosed(written, placed)
    // Ended inside a scan: what is lent stays, and so does the scan's place.
    let snapshot = try engine.beginRead()
    let cursor = try snapshot.cursor(in: documents, .all)
    _ = try cursor.first()
    var seen = 0
    try snapshot.scan(documents) { key, value in
      snapshot.end()
      try engine.write { try $0.put(Self.key(seen), bytes("other"), in: documents) }
      try expect(engine.read { try $0.bytes(Self.key(seen), in: documents) }, equals: bytes("other"))
      expect([UInt8](copying: key), equals: Self.key(seen))
      expect([UInt8](copying: value), equals: Self.value(seen, of: "A"))
      try expectClosed(snapshot, cursor)
      seen += 1
      return seen < 20
    }
    expect(seen, equals: 20)
    try expectClosed(snapshot, cursor)
    try expect(engine.maintenance.statistics().openReaders, equals: 0)
    try engine.close()
  }

  @Test("a reference that leads out of its entry is an error", arguments: LendingEngine.allCases)
  func references(kind: LendingEngine) throws {
    let engine = try kind.open(directory)
    let keyspaces = try fill(engine)
    try both(engine) { transaction in
      for (range, wanted) in [(0..<0, StorageError.Code.invalidKey), (0..<9_999, .invalidArgument)] {
        let found = try storageCode {
          try transaction.follow(
            keyspaces.indexes[0], .all, order: .ascending, into: keyspaces.documents[0],
            reference: { _, _ in .inKey(range) }
          ) { _, _, _ in true }
        }
        expect(found, equals: wanted)
      }
    }
    try engine.close()
  }
}
