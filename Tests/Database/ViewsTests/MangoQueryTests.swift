import Fleece
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Random queries with random indexes, compared with a naive evaluation of all documents.
@Suite("Queries with selectors") struct MangoQueryTests {
  private static let indexes: [[String]] = [["a"], ["b", "a"], ["a", "b", "c"], ["a.b"], ["c", "_id"]]

  private func view(_ fields: [String]) -> JSONValue {
    [
      "map": ["fields": .object(JSONObject(fields.map { ($0, JSONValue.string("asc")) }))],
      "reduce": "_count",
      "options": ["def": ["fields": .array(fields.map { .string($0) })]],
    ]
  }

  @Test("an index changes neither what is found nor the order that is asked for", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    let databases = TestDatabases()
    let database = try databases.open(engine)
    var random = RandomSelectors(seed: testSeed)
    var documents: [String: JSONValue] = [:]
    func save(_ number: Int) throws {
      let id = "d\(1_000 + number)"
      guard var body = random.object().object else { return }
      try database.save(id, .value(.object(body)))
      body["_id"] = .string(id)
      documents[id] = .object(body)
    }
    try database.inBatch { for number in 0..<120 { try save(number) } }
    for (number, fields) in Self.indexes.enumerated() {
      try database.save("_design/i\(number)", ["language": "query", "views": ["v": view(fields)]])
    }
    var (indexed, found) = (0, 0)
    for step in 0..<(isLong ? 3_000 : 300) {
      if step % 10 == 0 { try save(Int.random(in: 0..<140, using: &random.random)) }
      let selector = random.selector()
      let sort = random.sort(Self.indexes)
      var query = MangoQuery()
      query.selector = try MangoSelector(selector)
      query.limit = .max
      query.sort = try sort.map {
        .init(name: $0.name, field: try MangoField($0.name), direction: $0.direction)
      }
      let plan: MangoPlan
      do { plan = try MangoPlan(query, database.mangoIndexes()) } catch let error as CouchDBError {
        expect(error.error, equals: "no_usable_index")
        continue
      }
      let context = "TOUCHSTONE_SEED=\(testSeed), \(engine), step \(step): \(selector), sort \(sort)"
      let ids = try self.ids(database, plan)
      // A sort needs the fields: who lacks one isn't found.
      let wanted = documents.filter { _, document in
        NaiveSelector.passes(document, selector)
          && sort.allSatisfy { NaiveSelector.find($0.name, in: document) != nil }
      }.keys.sorted()
      expect(ids.sorted(), equals: wanted, "\(context)")
      let rows = ids.map { id in sort.map { NaiveSelector.find($0.name, in: documents[id] ?? .null) ?? .null }
      }
      let isSorted = zip(rows, rows.dropFirst()).allSatisfy { row, next in
        let order = NaiveSelector.order(.array(row), .array(next))
        return query.isDescending ? order >= 0 : order <= 0
      }
      expect(isSorted, "\(context)")
      if plan.index?.isOfAllDocuments == false { indexed += 1 }
      found += ids.count
    }
    expect(indexed > 50 && found > 500, "\(indexed) by an index, \(found) found")
  }

