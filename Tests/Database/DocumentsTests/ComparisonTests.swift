import TestSupport

@testable import Documents

/// `compare(with:)` finds what differs, and nothing where two databases hold the same.
@Suite struct ComparisonTests {
  static let pairs: [(EngineName, EngineName)] = [
    (.sqlite, .sqlite), (.sqlite, .lmdb), (.lmdb, .sqlcipher), (.sqlcipher, .lmdb),
  ]

  // MARK: The same

  @Test(arguments: pairs)
  func theSameDocumentsInAnotherOrderAreEqual(_ engines: (EngineName, EngineName)) throws {
    try withTwo(engines) { left, right in
      try fill(left)
      try fill(right, isReversed: true)
      try expect(differences(left, right), equals: [])
      try expect(!differences(left, right, sequences: true).isEmpty)
      let counts = try left.compareCounting(with: right) { _ in }
      expect(counts.documents, equals: 44)
      let ids =
        (0..<36).map { "plain\($0)" } + [
          "updated", "deep", "gone", "conflict", "pulled", "numbers", "blob", "expiring",
        ]
      let revisions = try ids.map { try left.revisions(of: $0)?.count ?? 0 }.reduce(0, +)
      expect(counts.revisions == revisions && revisions > 44, "revisions")
    }
  }

  @Test(arguments: pairs)
  func theSameWritesGiveTheSameSequences(_ engines: (EngineName, EngineName)) throws {
    try withTwo(engines) { left, right in
      try fill(left)
      try fill(right)
      try expect(differences(left, right, sequences: true), equals: [])
    }
  }

  @Test func emptyDatabasesAreEqualAndADatabaseEqualsItself() throws {
    try withTwo((.sqlite, .lmdb)) { left, right in
      try expect(differences(left, right), equals: [])
      try fill(left)
      try expect(differences(left, left, sequences: true), equals: [])
      let found = try differences(left, right)
      expect(found.count, equals: 44 + 3)
      expect(found.count { $0.kind == .document }, equals: 44)
    }
  }

  /// One snapshot a side: what is written meanwhile isn't seen.
  @Test(arguments: someEngines) func aComparisonIsOfOneSnapshot(_ engine: EngineName) throws {
    try withTwo((engine, engine)) { left, right in
      for number in 0..<3_000 {
        try left.save("d\(number)", ["n": .int(Int64(number))])
        try right.save("d\(number)", ["n": .int(Int64(number))])
      }
      var calls = 0
      var found: [DocumentDifference] = []
      try left.compare(with: right) { _ in
        calls += 1
        try left.save("d2999", ["n": 0])
        if calls == 1 { try right.delete("d2998") }
      } report: {
        found.append($0)
      }
      expect(calls > 0)
      expect(found, equals: [])
      try expect(differences(left, right).count > 0)
    }
  }

  // MARK: Planted

