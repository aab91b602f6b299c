import TestSupport

@testable import Documents
@testable import Touchstone

/// Every stored entry of documents ends with a checksum, which finds what was changed behind the library's back.
@Suite("Checksums of entries") struct ChecksumTests {
  /// Something in each of the documents' own keyspaces.
  private func fill(_ database: Database) throws {
    for number in 0..<6 {
      try database.save("doc\(number)", ["n": .int(Int64(number)), "text": "some words"])
    }
    try database.save("doc0", ["n": 10])
    try database.apply(PulledRevision(id: "doc1", history: ["2-bb", "1-aa"], body: ["pulled": true]))
    try database.delete("doc5")
    for number in 0..<9 { try database.save("deep", ["n": .int(Int64(number))]) }
    try database.setExpiration(of: "doc2", at: Date(timeIntervalSince1970: 4_000_000_000))
    try database.saveLocalDocument("local", ["a": 1])
    try database.store.recordPurges()
    try database.save("gone", ["n": 1])
    try database.purge("gone")
    try database.createIndex("byN", on: ["n"])
    let remote = try database.store.remoteNumber("a remote database")
    try database.store.mark([("doc1", "2-bb"), ("doc5", "1-aa")], remote: remote)
    try database.store.setSyncCheckpoint("cp-x", Array("{}".utf8))
    _ = try database.store.setPeerCheckpoint("cp-y", Array("{}".utf8), basedOn: nil)
  }