  @Test("rows of an index alone answer as the documents do, page by page", arguments: someEngines)
  func covered(_ engine: EngineName) throws {
    let databases = TestDatabases()
    let database = try databases.open(engine)
    var random = SeededGenerator(seed: testSeed)
    let values: [JSONValue] = [
      .null, true, 0, 2, 2.5, 1e300, "", "2", "\"\\\u{1}é", ["x", .null],
      ["z": 1, "b": ["y": 2, "a": 3], "aa": 4],
    ]
    try database.inBatch {
      for number in 0..<200 {
        var body = JSONObject()
        for name in ["a", "b", "c"] where Int.random(in: 0..<6, using: &random) > 0 {
          body[name] = values.randomElement(using: &random)
        }
        try database.save("d\(1_000 + number)\(number % 3 == 0 ? "\"é" : "")", .value(.object(body)))
      }
    }
    let indexes = [["a"], ["b", "a"], ["a", "b", "c"], ["c", "_id"], ["_id", "b"]]
    for (number, fields) in indexes.enumerated() {
      try database.save("_design/i\(number)", ["language": "query", "views": ["v": view(fields)]])
    }
    let conditions = [
      #"{"$gt": null}"#, #"{"$gte": null}"#, #"{"$lt": "x"}"#, #"{"$in": [2, ["x", null], true]}"#,
      #"{"$type": "object"}"#,
    ]
    var (covered, found) = (0, 0)
    for step in 0..<(isLong ? 1_000 : 100) {
      let index = indexes[Int.random(in: 0..<indexes.count, using: &random)]
      var parts = index.map { "{\"\($0)\": \(conditions.randomElement(using: &random) ?? "{}")}" }
      if Bool.random(using: &random) { parts.append(#"{"_id": {"$regex": "[02468]"}}"#) }
      let selector = "{\"$and\": [\(parts.joined(separator: ", "))]}"
      var query = MangoQuery()
      query.selector = try MangoSelector(OrderedJSON(parsing: Array(selector.utf8)))
      query.limit = .max
      query.fields = (index + ["_id"]).filter { _ in Int.random(in: 0..<3, using: &random) > 0 }.shuffled(
        using: &random)
      let context = "TOUCHSTONE_SEED=\(testSeed), \(engine), step \(step): \(selector), \(query.fields ?? [])"
      let plan = try MangoPlan(query, database.mangoIndexes())
      guard plan.isCovered else { continue }
      covered += 1
      let all = try documents(database.mangoReader(plan))
      let wanted = try documents(database.mangoReader(MangoPlan(query, [MangoIndex.allDocuments()])))
      expect(all.sorted(), equals: wanted.sorted(), "\(context)")
      found += all.count
      var paged: [String] = []
      query.limit = Int.random(in: 10...40, using: &random)
      repeat {
        let reader = try database.mangoReader(MangoPlan(query, database.mangoIndexes()))
        let page = try documents(reader)
        expect(reader.documentsExamined, equals: 0)
        paged += page
        query.bookmark = page.isEmpty ? nil : try MangoBookmark(reader.bookmark)
      } while query.bookmark != nil
      expect(paged, equals: all, "\(context)")
    }
    expect(covered > 50 && found > 500, "\(covered) by an index alone, \(found) found")
  }

  @Test("the next documents are found among many, in whatever order they are stored", arguments: someEngines)
  func many(_ engine: EngineName) throws {
    let databases = TestDatabases()
    let database = try databases.open(engine)
    var random = SeededGenerator(seed: testSeed)
    let count = 6_000
    let numbers = (0..<count).shuffled(using: &random)
    try database.inBatch {
      for number in numbers { try database.save("d\(100_000 + number)", ["n": .int(Int64(number % 1_500))]) }
      for number in 0..<20 { try database.save("_design/x\(number)", ["n": 7]) }
    }
    for (selector, passes) in [
      (#"{"n": 7}"#, { $0 == 7 }), (#"{"n": {"$lt": 30}}"#, { $0 < 30 }), (#"{"n": -1}"#, { _ in false }),
      (#"{"n": {"$gt": 100}}"#, { $0 > 100 }),
    ] as [(String, (Int) -> Bool)] {
      let all = (0..<count).filter { passes($0 % 1_500) }.map { "d\(100_000 + $0)" }
      for (limit, skip, isDescending) in [(Int.max, 0, false), (25, 0, false), (3, 2, true), (60, 50, true)] {
        var query = MangoQuery()
        query.selector = try MangoSelector(
          OrderedJSON(parsing: Array("{\"$and\": [{\"_id\": {\"$gt\": null}}, \(selector)]}".utf8)))
        (query.limit, query.skip) = (limit, skip)
        query.sort = [
          .init(name: "_id", field: try MangoField("_id"), direction: isDescending ? "desc" : "asc")
        ]
        let plan = try MangoPlan(query, database.mangoIndexes())
        let wanted = (isDescending ? all.reversed() : all).dropFirst(skip).prefix(limit)
        let reader = try database.mangoReader(plan)
        try expect(ids(reader), equals: Array(wanted), "\(engine), \(selector), \(limit), \(isDescending)")
        expect(reader.keysExamined == reader.documentsExamined && reader.documentsExamined <= count)
        if wanted.count < limit { expect(reader.documentsExamined, equals: count) }
        // The next page goes on behind it.
        query.bookmark = try reader.bookmark == "nil" ? nil : MangoBookmark(reader.bookmark)
        guard query.bookmark != nil else { continue }
        query.skip = 0
        let rest = (isDescending ? all.reversed() : all).dropFirst(skip + wanted.count).prefix(limit)
        try expect(
          ids(database, MangoPlan(query, database.mangoIndexes())), equals: Array(rest),
          "\(engine), \(selector), \(limit), \(isDescending), the next page")
      }
    }
  }

  @Test(
    "an index that changes after the plan gives all documents, and one that changes between slices no others",
    arguments: someEngines)
  func changedIndex(_ engine: EngineName) throws {
    let databases = TestDatabases()
    let database = try databases.open(engine)
    let count = 200
    let text = String(repeating: "t", count: 3_000)
    try database.inBatch {
      for number in 0..<count {
        try database.save(
          "d\(1_000 + number)",
          ["a": .int(Int64(number)), "b": .int(Int64(count - number)), "text": .string(text)])
      }
    }
    let all = (0..<count).map { "d\(1_000 + $0)" }
    func makeIndex(_ fields: [String]) throws {
      try database.save("_design/p", ["language": "query", "views": ["v": view(fields)]])
    }
    func plan() throws -> MangoPlan {
      var query = MangoQuery()
      query.selector = try MangoSelector(
        OrderedJSON(parsing: Array(#"{"a": {"$gte": 0}, "b": {"$gte": 0}}"#.utf8)))
      query.limit = .max
      return try MangoPlan(query, database.mangoIndexes())
    }
    // Documents without `c` aren't in the second one.
    for changed in [["b", "a"], ["a", "b", "c"], nil] {
      func change() throws {
        if let changed { try makeIndex(changed) } else { try database.delete("_design/p") }
      }
      try makeIndex(["a", "b"])
      let planned = try plan()
      expect(planned.index?.isOfAllDocuments == false)
      try change()
      try expect(ids(database, planned).sorted(), equals: all, "\(engine), \(changed ?? [])")

      try makeIndex(["a", "b"])
      let reader = try database.mangoReader(plan())
      try reader.read()
      expect(!reader.isDone)
      let first = reader.text.withBytes { Array($0) }
      try change()
      _ = try ids(database, plan())
      do {
        try expect(ids(reader, after: first).sorted(), equals: all, "\(engine), \(changed ?? [])")
        expect(changed != ["b", "a"], "the rows are others")
      } catch let error as ViewError { expect(error.code, equals: .busy) }
    }
  }

  /// The text of each document that is read.
  private func documents(_ reader: MangoReader) throws -> [String] {
    var text = ""
    repeat {
      try reader.read()
      text += reader.text.withBytes { String(decoding: $0, as: UTF8.self) }
    } while !reader.isDone
    return text.utf8.split(separator: UInt8(ascii: "\n")).map { line in
      var line = Array(line)
      while let last = line.last, last == UInt8(ascii: ",") || last == UInt8(ascii: "\r") {
        line.removeLast()
      }
      return String(decoding: line, as: UTF8.self)
    }.filter { !$0.isEmpty }
  }

  private func ids(_ database: Database, _ plan: MangoPlan) throws -> [String] {
    try ids(database.mangoReader(plan))
  }

  /// The IDs of what is still to be read, behind the text that was.
  private func ids(_ reader: MangoReader, after read: [UInt8] = []) throws -> [String] {
    var text = Array("[".utf8) + read
    repeat {
      try reader.read()
      text += reader.text.withBytes { Array($0) }
    } while !reader.isDone
    text += Array("]".utf8)
    let rows = try text.withUnsafeBytes { try JSONValue(json: $0) }
    return rows.array?.compactMap { $0["_id"].string } ?? []
  }
}

extension NaiveSelector {
  /// What a field leads to.
  static func find(_ field: String, in document: JSONValue) -> JSONValue? {
    var value = document
    for part in field.split(separator: ".") {
      if let member = value.object?[String(part)] {
        value = member
      } else if let items = value.array, let place = Int(part), items.indices.contains(place) {
        value = items[place]
      } else {
        return nil
      }
    }
    return value
  }
}

extension RandomSelectors {
  /// Mostly none; otherwise the beginning of an index.
  mutating func sort(_ indexes: [[String]]) -> [(name: String, direction: String)] {
    guard Int.random(in: 0..<3, using: &random) == 0 else { return [] }
    let fields = indexes[Int.random(in: 0..<indexes.count, using: &random)]
    let direction = Bool.random(using: &random) ? "asc" : "desc"
    return fields.prefix(Int.random(in: 1...fields.count, using: &random)).map { ($0, direction) }
  }
}
