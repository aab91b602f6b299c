import BenchmarkKit
import Touchstone

// The queries that Couchbase Lite's guides use as examples, on the data set of those guides.
extension QueryCase {
  /// Each query has the index that suits it, and no other.
  static let guide: [QueryCase] = [
    QueryCase(
      name: "guide-1-limit", summary: "ID and name of the first 10 hotels",
      text: "SELECT META().id, name FROM _ WHERE type = 'hotel' LIMIT 10",
      sql: """
        SELECT id, json_extract(body, '$.name') FROM docs WHERE json_extract(body, '$.type') = 'hotel' LIMIT 10
        """, repeats: (1, 500), index: byType),
    QueryCase(
      name: "guide-2-order-by", summary: "ID and name of all hotels by title, descending",
      text: "SELECT META().id, name FROM _ WHERE type = 'hotel' ORDER BY title DESC",
      sql: """
        SELECT id, json_extract(body, '$.name') FROM docs WHERE json_extract(body, '$.type') = 'hotel'
        ORDER BY json_extract(body, '$.title') DESC
        """, repeats: (1, 50), index: QueryIndex(name: "typeTitle", expressions: ["type", "title"])),
    QueryCase(
      name: "guide-3-group-by", summary: "airports at geo.alt >= 300, counted by country and tz",
      text: """
        SELECT COUNT(*), country, tz FROM _ WHERE type = 'airport' AND geo.alt >= 300 GROUP BY country, tz
        """,
      sql: """
        SELECT COUNT(*), json_extract(body, '$.country') AS c, json_extract(body, '$.tz') AS t FROM docs
        WHERE json_extract(body, '$.type') = 'airport' AND json_extract(body, '$.geo.alt') >= 300 GROUP BY c, t
        """, repeats: (1, 50), index: QueryIndex(name: "typeAltitude", expressions: ["type", "geo.alt"])),
    QueryCase(
      name: "guide-4-array-contains", summary: "hotels that Armani Langworth likes, with all who like them",
      text: """
        SELECT META().id, name, public_likes FROM _
        WHERE type = 'hotel' AND ARRAY_CONTAINS(public_likes, 'Armani Langworth')
        """,
      sql: """
        SELECT id, json_extract(body, '$.name'), json_extract(body, '$.public_likes') FROM docs
        WHERE json_extract(body, '$.type') = 'hotel'
        AND EXISTS (SELECT 1 FROM json_each(body, '$.public_likes') WHERE value = 'Armani Langworth')
        """, repeats: (1, 20), index: byType),
    QueryCase(
      name: "guide-5-join", summary: "routes from RIX joined with their airlines, distinct",
      text: """
        SELECT DISTINCT airline.name, airline.callsign, route.destinationairport, route.stops, route.airline
        FROM _ AS route JOIN _ AS airline ON META(airline).id = route.airlineid
        WHERE route.type = 'route' AND airline.type = 'airline' AND route.sourceairport = 'RIX'
        """,
      sql: """
        SELECT DISTINCT json_extract(a.body, '$.name'), json_extract(a.body, '$.callsign'),
        json_extract(r.body, '$.destinationairport'), json_extract(r.body, '$.stops'),
        json_extract(r.body, '$.airline')
        FROM docs r JOIN docs a ON a.id = json_extract(r.body, '$.airlineid')
        WHERE json_extract(r.body, '$.type') = 'route' AND json_extract(a.body, '$.type') = 'airline'
        AND json_extract(r.body, '$.sourceairport') = 'RIX'
        """, repeats: (1, 100), index: QueryIndex(name: "typeSource", expressions: ["type", "sourceairport"])),
    QueryCase(
      name: "guide-6-like-landmarks", summary: "ID and name of landmarks with name LIKE 'Eng%e%'",
      text: "SELECT META().id, name FROM _ WHERE type = 'landmark' AND name LIKE 'Eng%e%'",
      sql: """
        SELECT id, json_extract(body, '$.name') FROM docs
        WHERE json_extract(body, '$.type') = 'landmark' AND json_extract(body, '$.name') LIKE 'Eng%e%'
        """, repeats: (1, 200), index: byTypeAndName),
    QueryCase(
      name: "guide-7-like-hotels", summary: "ID and name of hotels with name LIKE 'The%e%'",
      text: "SELECT META().id, name FROM _ WHERE type = 'hotel' AND name LIKE 'The%e%'",
      sql: """
        SELECT id, json_extract(body, '$.name') FROM docs
        WHERE json_extract(body, '$.type') = 'hotel' AND json_extract(body, '$.name') LIKE 'The%e%'
        """, repeats: (1, 100), index: byTypeAndName),
    QueryCase(
      name: "guide-8-equal", summary: "ID and country of the airports of France",
      text: "SELECT META().id, country FROM _ WHERE type = 'airport' AND country = 'France'",
      sql: """
        SELECT id, json_extract(body, '$.country') FROM docs
        WHERE json_extract(body, '$.type') = 'airport' AND json_extract(body, '$.country') = 'France'
        """, repeats: (1, 100), index: QueryIndex(name: "typeCountry", expressions: ["type", "country"])),
  ]

  private static let byType = QueryIndex(name: "byType", expressions: ["type"])
  private static let byTypeAndName = QueryIndex(name: "typeName", expressions: ["type", "name"])
}

extension QueryData {
  /// Runs the queries of the guide without indexes, each once. The first query isn't among them: it stops
  /// after 10 rows.
  var guideScan: Workload {
    let queries = QueryCase.guide.dropFirst()
    return Workload(
      suite: "query", name: QueryWork.guideScan.rawValue,
      summary: "the queries of the guide after the first, each once", parameters: ["index": "none"],
      operations: 1
    ) { [self] trial in
      let database = try database(trial.engine, .none)
      let prepared = try queries.map { try database.query($0.text) }
      for (query, prepared) in zip(queries, prepared) {
        try check(rows: [try prepared.run()], of: query.name)
      }
      return Trial(
        timing: {
          var sum = 0
          for query in prepared { sum &+= try query.run().sum }
          withExtendedLifetime(sum) {}
        }, finish: { try database.close() })
    }
  }

  /// Parses, plans and compiles all queries of the guide in a database that has many indexes.
  var guideCompile: Workload {
    let times = 50
    return Workload(
      suite: "query", name: QueryWork.guideCompile.rawValue,
      summary: "parses, plans and compiles the \(QueryCase.guide.count) queries of the guide",
      parameters: ["index": "value"], operations: times
    ) { [self] trial in
      let database = try database(trial.engine, .all)
      let compile = { for query in QueryCase.guide { _ = try database.query(query.text) } }
      try compile()
      return Trial(
        timing: { for _ in 0..<times { try compile() } }, finish: { try database.close() })
    }
  }
}
