import Query
import TestSupport

/// Runs of one prepared query, which take over what earlier runs have left: documents that joins looked up, the
/// memory of DISTINCT, and the plan.
@Suite("Runs of one query, one after the other and at once") struct RepeatedRunTests {
  private static let join = """
    SELECT DISTINCT a.name, r.stops FROM _ AS r JOIN _ AS a ON META(a).id = r.airline
    WHERE r.type = 'route' AND r.origin = $origin ORDER BY a.name, r.stops
    """
  private static let unordered = """
    SELECT DISTINCT a.name, r.stops FROM _ AS r JOIN _ AS a ON META(a).id = r.airline
    WHERE r.type = 'route' AND r.origin = $origin
    """

  private struct RowError: Error {}

  /// Routes of 10 airports and 7 airlines, of which the last one doesn't exist.
  private func fill(_ database: Database) throws {
    try database.inBatch {
      for number in 0..<6 {
        try database.save("airline\(number)", ["type": "airline", "name": .string("name\(number)")])
      }
      for number in 0..<70 {
        try database.save(
          "route\(number)",
          [
            "type": "route", "origin": .string("p\(number % 10)"), "airline": .string("airline\(number % 7)"),
            "stops": .int(Int64(number % 3)),
          ])
      }
    }
    try database.createIndex("typeFrom", on: ["type", "origin"])
  }

  private func lines(_ query: Query, _ from: String = "p3") throws -> [String] {
    try query.run(["origin": .string(from)]).map { try $0.json() }.sorted()
  }

  /// What a query that was never run finds.
  private func expected(_ database: Database, _ text: String, _ from: String = "p3") throws -> [String] {
    try lines(database.query(text, options: .init(usesIndexes: false)), from)
  }

  @Test("a run sees each commit and each write of its batch", arguments: someEngines)
  func commits(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      for text in [Self.join, Self.unordered] {
        let query = try database.query(text)
        func check(_ what: String) throws {
          // Twice: the second run finds what the first has left.
          for _ in 0..<2 { try expect(lines(query), equals: expected(database, text), "\(what)") }
        }
        try check("at first")
        try database.save("airline1", ["type": "airline", "name": "another"])
        try check("after a save")
        try expect(lines(query).contains { $0.contains("another") })
        try database.delete("airline2")
        try check("after a deletion")
        try database.save("airline6", ["type": "airline", "name": "new"])
        try check("when there is an airline that wasn't")
        try expect(lines(query).contains { $0.contains("new") })
        let before = try lines(query)
        try database.inUndoneBatch {
          try database.save("airline3", ["type": "airline", "name": "undone"])
          try check("in a batch")
          try expect(lines(query).contains { $0.contains("undone") })
        }
        try expect(lines(query), equals: before)
        try database.deleteIndex("typeFrom")
        try check("without the index")
        try database.createIndex("typeFrom", on: ["type", "origin"])
        try database.compact()
        try check("in another file")
        try database.purge("airline6")
        try database.save("airline2", ["type": "airline", "name": "name2"])
        try check("at the end")
      }
    }
  }

  @Test("a run sees what another process has saved and deleted", arguments: sharedEngines)
  func otherProcess(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path, options: options(engine))
    try fill(database)
    let query = try database.query(Self.unordered)
    for change in [["-airline0", "-airline1"], ["-airline2"], ["-airline3", "-route3"]] {
      for _ in 0..<3 { try expect(lines(query), equals: expected(database, Self.unordered)) }
      let before = try lines(query).count
      let child = try startChild(
        .database, ["documents", "change", "\(engine)", directory.path] + change)
      try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
      try expect(lines(query), equals: expected(database, Self.unordered), "\(change)")
      try expect(lines(query).count < before, "\(change)")
    }
    try database.close()
  }

  @Test("threads run one query at once, each with its own parameters", arguments: someEngines)
  func threads(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let query = try database.query(Self.unordered)
      let all = try (0..<10).map { try expected(database, Self.unordered, "p\($0)") }
      expect(Set(all).count > 5)
      try onThreads(6) { thread in
        for round in 0..<(isLong ? 2_000 : 100) {
          let place = (thread * 3 + round) % 10
          let found = try query.run(["origin": .string("p\(place)")]).map { try $0.json() }.sorted()
          guard found == all[place] else { throw ConformanceFailure("p\(place): \(found)") }
        }
      }
    }
  }

  @Test("rows of a run stay as they are while the query runs again", arguments: someEngines)
  func heldRows(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let query = try database.query(Self.unordered)
      let first = try query.run(["origin": "p3"])
      let lines = try first.map { try $0.json() }
      for place in 0..<10 { _ = try query.run(["origin": .string("p\(place)")]) }
      try database.save("airline1", ["type": "airline", "name": "another"])
      _ = try query.run(["origin": "p3"])
      try expect(first.map { try $0.json() }, equals: lines)
    }
  }

  @Test("a query runs within a row of its own", arguments: someEngines)
  func nested(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let query = try database.query(Self.unordered)
      let inner = try expected(database, Self.unordered, "p4")
      var outer: [String] = []
      try query.forEach(["origin": "p3"]) { row in
        outer.append(try row.json())
        try expect(lines(query, "p4"), equals: inner)
        return true
      }
      try expect(outer.sorted(), equals: expected(database, Self.unordered))
    }
  }

  @Test("a run after one that was cancelled, or failed, has its own rows", arguments: someEngines)
  func failures(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let query = try database.query(Self.unordered)
      let expected = try expected(database, Self.unordered)
      for round in 0..<6 {
        let cancellation = QueryCancellation()
        var rows = 0
        do {
          try query.forEach(["origin": "p5"], cancellation: cancellation) { _ in
            rows += 1
            if round % 2 == 0 { cancellation.cancel() } else { throw RowError() }
            return true
          }
          Issue.record("the run ended without an error")
        } catch let error as QueryError where error.code == .cancelled {
          expect(round % 2, equals: 0)
        } catch is RowError { expect(round % 2, equals: 1) }
        expect(rows, equals: 1)
        try expect(lines(query), equals: expected)
        // A run that ends early keeps nothing either.
        try query.forEach(["origin": "p6"]) { _ in false }
        try expect(lines(query), equals: expected)
        try expect(queryCode { _ = try query.run() }, equals: .unsetParameter)
        try expect(lines(query), equals: expected)
      }
    }
  }

  @Test("DISTINCT finds the same rows after it took too much memory, and after temporary files")
  func distinct() throws {
    try withDatabase(.sqlite) { database in
      let text = String(repeating: "x", count: 1_000)
      try database.saveBatch(0..<600) { number in
        ("d\(number)", ["n": .int(Int64(number % 300)), "s": .string("\(number % 300)\(text)")])
      }
      let statement = "SELECT DISTINCT s FROM _ WHERE n < $n"
      let small = try database.query(statement, options: .init(memoryLimit: 100 << 10, temporaryFileLimit: 0))
      let spilling = try database.query(statement, options: .init(memoryLimit: 100 << 10))
      for _ in 0..<3 {
        for query in [small, spilling] {
          try expect(query.run(["n": 20]).count, equals: 20)
          try expect(query.run(["n": 0]).count, equals: 0)
        }
        try expect(queryCode { _ = try small.run(["n": 300]) }, equals: .memoryLimit)
        try expect(spilling.run(["n": 300]).count, equals: 300)
      }
    }
  }
}