  /// A change of the right one, and which kinds of differences of which documents it has to give.
  struct Planted: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let expected: [String]
    let plant: @Sendable (Database) throws -> Void
    init(_ name: String, _ expected: [String], _ plant: @escaping @Sendable (Database) throws -> Void) {
      testDescription = name
      self.expected = expected
      self.plant = plant
    }
  }

  static let planted: [Planted] = [
    Planted("a document that is missing", ["plain3 document"]) { try $0.purge("plain3") },
    Planted("a document too many", ["plainX document"]) { try $0.save("plainX", [:]) },
    Planted("the first of all", ["a document"]) { try $0.save("a", [:]) },
    Planted("the last of all", ["zzz document"]) { try $0.save("zzz", [:]) },
    Planted("a newer revision", ["plain4 current", "plain4 revision"]) { try $0.save("plain4", ["n": 40]) },
    Planted("a deletion", ["plain5 current", "plain5 revision"]) { try $0.delete("plain5") },
    Planted("an undeletion", ["gone current", "gone revision"]) { try $0.save("gone", ["back": true]) },
    Planted("a tombstone that is missing", ["gone document"]) { try $0.purge("gone") },
    Planted("a conflicting leaf", ["plain6 revision"]) {
      try $0.apply(PulledRevision(id: "plain6", history: ["1-00"], body: ["n": 6]))
    },
    Planted("a conflicting leaf that wins", ["plain6 current", "plain6 revision"]) {
      try $0.apply(PulledRevision(id: "plain6", history: ["2-00", "1-00"], body: ["n": 6]))
    },
    Planted("a body under the same revision", ["plain7 body"]) { database in
      try replant(database, "plain7") { record in replaced(record, "seven", "SEVEN") }
    },
    Planted("a number that is another by a little", ["numbers body"]) { database in
      try database.purge("numbers")
      try database.apply(PulledRevision(id: "numbers", history: ["1-aa"], body: ["n": .double(1.0)]))
    },
    Planted("a body of a losing leaf", ["conflict body"]) { database in
      try plantBody(database, "conflicts") { replaced($0, "lost", "LOST") }
    },
    Planted("a body of a replaced revision", ["updated body"]) { database in
      try plantBody(database, "bodies") { replaced($0, "first", "FIRST") }
    },
    Planted("replaced bodies that were compacted away", ["deep body", "gone body", "updated body"]) {
      try $0.compact()
    },
    Planted("a revision that is missing in the history", ["pulled parent", "pulled revision"]) { database in
      try database.purge("pulled")
      try database.apply(PulledRevision(id: "pulled", history: ["3-cc", "1-aa"], body: ["p": 3]))
    },
    Planted("a root that is missing", ["pulled parent", "pulled revision"]) { database in
      try database.purge("pulled")
      try database.apply(PulledRevision(id: "pulled", history: ["3-cc", "2-bb"], body: ["p": 3]))
    },
    Planted("the flag of a deletion", ["plain8 flags"]) { database in
      try replant(database, "plain8") { record in
        var record = record
        record[6] |= 1
        return record
      }
    },
    Planted("a local document that is missing", ["checkpoint local"]) {
      try $0.deleteLocalDocument("checkpoint", onConflict: .lastWriteWins)
    },
    Planted("a local document that is another", ["checkpoint local"]) {
      try $0.saveLocalDocument("checkpoint", ["at": 8], onConflict: .lastWriteWins)
    },
    Planted("a local document too many", ["more local"]) { try $0.saveLocalDocument("more", [:]) },
    Planted("an expiration that is missing", ["expiring expiration"]) {
      try $0.setExpiration(of: "expiring", at: nil)
    },
    Planted("an expiration at another time", ["expiring expiration"]) {
      try $0.setExpiration(of: "expiring", at: Date(timeIntervalSince1970: 4_000_000_001))
    },
    Planted("an expiration too many", ["plain9 expiration"]) {
      try $0.setExpiration(of: "plain9", at: Date(timeIntervalSince1970: 4_000_000_000))
    },
    Planted("an index that is missing", ["byN index"]) { try $0.deleteIndex("byN") },
    Planted("an index of another definition", ["byN index"]) { try $0.createIndex("byN", on: ["v"]) },
    Planted("an index too many", ["more index"]) { try $0.createIndex("more", on: ["v"]) },
    Planted("a blob whose file is missing", ["blob blob"]) { database in
      for file in try blobFiles(database) { try FileManager.default.removeItem(atPath: file) }
    },
    Planted("a blob with a flipped byte", ["blob blob"]) { database in
      for file in try blobFiles(database) {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: URL(fileURLWithPath: file), options: .atomic)
      }
    },
    Planted("a blob that is cut off", ["blob blob"]) { database in
      for file in try blobFiles(database) {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        try bytes.dropLast().write(to: URL(fileURLWithPath: file), options: .atomic)
      }
    },
  ]

  @Test(arguments: planted) func everyPlantedDifferenceIsFound(_ planted: Planted) throws {
    // A short run takes one pair of engines after the other.
    let number = Self.planted.firstIndex { $0.testDescription == planted.testDescription } ?? 0
    for engines in isShort ? [Self.pairs[number % Self.pairs.count]] : Self.pairs {
      try withTwo(engines) { left, right in
        try fill(left)
        try fill(right)
        try planted.plant(right)
        let found = try Set(differences(left, right).map { "\($0.id) \($0.kind.rawValue)" })
        expect(found, equals: Set(planted.expected), "\(engines)")
        let other = try Set(differences(right, left).map { "\($0.id) \($0.kind.rawValue)" })
        expect(other, equals: found, "\(engines), the other way round")
      }
    }
  }

  @Test func aDifferenceSaysWhatEachHas() throws {
    try withTwo((.sqlite, .lmdb)) { left, right in
      try left.apply(PulledRevision(id: "d", history: ["1-aa"], body: ["name": "left", "z": 1]))
      try right.apply(PulledRevision(id: "d", history: ["1-aa"], body: ["name": "right", "z": 1]))
      let expected = DocumentDifference(
        "d", .body, "1-aa …{\"name\":\"left\",\"z\":1}", "1-aa …{\"name\":\"right\",\"z\":1}")
      try expect(differences(left, right), equals: [expected])
    }
  }

  // MARK: Making them

  private func withTwo(_ engines: (EngineName, EngineName), _ body: (Database, Database) throws -> Void)
    throws
  {
    try withDatabase(engines.0) { left in try withDatabase(engines.1) { right in try body(left, right) } }
  }

  /// 44 documents of all kinds, a local document and an expiration; `isReversed` in the opposite order, whose names
  /// of properties get other numbers.
  private func fill(_ database: Database, isReversed: Bool = false) throws {
    var steps: [() throws -> Void] = []
    for number in 0..<36 {
      steps.append {
        try database.save("plain\(number)", ["n": .int(Int64(number)), "own\(number)": "seven"])
      }
    }
    steps.append {
      try database.save("updated", ["v": "first"])
      try database.save("updated", ["v": "second"])
    }
    steps.append { for depth in 0..<30 { try database.save("deep", ["depth": .int(Int64(depth))]) } }
    steps.append {
      try database.save("gone", ["v": "here"])
      try database.delete("gone", keeping: ["why": "test"])
    }
    steps.append {
      try database.apply(PulledRevision(id: "conflict", history: ["2-bb", "1-aa"], body: ["v": "won"]))
      try database.apply(PulledRevision(id: "conflict", history: ["2-ab", "1-aa"], body: ["v": "lost"]))
    }
    steps.append {
      try database.apply(PulledRevision(id: "pulled", history: ["3-cc", "2-bb", "1-aa"], body: ["p": 3]))
    }
    steps.append {
      try database.apply(PulledRevision(id: "numbers", history: ["1-aa"], body: ["n": .int(1)]))
    }
    steps.append {
      let blob = try database.makeBlob([UInt8](repeating: 42, count: 100_000), contentType: "text/plain")
      try database.save("blob", ["photo": blob.jsonValue])
    }
    steps.append {
      try database.save("expiring", ["v": 1])
      try database.setExpiration(of: "expiring", at: Date(timeIntervalSince1970: 4_000_000_000))
    }
    steps.append { _ = try database.saveLocalDocument("checkpoint", ["at": 7]) }
    steps.append { try database.createIndex("byN", on: ["n"]) }
    for step in isReversed ? steps.reversed() : steps { try step() }
  }
}

