import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// What queries of a database give, by the ways that only a database has.
@Suite("Rows of a database's queries") struct QueryRowsTests {
  @Test("when a document expires stands beside other columns", arguments: allEngines)
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
      #expect(
        columns == [
          #"{"e":4000000001000,"name":"name 1"}"#, #"{"name":"name 2"}"#,
          #"{"e":4000000003000,"name":"name 3"}"#,
        ])
      let filtered = try rows(
        "SELECT META().id FROM _ WHERE \(ids) AND META().expiration > 5 AND name LIKE 'name%' ORDER BY META().id"
      )
      #expect(filtered == [#"{"id":"d1"}"#, #"{"id":"d3"}"#])
      let revision = try #require(try database.document("d1")?.revisionID)
      let both = try rows(
        "SELECT META().expiration AS e, META().revisionID AS r FROM _ WHERE META().id = 'd1'")
      #expect(both == [#"{"e":4000000001000,"r":"\#(revision)"}"#])
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
      func expect(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) {
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
      expect(1)
      try database.save("e\u{301}", ["t": 5])
      expect(2)
      try database.save("e\u{301}", ["t": 6])
      expect(1)
      try database.save("\u{e9}", ["t": 6])
      expect(0)
      live.cancel()
    }
  }
}
