import Touchstone

/// A query of the suite, in N1QL and with SQLite's JSON functions.
struct QueryCase: Sendable {
  /// `q1` … `q10`, or a name that begins with `guide-`.
  let name: String
  let summary: String
  let text: String
  /// The same query over a table `docs(id, body)`. `?1` is the parameter.
  let sql: String
  /// Whether the first parameter, `$name`, is the name of someone who likes a hotel.
  var takesLiker = false
  /// Whether it runs for 1,000 IDs, passed as `$id`.
  var isLookup = false
  /// The number of repeats in a run, without and with indexes. There are enough that the first one, with cold
  /// caches, doesn't dominate.
  var repeats = (plain: 4, indexed: 200)
  /// The only index of its database. Nil: the database has all of `indexes`, or none.
  var index: QueryIndex?

  static let all: [QueryCase] = [
    QueryCase(
      name: "q1", summary: "hotels, the first 10",
      text: "SELECT META().id, name FROM _ WHERE type = 'hotel' LIMIT 10",
      sql: """
        SELECT id, json_extract(body, '$.name') FROM docs WHERE json_extract(body, '$.type') = 'hotel' LIMIT 10
        """, repeats: (20, 100)),
    QueryCase(
      name: "q2", summary: "hotels ordered by title, descending",
      text: "SELECT title FROM _ WHERE type = 'hotel' ORDER BY title DESC",
      sql: """
        SELECT json_extract(body, '$.title') FROM docs WHERE json_extract(body, '$.type') = 'hotel'
        ORDER BY json_extract(body, '$.title') DESC
        """),
    QueryCase(
      name: "q3", summary: "airports at geo.alt >= 300, counted by country and tz",
      text: """
        SELECT country, tz, COUNT(*) AS n FROM _ WHERE type = 'airport' AND geo.alt >= 300 GROUP BY country, tz
        """,
      sql: """
        SELECT json_extract(body, '$.country') AS c, json_extract(body, '$.tz') AS t, COUNT(*) FROM docs
        WHERE json_extract(body, '$.type') = 'airport' AND json_extract(body, '$.geo.alt') >= 300 GROUP BY c, t
        """),
    QueryCase(
      name: "q4", summary: "hotels that a name likes",
      text: """
        SELECT META().id FROM _ WHERE type = 'hotel' AND ANY l IN public_likes SATISFIES l = $name END
        """,
      sql: """
        SELECT id FROM docs WHERE json_extract(body, '$.type') = 'hotel'
        AND EXISTS (SELECT 1 FROM json_each(body, '$.public_likes') WHERE value = ?1)
        """, takesLiker: true, repeats: (4, 20)),
    QueryCase(
      name: "q5", summary: "routes from SFO joined with their airlines",
      text: QueryCase.join,
      sql: """
        SELECT json_extract(r.body, '$.destinationairport'), json_extract(a.body, '$.name') FROM docs r
        JOIN docs a ON a.id = json_extract(r.body, '$.airlineid')
        WHERE json_extract(r.body, '$.type') = 'route' AND json_extract(r.body, '$.sourceairport') = 'SFO'
        """),
    QueryCase(
      name: "q6", summary: "landmarks with name LIKE 'eng%e%'",
      text: "SELECT name FROM _ WHERE type = 'landmark' AND name LIKE 'eng%e%'",
      sql: """
        SELECT json_extract(body, '$.name') FROM docs
        WHERE json_extract(body, '$.type') = 'landmark' AND json_extract(body, '$.name') LIKE 'eng%e%'
        """),
    QueryCase(
      name: "q7", summary: "airports of France",
      text: "SELECT airportname FROM _ WHERE type = 'airport' AND country = 'France'",
      sql: """
        SELECT json_extract(body, '$.airportname') FROM docs
        WHERE json_extract(body, '$.type') = 'airport' AND json_extract(body, '$.country') = 'France'
        """),
    QueryCase(
      name: "q8", summary: "hotels that a review gives 4 and more",
      text: "SELECT META().id FROM _ WHERE ANY r IN reviews SATISFIES r.ratings.Overall >= 4 END",
      sql: """
        SELECT id FROM docs WHERE EXISTS (SELECT 1 FROM json_each(body, '$.reviews')
        WHERE json_extract(value, '$.ratings.Overall') >= 4)
        """),
    QueryCase(
      name: "q9", summary: "average of geo.lat by country, of those with over 10 airports",
      text: """
        SELECT country, AVG(geo.lat) AS lat FROM _ WHERE type = 'airport' GROUP BY country HAVING COUNT(*) > 10
        """,
      sql: """
        SELECT json_extract(body, '$.country') AS c, AVG(json_extract(body, '$.geo.lat')) FROM docs
        WHERE json_extract(body, '$.type') = 'airport' GROUP BY c HAVING COUNT(*) > 10
        """),
    QueryCase(
      name: "q10", summary: "1,000 documents by ID, a prepared query each",
      text: "SELECT type FROM _ WHERE META().id = $id",
      sql: "SELECT json_extract(body, '$.type') FROM docs WHERE id = ?1", isLookup: true, repeats: (1, 1)),
  ]

  static let join = """
    SELECT r.destinationairport, a.name FROM _ AS r JOIN _ AS a ON META(a).id = r.airlineid
    WHERE r.type = 'route' AND r.sourceairport = 'SFO'
    """

  /// The value indexes for q1 to q10.
  static let indexes = [
    QueryIndex(name: "typeTitle", expressions: ["type", "title"]),
    QueryIndex(name: "altitudes", expressions: ["type", "geo.alt", "country", "tz"]),
    QueryIndex(name: "likes", expressions: [], unnest: "public_likes AS l"),
    QueryIndex(name: "routes", expressions: ["type", "sourceairport"]),
    QueryIndex(name: "typeName", expressions: ["type", "name"]),
    QueryIndex(name: "countries", expressions: ["type", "country", "geo.lat"]),
    QueryIndex(name: "ratings", expressions: ["r.ratings.Overall"], unnest: "reviews AS r"),
  ]
}

/// A value index.
struct QueryIndex: Sendable {
  let name: String
  let expressions: [String]
  /// The array that it unnests, with its name: `reviews AS r`.
  var unnest: String?

  /// Makes the index.
  func make(in database: Database) throws {
    if let unnest {
      try database.createIndex(name, unnest: unnest, on: expressions)
    } else {
      try database.createIndex(name, on: expressions)
    }
  }

  /// The columns of the matching index in SQLite, which has no indexes on arrays.
  var sqlColumns: String? {
    guard unnest == nil else { return nil }
    return expressions.map { "json_extract(body, '$.\($0)')" }.joined(separator: ", ")
  }
}

/// The value indexes that a database of the suite has.
enum QueryIndexes: Sendable {
  /// None.
  case none
  /// All indexes for q1 to q10.
  case all
  /// One.
  case only(QueryIndex)

  /// The value of the parameter `index`.
  var label: String {
    switch self {
    case .none: "none"
    case .all: "value"
    case .only(let index): index.expressions.joined(separator: ", ")
    }
  }

  var list: [QueryIndex] {
    switch self {
    case .none: []
    case .all: QueryCase.indexes
    case .only(let index): [index]
    }
  }
}