/// Changes the stored record of a document behind the database's back.
private func replant(_ database: Database, _ id: String, _ change: ([UInt8]) -> [UInt8]) throws {
  try database.engine.writeEntries { (transaction: any WriteTransaction) throws -> Void in
    let docs = try #require(try transaction.keyspace(named: "docs"))
    let record = try #require(try transaction.bytes(Array(id.utf8), in: docs))
    try transaction.put(Array(id.utf8), change(record), in: docs)
  }
}

/// Changes all bodies that lie aside.
private func plantBody(_ database: Database, _ keyspace: String, _ change: ([UInt8]) -> [UInt8]) throws {
  try database.engine.writeEntries { (transaction: any WriteTransaction) throws -> Void in
    let bodies = try #require(try transaction.keyspace(named: keyspace))
    for entry in try transaction.entries(of: bodies) {
      try transaction.put(entry.key, change(entry.value), in: bodies)
    }
  }
}

private func replaced(_ bytes: [UInt8], _ text: String, _ other: String) -> [UInt8] {
  var bytes = bytes
  if let range = bytes.firstRange(of: Array(text.utf8)) {
    bytes.replaceSubrange(range, with: Array(other.utf8))
  }
  return bytes
}

private func blobFiles(_ database: Database) throws -> [String] {
  let directory = database.path + "/Attachments"
  let names = try FileManager.default.contentsOfDirectory(atPath: directory)
  return names.filter { $0.contains(".") && !$0.hasPrefix(".") }.map { directory + "/" + $0 }
}
