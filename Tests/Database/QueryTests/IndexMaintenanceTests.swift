import TestSupport

@testable import Documents
@testable import Query
@testable import Storage
@testable import Touchstone

/// Indexes against what the documents say, after all that can change documents.
@Suite("Indexes follow the documents") struct IndexMaintenanceTests {
  private let databases = TestDatabases()

  struct Case {
    let name: String
    let definition: ValueIndexDefinition
    /// The rows of one document, computed anew: each is its values.
    let rows: (JSONObject) -> [[JSONValue?]]
  }

  private static func member(_ object: JSONObject, _ path: String...) -> JSONValue? {
    var value: JSONValue? = .object(object)
    for name in path {
      guard case .object(let inner)? = value else { return nil }
      value = inner[name]
    }
    return value
  }

  static func cases() throws -> [Case] {
    [
      Case(name: "pair", definition: try ValueIndexDefinition(["kind", "geo.lat"])) {
        [[member($0, "kind"), member($0, "geo", "lat")]]
      },
      Case(name: "partial", definition: try ValueIndexDefinition(["text"], where: "kind = 'b'")) { body in
        body["kind"] == .string("b") ? [[body["text"]]] : []
      },
      Case(name: "items", definition: try ValueIndexDefinition([], unnest: "tags AS t")) { body in
        guard case .array(let items)? = body["tags"] else { return [] }
        return items.map { [$0] }
      },
      Case(
        name: "both",
        definition: try ValueIndexDefinition(["kind", "t.n"], where: "t.n > 2", unnest: "tags AS t")
      ) { body in
        guard case .array(let items)? = body["tags"] else { return [] }
        return items.compactMap { item in
          // Numbers above 2, and what comes after numbers.
          guard case .object(let object) = item, let n = object["n"] else { return nil }
          switch n {
          case .int(let n) where n > 2: break
          case .double(let n) where n > 2: break
          case .uint, .string, .array, .object: break
          default: return nil
          }
          return [body["kind"], n]
        }
      },
    ]
  }

  static func randomValue(_ random: inout some RandomNumberGenerator, depth: Int = 0) -> JSONValue {
    switch Int.random(in: 0..<(depth < 2 ? 14 : 10), using: &random) {
    case 0: .null
    case 1: .bool(.random(using: &random))
    case 2, 3: .int(Int64.random(in: -3...5, using: &random))
    case 4: .double(Double(Int.random(in: -6...6, using: &random)) / 2)
    case 5: .uint(UInt64.max - UInt64.random(in: 0...2, using: &random))
    case 6: .string(["", "a", "b", "é", "a\u{0}", "a\u{1}", "zz"].randomElement(using: &random) ?? "")
    case 7:
      // Longer than keys are, and different only at the end or near the limit.
      .string(
        String(
          repeating: "x",
          count: [470, 476, 477, 478, 500, 505, 600, 2_000].randomElement(using: &random) ?? 0)
          + ["", "a", "b", "c"].randomElement(using: &random).unsafelyUnwrapped)
    case 8: .int(Int64.random(in: .min ... .max, using: &random))
    case 9: .double(Double.random(in: -1e300...1e300, using: &random))
    case 10, 11:
      .array((0..<Int.random(in: 0...3, using: &random)).map { _ in randomValue(&random, depth: depth + 1) })
    default:
      .object(
        JSONObject(
          (0..<Int.random(in: 0...2, using: &random)).map { _ in
            (
              ["n", "m", "long name that is not shared"].randomElement(using: &random) ?? "n",
              randomValue(&random, depth: depth + 1)
            )
          }))
    }
  }

  static func randomBody(_ random: inout some RandomNumberGenerator) -> JSONValue {
    var body = JSONObject()
    if .random(using: &random) {
      body["kind"] = [.string("a"), .string("b"), .int(1)].randomElement(using: &random)
    }
    if .random(using: &random) { body["text"] = randomValue(&random) }
    if .random(using: &random) { body["geo"] = .object(["lat": randomValue(&random)]) }
    if .random(using: &random) {
      body["tags"] = .array((0..<Int.random(in: 0...4, using: &random)).map { _ in randomValue(&random) })
    }
    body["key\(Int.random(in: 0..<40, using: &random))"] = 1
    return .object(body)
  }

  /// What an index has to hold, by a way of its own: values compared by their canonical text where they are equal.
  static func expected(_ database: Database, _ index: Case) throws -> [String] {
    var rows: [String: Int] = [:]
    try database.read { snapshot in
      try snapshot.forEachDocument { view in
        let id = view.id
        guard case .object(let body) = try view.document().value() else { return true }
        for values in index.rows(body) {
          rows["\(values.map(comparable).joined(separator: " | ")) → \(id)", default: 0] += 1
        }
        return true
      }
    }
    return rows.map { "\($0.key) × \($0.value)" }.sorted()
  }

