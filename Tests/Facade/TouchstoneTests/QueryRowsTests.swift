import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// What queries of a database give, by the ways that only a database has.
@Suite("Rows of a database's queries") struct QueryRowsTests {
  @Test("when a document expires stands beside other columns", arguments: someEngines)
  func expirations(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.inBatch {
        for number in 0..<50 {
          let id = "d\(number)"
          try database.save(id, ["name": .string("name \(number)")])
          if number != 2 {
            try database.setExpiration(of: id, at: Date(timeIntervalSince1970: 4e9 + Double(number)))
          }
        }
      }
      let ids = "META().id IN ('d1','d2','d3')"
      func rows(_ text: String) throws -> [String] { try database.query(text).run().map { try $0.json() } }
      let columns = try rows(
        "SELECT META().expiration AS e, name FROM _ WHERE \(ids) ORDER BY META().id")
      expect(
        columns,
        equals: [
          #"{"e":4000000001000,"name":"name 1"}"#, #"{"name":"name 2"}"#,
          #"{"e":4000000003000,"name":"name 3"}"#,
        ])
      let filtered = try rows(
        "SELECT META().id FROM _ WHERE \(ids) AND META().expiration > 5 AND name LIKE 'name%' ORDER BY META().id"
      )
      expect(filtered, equals: [#"{"id":"d1"}"#, #"{"id":"d3"}"#])
      let revision = try #require(try database.document("d1")?.revisionID)
      let both = try rows(
        "SELECT META().expiration AS e, META().revisionID AS r FROM _ WHERE META().id = 'd1'")
      expect(both, equals: [#"{"e":4000000001000,"r":"\#(revision)"}"#])
    }
  }

  /// The rows of a query by each way of taking them, sorted.
  private func rows(_ database: Database, _ text: String, usesIndexes: Bool) throws -> [[String]] {
    let query = try database.query(text, options: .init(usesIndexes: usesIndexes))
    let results = try query.run()
    var given: [String] = []
    try query.forEach { row in
      given.append(try row.json())
      return true
    }
    // Looked at after all of them are there.
    return [try results.map { try $0.json() }.sorted(), given.sorted()]
  }

  @Test("an index that has all that is asked gives the rows that documents do", arguments: someEngines)
  func coveringIndexes(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.inBatch {
        for number in 0..<400 {
          let whole = number % 2 == 0 ? "\(number).0" : "\(number)"
          try database.save(
            "city\(number)",
            DocumentBody(
              json: #"{"ref":"country\#(number % 40)","loc":[\#(whole),\#(number).5],"r":\#(whole)}"#))
        }
        for number in 0..<40 {
          try database.save(
            "country\(number)",
            DocumentBody(json: #"{"name":"C\#(number)","cap":[\#(number).0,"x\#(number)",{"a":["b"]}]}"#))
        }
        try database.save("null island", ["loc": [0.0, 0.0]])
      }
      let texts = [
        "SELECT r, loc FROM _ WHERE r >= 0", "SELECT loc FROM _ WHERE loc IS NOT MISSING ORDER BY loc",
        "SELECT cap, name FROM _ WHERE name > 'C1'",
        "SELECT a.loc AS loc, b.name AS name FROM _ AS a JOIN _ AS b ON META(b).id = a.ref WHERE a.ref >= 'country'",
        "SELECT a.loc AS loc, b.name AS name, b.cap AS cap FROM _ AS a JOIN _ AS b ON b.name < 'C2' WHERE a.ref = 'country1'",
        "SELECT a.loc AS loc, b.name AS name, b.cap AS cap FROM _ AS a LEFT JOIN _ AS b ON b.name = 'C3' WHERE a.ref >= 'country1'",
        "SELECT a.loc AS loc, COUNT(*) AS n FROM _ AS a JOIN _ AS b ON b.name >= 'C' WHERE a.ref >= 'country3' GROUP BY a.loc",
      ]
      let expected = try texts.map { try rows(database, $0, usesIndexes: false) }
      try database.createIndex("byRef", on: ["ref", "loc"])
      try database.createIndex("byName", on: ["name", "cap"])
      try database.createIndex("byR", on: ["r", "loc"])
      try database.createIndex("byLoc", on: ["loc"])
      for (text, wanted) in zip(texts, expected) {
        expect(wanted[0].count > 20 && wanted[0] == wanted[1], "\(text)")
        try expect(rows(database, text, usesIndexes: true), equals: wanted, "\(text)")
      }
      try expect(database.query(texts[0]).explain().description.contains("overing"))
    }
  }

  @Test("META() as a whole stands beside other columns", arguments: someEngines)
  func wholeMeta(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.inBatch {
        for number in 0..<50 {
          let id = "d\(number)"
          try database.save(id, ["name": .string("name \(number)"), "k": .int(Int64(number))])
          if number % 2 == 0 {
            try database.setExpiration(of: id, at: Date(timeIntervalSince1970: 4e9 + Double(number)))
          }
        }
      }
      func expected(_ number: Int) throws -> String {
        let document = try #require(try database.document("d\(number)"))
        let expiration = number % 2 == 0 ? #""expiration":\#(4_000_000_000_000 + number * 1_000),"# : ""
        return
          #"{"m":{"deleted":false,\#(expiration)"id":"d\#(number)","revisionID":"\#(document.revisionID)","#
          + #""sequence":\#(document.sequence)},"name":"name \#(number)"}"#
      }
      let all = try (0..<50).map(expected)
      for (text, wanted) in [
        ("SELECT META() AS m, name FROM _ ORDER BY k", all),
        ("SELECT META() AS m, name FROM _ WHERE META().id IN ('d1', 'd2') ORDER BY k", [all[1], all[2]]),
        ("SELECT META() AS m, name FROM _ WHERE k BETWEEN 3 AND 4 ORDER BY k", [all[3], all[4]]),
      ] {
        try expect(database.query(text).run().map { try $0.json() }, equals: wanted, "\(text)")
        var rows: [String] = []
        try database.query(text).forEach { row in
          rows.append(try row.json())
          return true
        }
        expect(rows, equals: wanted, "\(text)")
      }
    }
  }

  @Test("a snippet stands beside other columns where MATCH is a filter as well", arguments: someEngines)
  func snippets(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.inBatch {
        for number in 0..<40 {
          let text = number % 2 == 0 ? "a castle at the river \(number)" : "a castle on a hill \(number)"
          try database.save(
            "d\(number)",
            ["name": .string("name \(number)"), "content": .string(text), "k": .int(Int64(number % 5))])
        }
      }
      try database.createFullTextIndex("text", on: ["content"])
      let rows = try database.query(
        """
        SELECT META().id AS id, name, SNIPPET(text, '[', ']') AS s FROM _
        WHERE MATCH(text, 'castle') AND (MATCH(text, 'river') OR k = 1) ORDER BY name
        """
      ).run().map { try $0.json() }
      let wanted = (0..<40).filter { $0 % 2 == 0 || $0 % 5 == 1 }.map { number in
        let text = number % 2 == 0 ? "a [castle] at the river \(number)" : "a [castle] on a hill \(number)"
        return #"{"id":"d\#(number)","name":"name \#(number)","s":"\#(text)"}"#
      }
      expect(Set(rows) == Set(wanted) && rows.count == wanted.count, "\(rows)")
    }
  }

  @Test("a live query tells documents apart by the bytes of their IDs")
  func normalizedIDs() throws {
    try withDatabase(.sqlite) { database in
      try database.save("\u{e9}", ["t": 5])
      let counts = Lock<[Int]>([])
      let live = try database.observe(try database.query("SELECT META().id FROM _ WHERE t = 5")) { outcome in
        if case .success(let rows) = outcome { counts.withLock { $0.append(rows.count) } }
      }
      func expectCount(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let deadline = Date(timeIntervalSinceNow: 30)
        while counts.withLock({ $0.last }) != count {
          guard Date() < deadline else {
            let told = counts.withLock { $0 }
            Issue.record("told \(told), and not \(count)", sourceLocation: sourceLocation)
            return
          }
          usleep(2_000)
        }
      }
      expectCount(1)
      try database.save("e\u{301}", ["t": 5])
      expectCount(2)
      try database.save("e\u{301}", ["t": 6])
      expectCount(1)
      try database.save("\u{e9}", ["t": 6])
      expectCount(0)
      live.cancel()
    }
  }
}
