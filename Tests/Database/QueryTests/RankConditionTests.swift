import TestSupport

@testable import Query
@testable import Touchstone

/// RANK in conditions, also where nothing else asks for it.
@Suite struct RankConditionTests {
  @Test("RANK in WHERE and ON is the rank, whoever else asks for it", arguments: someEngines)
  func conditions(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.saveBatch(0..<20) { number in
        let text = String(repeating: "castle ", count: number % 4) + "on a hill \(number)"
        return ("d\(number)", ["t": .string(text), "n": .int(Int64(number)), "k": .int(Int64(number % 2))])
      }
      try database.createFullTextIndex("ft", on: ["t"])
      let ranked = try database.query("SELECT META().id, RANK(ft) AS r FROM _ WHERE MATCH(ft, 'castle')")
        .run()
      expect(ranked.count == 15 && ranked.allSatisfy { ($0["r"].double ?? 0) > 0 })
      let ranks = ranked.compactMap { $0["r"].double }.sorted()
      let middle = ranks[7]
      let above = ranks.filter { $0 > middle }.count
      expect(above > 0)
      func count(_ text: String) throws -> Int? {
        try database.query(text).run(["r": .double(middle)])[0][0].int.map { Int($0) }
      }
      try expect(
        count("SELECT COUNT(*) FROM _ WHERE MATCH(ft, 'castle') AND RANK(ft) > 0 AND $r > 0"), equals: 15)
      try expect(count("SELECT COUNT(*) FROM _ WHERE MATCH(ft, 'castle') AND RANK(ft) > $r"), equals: above)
      try expect(
        count("SELECT COUNT(*) FROM _ WHERE MATCH(ft, 'castle') AND NOT (RANK(ft) > $r)"), equals: 15 - above)
      try expect(
        count("SELECT COUNT(*) FROM _ WHERE (MATCH(ft, 'castle') OR n = 0) AND RANK(ft) = 0 AND $r > 0"),
        equals: 1)
      try expect(
        count(
          "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON MATCH(b.ft, 'castle') AND b.n = a.n AND RANK(b.ft) > $r"
        ), equals: above)
      try expect(
        count(
          "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.n = a.n AND a.k >= 0 WHERE MATCH(a.ft, 'castle') AND RANK(a.ft) > $r"
        ), equals: above)
      try expect(
        count(
          """
          SELECT COUNT(*) FROM _ AS a UNNEST [RANK(a.ft)] AS x WHERE MATCH(a.ft, 'castle') AND x > $r
          """), equals: above)
      let grouped = try database.query(
        "SELECT k, COUNT(*) AS n FROM _ WHERE MATCH(ft, 'castle') AND RANK(ft) > $r GROUP BY k ORDER BY k"
      ).run(["r": .double(middle)])
      expect(grouped.reduce(0) { $0 + ($1["n"].int ?? 0) }, equals: Int64(above))
    }
  }
}