  /// The text of a value in which equal numbers are equal.
  static func comparable(_ value: JSONValue?) -> String {
    switch value {
    case .int(let int)?: "\(int)"
    case .uint(let uint)?: "\(uint)"
    case .double(let double)?:
      Int64(exactly: double).map { "\($0)" } ?? UInt64(exactly: double).map { "\($0)" } ?? "\(double)"
    default: IndexTesting.canonical(value, comparable)
    }
  }

  static func stored(_ database: Database, _ name: String) throws -> [String] {
    var last: [UInt8] = []
    let rows = try IndexTesting.rows(database, name) { entry, values, sharedKeys in
      let whole = [UInt8](entry.key)
      expect(last.lexicographicallyPrecedes(whole), "out of order")
      last = whole
      return try values.map { comparable(try $0.jsonValue(sharedKeys)) }
    }
    let count = try database.read { snapshot in
      let record = try #require(try snapshot.indexes.first { $0.name == name })
      return try snapshot.storage.count(
        of: #require(try snapshot.storage.keyspace(named: record.keyspaceName)))
    }
    expect(count, equals: rows.count)
    return rows.sorted()
  }

  private func compare(_ database: Database, _ context: String) throws {
    for index in try Self.cases() {
      let stored = try Self.stored(database, index.name)
      let expected = try Self.expected(database, index)
      if stored != expected {
        let wrong = Set(stored).symmetricDifference(expected).sorted().prefix(4).joined(separator: "; ")
        Issue.record("\(index.name) is wrong \(context), TOUCHSTONE_SEED=\(testSeed): \(wrong.prefix(600))")
      }
    }
  }

  @Test("random writes of every kind, against indexes computed anew", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    try withDatabase(engine) { database in
      let cases = try Self.cases()
      for number in 0..<60 { try database.save("doc\(number)", .value(Self.randomBody(&random))) }
      // Some are made of what is there, the others follow from the beginning.
      for index in cases.prefix(2) { try database.createIndex(index.name, index.definition) }
      for round in 0..<(isLong ? 200 : 12) {
        if round == 4 {
          for index in cases.dropFirst(2) { try database.createIndex(index.name, index.definition) }
        }
        try database.inBatch {
          for _ in 0..<20 {
            let id = "doc\(Int.random(in: 0..<80, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0: _ = try? database.delete(id)
            case 1: try? database.purge(id)
            case 2, 3:
              // Winners change, branches are joined and lost.
              let generation = Int.random(in: 1...6, using: &random)
              let branch = ["a", "b", "c"].randomElement(using: &random) ?? "a"
              var revision = PulledRevision(
                id: id, history: (1...generation).reversed().map { "\($0)-\(branch)\(branch)" },
                body: .value(Self.randomBody(&random)))
              revision.isDeleted = Int.random(in: 0..<4, using: &random) == 0
              try database.apply(revision)
            case 4:
              // A body that is what it was.
              if let body = try database.document(id)?.value() { try database.save(id, .value(body)) }
            default: try database.save(id, .value(Self.randomBody(&random)))
            }
          }
        }
        try database.inUndoneBatch {
          try database.save("doc\(round)", .value(Self.randomBody(&random)))
        }
        if round == 8 { try database.compact() }
        if round >= 4 { try compare(database, "in round \(round)") }
      }
      try expect(database.check(), equals: [])
    }
  }

  @Test("a build that has little memory makes the same index", arguments: [EngineName.lmdb, .sqlite])
  func rounds(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    try withDatabase(engine) { database in
      for number in 0..<300 { try database.save("doc\(number)", .value(Self.randomBody(&random))) }
      let index = try Self.cases()[0]
      try database.createIndex(index.name, index.definition)
      let whole = try Self.stored(database, index.name)
      try database.deleteIndex(index.name)
      let record = IndexRecord(name: "x", kind: "value", number: 999, definition: index.definition.encoded)
      try database.engine.writeEntries { transaction in
        let docs = try #require(try transaction.keyspace(named: "docs"))
        try ValueIndexKind(memoryLimit: 2_000).create(
          record, of: IndexedDocuments(transaction, docs, database.store.sharedKeys), in: transaction)
      }
      let count = try database.engine.read { transaction in
        try transaction.count(of: try #require(try transaction.keyspace(named: "index.999")))
      }
      expect(count, equals: whole.count)
    }
  }

  @Test("what isn't touched isn't rewritten; making what there is does nothing", arguments: someEngines)
  func noWork(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["type": "hotel", "name": "Ritz"])
    try expect(database.createIndex("byType", on: ["type"]))
    let sequence = try database.lastSequence
    let generation = try database.read { try $0.indexGeneration }
    try expect(!database.createIndex("byType", on: ["type"]))
    try expect(database.read { try $0.indexGeneration }, equals: generation)
    try expect(database.createIndex("byType", on: ["type", "name"]))
    try expect(database.indexes.map(\.text), equals: ["type, name"])
    try expect(IndexTesting.rows(database, "byType").count, equals: 1)
    try expect(database.lastSequence, equals: sequence)
    try expect(database.deleteIndex("byType"))
    try expect(!database.deleteIndex("byType"))
    try expect(database.indexes.isEmpty)
    let keyspaces = try database.engine.read { try $0.keyspaces().keys.sorted() }
    expect(!keyspaces.contains { $0.hasPrefix("index") })
  }