  private func withFilled(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine, { $0.revisionsPerBlock = 2 }) { database in
      try fill(database)
      try body(database)
    }
  }

  /// CRC-32C a bit at a time, as RFC 3720 defines it.
  private func naive(_ bytes: [UInt8]) -> UInt32 {
    var register = UInt32.max
    for byte in bytes {
      register ^= UInt32(byte)
      for _ in 0..<8 { register = register & 1 == 1 ? register >> 1 ^ 0x82F6_3B78 : register >> 1 }
    }
    return ~register
  }

  private func stored(_ database: Database, _ name: String) throws -> [SortedMap.Entry] {
    try database.engine.read { transaction in
      try transaction.entries(of: #require(try transaction.keyspace(named: name), "\(name)"))
    }
  }

  private func put(_ database: Database, _ name: String, _ key: [UInt8], _ value: [UInt8]) throws {
    try database.engine.write { transaction in
      try transaction.put(key, value, in: try #require(try transaction.keyspace(named: name)))
    }
  }

  @Test("the checksum is that of RFC 3720") func vectors() {
    func checksum(_ bytes: [UInt8]) -> UInt32 {
      var whole = CRC32C()
      whole.add(bytes.span.bytes)
      // In two pieces as well.
      var pieces = CRC32C()
      pieces.add(Array(bytes.prefix(bytes.count / 3)).span.bytes)
      pieces.add(Array(bytes.dropFirst(bytes.count / 3)).span.bytes)
      expect(whole.value == pieces.value && whole.value == naive(bytes))
      return whole.value
    }
    expect(checksum([UInt8](repeating: 0, count: 32)), equals: 0x8A91_36AA)
    expect(checksum([UInt8](repeating: 0xFF, count: 32)), equals: 0x62A8_AB43)
    expect(checksum(Array(0..<32)), equals: 0x46DD_794E)
    expect(checksum(Array("123456789".utf8)), equals: 0xE306_9283)
    expect(checksum([]), equals: 0)
  }

  @Test("every entry ends with the checksum that docs/documents.md describes", arguments: someEngines)
  func layout(_ engine: EngineName) throws {
    try withFilled(engine) { database in
      for name in EntryChecksums.keyspaceNames {
        let entries = try stored(database, name)
        expect(!entries.isEmpty, "\(name)")
        for entry in entries {
          let expected = naive(Array(name.utf8) + [0] + entry.key + entry.value.dropLast(4))
          let stored = entry.value.suffix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          expect(stored, equals: expected, "\(name)")
        }
      }
      try expect(database.check(deep: true), equals: [])
    }
  }

  @Test("each changed bit of each entry is found", arguments: someEngines)
  func changedEntries(_ engine: EngineName) throws {
    try withSeed { random in
      try withFilled(engine) { database in
        for name in EntryChecksums.keyspaceNames {
          for entry in try stored(database, name) {
            let (key, value) = (entry.key, entry.value)
            // A database without its format has no entries to check.
            if name == "meta", key == Array("format".utf8) { continue }
            var changed = value
            changed[Int.random(in: 0..<value.count, using: &random)] ^=
              1 << UInt8.random(in: 0..<8, using: &random)
            try put(database, name, key, changed)
            let faults = try database.check(deep: true).map(\.description)
            expect(faults.contains { $0.contains("checksum") }, "\(name) \(key) \(faults)")
            try expect(
              documentCode { try database.engine.readEntries { try readAll($0) } }, equals: .damaged,
              "\(name) \(key)")
            try put(database, name, key, value)
          }
        }
        // Under another key, and in another keyspace, an entry is wrong as well.
        let entry = try #require(try stored(database, "docs").first)
        let (key, value) = (entry.key, entry.value)
        try put(database, "docs", key + [0x31], value)
        try expect(database.check(deep: true).contains { $0.problem.contains("checksum") })
        try database.engine.write {
          _ = try $0.delete((key + [0x31]).span.bytes, in: try #require(try $0.keyspace(named: "docs")))
        }
        try put(database, "local", key, value)
        try expect(database.check(deep: true).contains { $0.problem.contains("checksum") })
      }
    }
  }

  /// Reads every entry in every way.
  private func readAll(_ transaction: any ReadTransaction) throws {
    for (name, keyspace) in try transaction.keyspaces() where EntryChecksums.keyspaceNames.contains(name) {
      let cursor = try transaction.cursor(in: keyspace, .all)
      while try cursor.next() {
        try cursor.withEntry { key, _ in _ = try transaction.bytes(at: key, in: keyspace) }
      }
    }
  }

  @Test("with verifiesChecksums what is damaged is refused on every way of reading", arguments: someEngines)
  func verifying(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    var database = try Database.open("a", in: directory.path, options: options)
    try fill(database)
    // So many that an index is worth it.
    try database.inBatch {
      for number in 100..<400 { try database.save("more\(number)", ["n": .int(Int64(number))]) }
    }
    let key = Array("doc3".utf8)
    var value = try #require(try stored(database, "docs").first { $0.key == key }).value
    // In the text of the body: what it says could be right.
    let place = try #require(value.firstRange(of: Array("words".utf8))).lowerBound
    value[place] = UInt8(ascii: "l")
    try put(database, "docs", key, value)
    try expect(database.document("doc3")?["text"].string, equals: "some lords")
    #expect(throws: DocumentError.self) { try database.compare(with: database) { _ in } }
    try database.close()
    options.verifiesChecksums = true
    database = try Database.open("a", in: directory.path, options: options)
    try expect(documentCode { _ = try database.document("doc3") }, equals: .damaged)
    try expect(database.document("doc4")?["text"].string, equals: "some words")
    try expect(documentCode { try database.read { try $0.forEachDocument { _ in true } } }, equals: .damaged)
    try expect(documentCode { try database.save("doc3", ["n": 3]) }, equals: .damaged)
    for text in [
      "SELECT text FROM _", "SELECT text FROM _ WHERE n = 3", "SELECT text FROM _ WHERE META().id = 'doc3'",
      "SELECT a.n FROM _ AS a JOIN _ AS b ON META(b).id = 'doc3' WHERE b.text = 'some lords'",
    ] {
      try expect(documentCode { _ = try database.query(text).run() }, equals: .damaged, "\(text)")
    }
    try expect(database.query("SELECT text FROM _ WHERE n = 3").explain().description.contains("byN"))
    try expect(database.query("SELECT text FROM _ WHERE META().id = 'doc4'").run().count, equals: 1)
    try database.close()
  }

  /// In a process of its own: LMDB may die on a page of its own that went wrong (docs/storage-lmdb.md).
  @Test("a flipped bit of a file is an error or changes nothing", arguments: [EngineName.lmdb, .sqlite])
  func flippedFiles(_ engine: EngineName) throws {
    try withSeed { random in
      let directory = TemporaryDirectory()
      let database = try Database.open("test", in: directory.path, options: try options(engine))
      try database.saveBatch(0..<200) { number in
        (
          "doc\(number)",
          ["n": .int(Int64(number)), "text": .string(String(repeating: "text ", count: number))]
        )
      }
      let file = database.engineFile
      try database.close()
      func read() throws -> (lines: [String], ending: ChildProcess.Ending) {
        let child = try startChild(.database, "documents", "read", "\(engine)", directory.path)
        let ending = try child.wait()
        return (child.outputText.split(separator: "\n").map(String.init), ending)
      }
      let (lines, ending) = try read()
      try #require(ending == .exited(0) && lines.count == 201)
      let expected = Set(lines)
      let whole = try Data(contentsOf: URL(fileURLWithPath: file))
      var refused = 0
      for _ in 0..<times(8, sanitized: 20, long: 300) {
        var changed = whole
        // The pages at the front are the library's own.
        let offset = Int.random(in: 8_192..<whole.count, using: &random)
        changed[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try changed.write(to: URL(fileURLWithPath: file))
        let (lines, ending) = try read()
        // An entry whose key or page went wrong may be missing; what is there is right.
        let wrong = lines.filter { !expected.contains($0) && !$0.hasPrefix("failed: ") }
        switch ending {
        case .exited(0): expect(wrong == [] && lines.last == "whole", "at \(offset)")
        case .exited(1):
          expect(wrong, equals: [], "at \(offset)")
          refused += 1
        default:
          // The last line may be cut.
          expect(engine == .lmdb && wrong.count <= 1, "\(ending) at \(offset): \(wrong)")
          refused += 1
        }
      }
      expect(refused > 0)
    }
  }
}
