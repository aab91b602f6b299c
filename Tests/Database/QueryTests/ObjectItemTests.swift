import TestSupport

@testable import Documents
@testable import Query
@testable import Storage
@testable import Touchstone

/// ANY and EVERY look through the items of an array and through the values of an object, with an array index or without.
@Suite struct ObjectItemTests {
  private static let bodies: [(String, String)] = [
    ("array", #"{"o":[1,2]}"#), ("object", #"{"o":{"x":1,"y":2}}"#), ("twice", #"{"o":{"x":1,"y":1}}"#),
    ("nested", #"{"o":{"x":{"k":1},"y":{"k":7}}}"#), ("items", #"{"o":[{"k":1}]}"#), ("number", #"{"o":1}"#),
    ("empty", #"{"o":{}}"#), ("null", #"{"o":{"x":null}}"#), ("none", #"{}"#), ("text", #"{"o":"1"}"#),
  ]

  /// The same among so many others that an index is worth it.
  private func fill(_ database: Database) throws {
    try database.fill(Self.bodies + (0..<300).map { ("other\($0)", #"{"f":\#($0)}"#) })
  }

  private static let queries = [
    "ANY v IN o SATISFIES v = 1 END", "ANY v IN o SATISFIES v >= 1 AND v < 3 END",
    "ANY AND EVERY v IN o SATISFIES v = 1 END", "o IS NOT MISSING AND EVERY v IN o SATISFIES v = 1 END",
    "ANY v IN o SATISFIES v.k = 1 END", "ANY v IN o SATISFIES v IS NULL END", "ARRAY_CONTAINS(o, 1)",
    "1 IN o",
    "ANY v IN o SATISFIES v = 1 END AND META().id > 'b'",
  ]

  private func answers(_ database: Database) throws -> [[String]] {
    try Self.queries.map { condition in
      try database.firstColumn("SELECT META().id FROM _ WHERE \(condition) ORDER BY META().id")
    } + [
      database.rows("SELECT META(d).id, v FROM _ AS d UNNEST d.o AS v WHERE v = 1 ORDER BY META(d).id"),
      database.rows("SELECT META(d).id, v FROM _ AS d LEFT UNNEST d.o AS v WHERE v = 2 ORDER BY META(d).id"),
    ]
  }

  @Test("an array index gives what is there without it", arguments: someEngines)
  func answersStay(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let expected = try answers(database)
      expect(expected[0], equals: ["array", "object", "twice"])
      expect(expected[2] == ["twice"] && expected[4] == ["items", "nested"] && expected[6] == ["array"])
      try database.createIndex("v", unnest: "o AS v")
      try database.createIndex("k", unnest: "o AS v", on: ["v.k"])
      try expect(answers(database), equals: expected)
      let plan = try database.query("SELECT META().id FROM _ WHERE \(Self.queries[0])").explain().description
      expect(plan.contains("Index v"), "\(plan)")
      // The index follows the documents.
      try database.fill([
        ("object", #"{"o":{"x":5}}"#), ("number", #"{"o":{"a":1}}"#), ("empty", #"{"o":[1]}"#),
      ])
      try database.delete("twice")
      try expect(answers(database)[0], equals: ["array", "empty", "number"])
      try expect(database.check(), equals: [])
      try database.deleteIndex("v")
      try database.deleteIndex("k")
      try expect(answers(database)[0], equals: ["array", "empty", "number"])
    }
  }

  /// An index of an earlier version has no entries for objects, and no mark that it has.
  @Test(
    "an array index from before serves no ANY, and is made anew when the database is opened",
    arguments: someEngines)
  func earlierIndex(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      var database = try Database.open("test", in: directory, options: options(engine))
      try fill(database)
      let expected = try answers(database)
      try database.createIndex("v", unnest: "o AS v")
      let record = try #require(try database.read { try $0.indexes.first })
      try database.engine.write { transaction in
        let entries = try #require(try transaction.keyspace(named: record.keyspaceName))
        let statistics = try #require(try transaction.keyspace(named: record.keyspaceName + ".statistics"))
        let objects = Set(["object", "twice", "nested", "null"].map { Array($0.utf8) })
        let found = try transaction.entries(of: entries).filter { entry in
          try entry.key.withUnsafeBytes { key in
            try entry.value.withUnsafeBytes { value in
              objects.contains(Array(try ValueIndexEntry(key: key, value: value, columns: 1).documentID))
            }
          }
        }
        expect(found.count, equals: 6)
        for entry in found { _ = try transaction.delete(entry.key.span.bytes, in: entries) }
        _ = try Array("o".utf8).withUnsafeBytes { try transaction.delete($0, in: statistics) }
      }
      try database.close()
      // Read-only it stays as it is, and serves UNNEST.
      var readOnly = try options(engine)
      readOnly.isReadOnly = true
      database = try Database.open("test", in: directory, options: readOnly)
      try expect(answers(database), equals: expected)
      try expect(
        database.query("SELECT 1 FROM _ WHERE \(Self.queries[0])").explain().description.contains("Scan"))
      let unnest = "SELECT v FROM _ AS d UNNEST d.o AS v WHERE v = 1"
      try expect(database.query(unnest).explain().description.contains("Index v"))
      try database.close()
      database = try Database.open("test", in: directory, options: options(engine))
      try expect(answers(database), equals: expected)
      try expect(
        database.query("SELECT 1 FROM _ WHERE \(Self.queries[0])").explain().description.contains(
          "Index v"))
      try expect(database.check(), equals: [])
      try database.close()
    }
  }
}
