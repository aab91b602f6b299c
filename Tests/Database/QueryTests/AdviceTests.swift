import TestSupport
import Touchstone

@testable import Query

/// ADVISE, and IN with the rows of a query.
@Suite struct AdviceTests {
  private let databases = TestDatabases()

  @Test(arguments: [
    ("ADVISE SELECT name FROM _ WHERE type = 'hotel'", ["_: CREATE INDEX adv_type ON _ (type)"]),
    (
      "advise index SELECT 1 FROM _ AS h WHERE h.stars > 3 AND h.geo.lat = $x AND h.type IN ('a', 'b')",
      ["h: CREATE INDEX adv_geo_lat_type_stars ON _ (geo.lat, type, stars)"]
    ),
    (
      "ADVISE SELECT name FROM _ WHERE type = 'hotel' ORDER BY name LIMIT 3",
      ["_: CREATE INDEX adv_type_name ON _ (type, name)"]
    ),
    (
      "ADVISE SELECT 1 FROM _ ORDER BY name",
      ["_: no index helps, because no condition compares its properties with a value"]
    ),
    ("ADVISE SELECT 1 FROM _ WHERE META().id = 'a'", ["_: finds documents by their IDs"]),
    ("ADVISE SELECT COUNT(*) FROM _", ["_: needs no index, because the number of documents is known"]),
    (
      "ADVISE SELECT 1 FROM _ WHERE ANY s IN stops SATISFIES s.d = 3 END",
      ["_: CREATE INDEX adv_s_d ON _ (DISTINCT ARRAY s.d FOR s IN stops END)"]
    ),
    (
      "ADVISE SELECT 1 FROM _ AS a JOIN _ AS r ON r.airline = META(a).id WHERE a.type = 'airline'",
      [
        "a: CREATE INDEX adv_type ON _ (type)", "r: CREATE INDEX adv_airline ON _ (airline)",
      ]
    ),
    (
      "ADVISE SELECT 1 FROM _ WHERE type = 'x' AND EXISTS (SELECT 1 FROM _ AS r WHERE r.airline = 'b')",
      [
        "_: CREATE INDEX adv_type ON _ (type)", "r: CREATE INDEX adv_airline ON _ (airline)",
      ]
    ),
  ])
  func namesTheIndex(_ text: String, _ lines: [String]) throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld + (0..<300).map { ("other\($0)", #"{"type":"other","stars":1}"#) })
    let query = try database.query(text)
    expect(query.columnNames, equals: ["advice"])
    try expect(query.run().map { $0[0].string ?? "" }, equals: lines)
    try expect(
      QueryStatement(parsing: QueryStatement(parsing: text).description) == QueryStatement(parsing: text))
    // What is advised can be done, and is used.
    for line in lines where line.contains(": CREATE") {
      try database.execute(String(line.dropFirst(3)))
    }
    if lines.count == 1, lines[0].contains("CREATE") {
      let used = try query.run()[0][0].string ?? ""
      expect(used.contains("uses the index adv_"), "\(used)")
    }
  }

  /// `x IN (SELECT …)` by a set gives what the same array gives, with null, missing and equal numbers.
  @Test func rowsInASet() throws {
    let database = try databases.open(.lmdb)
    try database.fill([
      ("1", #"{"x":1}"#), ("2", #"{"x":1.0}"#), ("3", #"{"x":null}"#), ("4", "{}"), ("5", #"{"x":"a"}"#),
      ("6", #"{"x":[1,null]}"#), ("7", #"{"x":{"b":2}}"#), ("8", #"{"x":true}"#),
      ("9", #"{"x":18446744073709551615}"#),
    ])
    for rows in [
      "(SELECT RAW x FROM _)", "(SELECT RAW x FROM _ WHERE x IS NOT NULL)",
      "(SELECT RAW x FROM _ WHERE x = 1)",
      "(SELECT RAW x FROM _ WHERE FALSE)", "(SELECT x FROM _)", "(SELECT RAW {'b': 2} FROM _)",
    ] {
      for operation in ["IN", "NOT IN"] {
        let set = try database.query("SELECT RAW x \(operation) \(rows) FROM _ ORDER BY META().id")
        let array = try database.query(
          "WITH w AS \(rows) SELECT RAW x \(operation) ARRAY v FOR v IN w END FROM _ ORDER BY META().id")
        try expect(
          set.run().map { try $0.json() }, equals: array.run().map { try $0.json() }, "\(operation) \(rows)")
      }
    }
  }
}