  @Test("text longer than keys is found, apart and in order", arguments: someEngines)
  func longText(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let stem = String(repeating: "s", count: 1_000)
    for (number, end) in ["m", "c", "z", "a", "k"].enumerated() {
      try database.save("d\(number)", ["t": .string(stem + end)])
    }
    try database.save("short", ["t": .string(String(repeating: "s", count: 478))])
    try database.save("other", ["t": "t"])
    try database.createIndex("t", on: ["t"])
    func ids(
      _ descending: Bool = false, from lower: KeyRange.Edge = .unbounded,
      to upper: KeyRange.Edge = .unbounded
    ) throws -> [String] {
      try IndexTesting.rows(database, "t", descending: descending, from: lower, to: upper).map {
        String($0.components(separatedBy: " → ")[1].prefix { $0 != " " })
      }
    }
    try expect(ids(), equals: ["short", "d3", "d1", "d4", "d0", "d2", "other"])
    try expect(ids(true), equals: ["other", "d2", "d0", "d4", "d1", "d3", "short"])
    let key = IndexTesting.encoded(stem + "k")
    try expect(ids(from: .including(key), to: .including(key)), equals: ["d4"])
    try expect(ids(from: .excluding(key)), equals: ["d0", "d2", "other"])
    try expect(ids(to: .excluding(key)), equals: ["short", "d3", "d1"])
    let none = IndexTesting.encoded(stem + "b")
    try expect(IndexTesting.rows(database, "t", from: .including(none), to: .including(none)), equals: [])
  }

  @Test("values come back as they were", arguments: [EngineName.lmdb, .sqlite])
  func comeBack(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", DocumentBody(json: #"{"v": 4.0, "w": 4}"#))
    try database.save("b", DocumentBody(json: #"{"v": 4, "w": 4.5}"#))
    try database.save("c", DocumentBody(json: #"{"v": [1, {"x": "y"}], "w": null}"#))
    try database.save("d", ["v": .double(-0.0)])
    try database.createIndex("v", on: ["v", "w", "META().id"])
    try expect(
      IndexTesting.rows(database, "v"),
      equals: [
        #"opaque | missing | string("d") → d × 1"#, #"double 4.0 | int(4) | string("a") → a × 1"#,
        #"int(4) | double 4.5 | string("b") → b × 1"#,
        #"[int(1),{x:string("y")}] | null | string("c") → c × 1"#,
      ])
  }

  @Test("check finds what an index misses and what it has too much", arguments: someEngines)
  func check(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 0..<20 { try database.save("d\(number)", ["n": .int(Int64(number % 3))]) }
    try database.createIndex("n", on: ["n"])
    try expect(database.check(), equals: [])
    try database.engine.write { transaction in
      let name = try #require(try database.store.indexes.first?.keyspaceName)
      let keyspace = try #require(try transaction.keyspace(named: name))
      var key = OrderedKeyEncoder()
      key.append(Int64(1))
      key.append(documentID: "d1")
      _ = try key.bytes.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
      try transaction.put([0x31, 0x7E] + Array("d2".utf8), [], in: keyspace)
      try transaction.put([0x31, 0x7E] + Array("gone".utf8), [], in: keyspace)
    }
    let faults = try database.check().map(\.description)
    expect(faults.contains("index 'n': misses an entry of document 'd1'"), "\(faults)")
    expect(faults.contains("index 'n': has a superfluous entry of document 'gone'"), "\(faults)")
  }

  @Test("what can't be indexed is refused", arguments: [EngineName.lmdb])
  func refused(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for text in ["META().sequence", "$x", "COUNT(a)", "*", "NOW_MILLIS()", "nofunction(a)", "a +"] {
      #expect(throws: QueryError.self, "\(text)") { try database.createIndex("x", on: [text]) }
    }
    #expect(throws: QueryError.self) { try database.createIndex("x", on: []) }
    #expect(throws: DocumentError.self) { try database.createIndex("", on: ["a"]) }
    try expect(database.indexes.isEmpty)
  }

  @Test(
    "a database with an index of an unknown kind can only be read", arguments: [EngineName.lmdb, .sqlite])
  func unknownKind(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.createIndex("n", on: ["n"])
    #expect(throws: DocumentError.self) {
      _ = try DocumentStore(engine: database.engine, options: DocumentStore.Options())
    }
  }
}
