import Suites
import TestSupport

@testable import touchstone

/// `bench mine`: one's own documents, queries and mix.
@Suite struct MineCommandTests {
  private static let queries = """
    -- The queries of the example.
    -- name: by-type
    -- index: byType ON type, LOWER(name) WHERE type = 'hotel'
    -- param: from = n1
    SELECT name FROM _ WHERE type = 'hotel' AND LOWER(name) > $from;

    -- index: n
    SELECT COUNT(*) AS many -- of them
    FROM _ WHERE n BETWEEN 10 AND 12

    """

  private static func documents(_ count: Int) -> String {
    (0..<count).map { number in
      let type = number % 2 == 0 ? "hotel" : "airline"
      return #"{"key":"doc\#(number)","type":"\#(type)","name":"N\#(number)","n":\#(number % 50)}"#
    }.joined(separator: "\n")
  }

  @Test func theFileOfQueriesHasNamesIndexesAndParameters() throws {
    let queries = try QueryFile(Self.queries, name: "q").queries
    expect(queries.map(\.name), equals: ["by-type", "query-2"])
    expect(queries[0].parameters["from"]?.string, equals: "n1")
    expect(queries[0].indexes.map(\.name), equals: ["byType"])
    expect(queries[1].text.hasPrefix("SELECT COUNT(*)") && queries[1].text.hasSuffix("AND 12"))
    guard case .value(let definition) = queries[0].indexes[0].definition else { return expect(Bool(false)) }
    expect(definition.text, equals: "type, LOWER(name) WHERE type = 'hotel'")
    try expect(
      QueryFile("\u{FEFF}" + Self.queries, name: "q").queries.map(\.name), equals: queries.map(\.name))
    let more = try QueryFile(
      """
      -- index: r.stars UNNEST reviews AS r
      -- fulltext: text ON name, content LANGUAGE en
      SELECT name FROM _ WHERE MATCH(text, 'river');
      """, name: "q"
    ).queries[0].indexes
    expect(more.map(\.name), equals: ["r.stars UNNEST reviews AS r", "text"])
    guard case .fullText(let text) = more[1].definition else { return expect(Bool(false)) }
    expect(text.columns == ["name", "content"] && text.options.language == .english)
  }

  @Test(arguments: [
    ("", "q: there are no queries"),
    ("SELECT name\nFROM _ WHERE", "q: line 2: "),
    ("-- nmae: a\nSELECT 1", "q: line 1: there is no 'nmae:' (did you mean name:?)"),
    ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2", "q: line 3: another query has the name 'a'"),
    ("-- name: a,b\nSELECT 1", "q: line 1: a name can't contain a comma"),
    ("SELECT 1;\n-- index: type", "q: line 2: no query follows"),
    ("-- index: a, \nSELECT 1", "q: line 1: an expression of the index is missing"),
    ("-- index: FROB(a)\nSELECT 1", "q: line 1: "),
    ("-- index: x ON a\nSELECT 1;\n-- index: x ON b\nSELECT 2", "q: line 3: line 1 has another index"),
    ("-- fulltext: name\nSELECT 1", "q: line 1: a full-text index needs a name"),
    ("-- param: a\nSELECT 1", "q: line 1: 'a' doesn't have the form NAME=VALUE"),
    (
      "-- param: a = 1\nSELECT 1;\n\nSELECT $a",
      "q: line 4: the parameter $a has no value; write it before the query: '-- param: a = VALUE'"
    ),
    (".quit", "q: line 1: '.quit' is a command of the shell"),
  ]) func aWrongFileIsRefusedWithItsLine(text: String, message: String) throws {
    do {
      _ = try QueryFile(text, name: "q")
      expect(Bool(false), "no error for \(text)")
    } catch let error as UsageError { expect(error.message.hasPrefix(message), "\(error.message)") }
  }

  @Test func aMixIsTakenFromItsTextOrFromYCSBsProperties() throws {
    let mix = try OperationMix(parsing: "read=80,update=15,query=5")
    expect(mix.text, equals: "read=80,update=15,query=5,distribution=zipfian")
    try expect(OperationMix(parsing: mix.text), equals: mix)
    let ycsb = try OperationMix(
      ycsb: """
        # Workload E
        recordcount=1000
        readproportion=0
        updateproportion=0
        scanproportion=0.95
        insertproportion = 0.05
        requestdistribution=latest
        maxscanlength=10
        """, path: "e")
    expect(ycsb.text, equals: "insert=5,scan=95,distribution=latest")
    expect(ycsb.longestScan == 10 && ycsb.ignored == ["recordcount"])
    // Those of YCSB where nothing is said.
    try expect(
      OperationMix(ycsb: "", path: "x").text, equals: "read=95,update=5,distribution=uniform")
    for (text, message) in [
      ("read", "'read' isn't OPERATION=SHARE"), ("write=1", "there is no operation 'write'"),
      ("read=-1", "the share of read is '-1'"), ("read=0", "no operation has a share"),
      ("read=1,read=2", "'read' occurs twice"),
      ("read=1,distribution=normal", "there is no distribution 'normal'"),
    ] {
      do { _ = try OperationMix(parsing: text) } catch { expect("\(error)".contains(message), "\(error)") }
    }
    do { _ = try OperationMix(ycsb: "a=b\nrequestdistribution=hotspot", path: "w") } catch {
      expect("\(error)".hasPrefix("w: line 2: there is no distribution 'hotspot'"), "\(error)")
    }
  }

  @Test func documentsThatCannotBeUsedAreRefusedWithTheirLine() throws {
    try Tool.run { tool in
      try tool.write(Self.queries, to: "queries")
      for (name, text, reason) in [
        ("empty", "", "there are no documents"),
        ("array", "[\n{}]", "line 1: it is not a JSON object but an array"),
        ("double", #"{"key":"a"}"# + "\n" + #"{"key":"a"}"#, "line 2: the document has the ID a of line 1"),
        ("number", #"{"key":1}"#, #"line 1: its ID is not a string; write the value of "key" in quotes"#),
        ("spread", "{\n  \"key\": \"a\"\n}", "line 1: its JSON object goes on in the next line"),
        ("text", "key,name\na,b", "line 1: it is not a JSON object; write each document as"),
        (
          "_property", #"{"key":"a","_x":1}"#,
          "line 1: names of top-level properties can't begin with an underscore; rename '_x'"
        ),
        ("none", #"{"_id":"a"}"#, "no line has the property 'key'"),
      ] {
        try tool.write(text, to: name)
        let result = try tool(
          "bench", "mine", "--dataset", name, "--id-property", "key", "--queries", "queries", "--samples",
          "1",
          "--engines", "sqlite")
        expect(result.status == 2 && result.errors.contains("\(name): "), "\(result.errors)")
        expect(result.errors.contains(reason), "\(result.errors)")
      }
      for (arguments, reason) in [
        (["--dataset", "none"], "needs --queries FILE, --mix MIX"),
        (["--queries", "queries"], "needs --dataset FILE"),
        (["--dataset", "none", "--mix", "query=1"], "so it needs --queries FILE"),
        (["--dataset", "none", "--mix", "there-is-none"], "there-is-none"),
        (["--dataset", "none", "--queries", "queries", "--rate", "5"], "--rate needs --mix"),
      ] {
        let result = try tool.run(Tool.executable, ["bench", "mine"] + arguments)
        expect(result.status == 2 && result.errors.contains(reason), "\(arguments): \(result.errors)")
      }
    }
  }

  @Test func queriesRunWithAndWithoutIndexesAndAMixForAWhile() throws {
    try Tool.run { tool in
      try tool.write(Self.queries, to: "queries")
      try tool.write(Self.documents(200), to: "documents")
      let printed = try tool.succeed(
        "bench", "mine", "--dataset", "documents", "--id-property", "key", "--queries", "queries",
        "--executions",
        "2", "--samples", "1", "--engines", "sqlite,lmdb", "--output", "fixed.json")
      expect(printed.output.contains("Index byType as _: _.type = 'hotel'"), "\(printed.output)")
      try tool.succeed(
        "bench", "mine", "--dataset", "documents", "--id-property", "key", "--queries", "queries", "--mix",
        "read=40,update=20,query=10,insert=10,scan=10,readmodifywrite=10,distribution=latest", "--duration",
        "1",
        "--rate", "200", "--threads", "2", "--samples", "1", "--engines", "lmdb", "--only", "mix", "--output",
        "mix.json")
      let fixed = try results(tool, "fixed.json")
      expect(fixed.results.count, equals: 8)
      for result in fixed.results {
        let index = result["parameters"] as? [String: String]
        let plan = (result["plan"] as? [String])?.joined() ?? ""
        let isScan = plan.contains("Scan of all documents")
        expect(isScan, equals: index?["index"] == "none", "\(plan)")
      }
      expect((fixed.work["queries"] as? String), equals: Self.queries)
      expect(fixed.work["id_property"] as? String, equals: "key")
      let mix = try results(tool, "mix.json")
      expect(mix.results.count, equals: 1)
      let metrics = mix.results[0]["metrics"] as? [String: [String: Any]]
      expect(metrics?["latency_p999"] != nil && mix.results[0]["series"] != nil)
      expect(
        mix.work["mix"] as? String,
        equals: "read=40,update=20,insert=10,scan=10,readmodifywrite=10,query=10,distribution=latest")
      // Results like those of all suites.
      try expect(tool("compare", "fixed.json", "fixed.json").status, equals: 0)
    }
  }

  private func results(_ tool: Tool, _ name: String) throws -> (
    results: [[String: Any]], work: [String: Any]
  ) {
    let file = try JSONSerialization.jsonObject(with: Data(tool.read(name).utf8)) as? [String: Any]
    return (file?["results"] as? [[String: Any]] ?? [], file?["own_work"] as? [String: Any] ?? [:])
  }
}

/// `advise`: indexes that would help.
@Suite struct AdviseCommandTests {
  @Test(arguments: TestEngine.some) func itFindsWhatHelpsAndWhatNoQueryUses(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let lines = (0..<3_000).map { #"{"_id":"d\#($0)","kind":"k\#($0 % 500)","n":\#($0)}"# }
      try tool.succeed("import", "db", "-", input: lines.joined(separator: "\n"))
      try tool.succeed("index", "db", "create", "idle", "absent")
      try tool.succeed("index", "db", "create", "byN", "n")
      try tool.write(
        """
        -- name: kind
        -- param: k = k7
        SELECT n FROM _ WHERE kind = $k;
        -- name: used
        SELECT kind FROM _ WHERE n = 5;
        -- name: everything
        SELECT COUNT(*) AS many FROM _;
        """, to: "queries")
      let before = try tool.succeed("index", "db", "list").output
      let one = try tool.succeed(
        "advise", "db", "ADVISE SELECT n FROM _ WHERE kind = $k", "--param", "k=k7", "--seconds", "0")
      expect(one.output.contains("create index1 kind"), "\(one.output)")
      // What ADVISE names for an inner query is tried as well.
      let inner = try tool.succeed(
        "advise", "db",
        "SELECT n FROM _ AS x WHERE x.n < 3 AND NOT EXISTS (SELECT 1 FROM _ AS y WHERE y.kind = 'none')",
        "--seconds", "0")
      expect(inner.output.contains("create index1 kind"), "\(inner.output)")
      let twice = try tool("advise", "db", "SELECT 1", "--queries", "queries")
      expect(twice.status != 0 && twice.errors.contains("--queries"), "\(twice.errors)")
      let json = try tool.succeed("advise", "db", "--queries", "queries", "--seconds", "0", "--json").json()
      let queries = try #require(json["queries"] as? [[String: Any]])
      expect(queries.map { $0["name"] as? String }, equals: ["kind", "used", "everything"])
      let best = (queries[0]["indexes"] as? [[String: Any]])?.first
      expect((best?["on"] as? [String])?.first, equals: "kind", "\(queries)")
      expect((best?["ratio"] as? Double ?? 0) > 1.2)
      expect((queries[2]["indexes"] as? [Any])?.count, equals: 0)
      expect(json["unused"] as? [String], equals: ["idle"])
      // The database is as it was, and the copy is gone.
      try expect(tool.succeed("index", "db", "list").output, equals: before)
      // A name that an index has is no advice: the index would be replaced.
      try tool.succeed("index", "db", "create", "index1", "absent")
      let other = try tool.succeed(
        "advise", "db", "SELECT n FROM _ WHERE kind = $k", "--param", "k=k7", "--seconds", "0")
      expect(other.output.contains("create index2 kind"), "\(other.output)")
    }
  }

  @Test func candidatesComeFromConditionsOrderGroupsAndArrays() throws {
    func candidates(_ text: String) throws -> [String] {
      try IndexCandidates(SelectStatement(parsing: text)).definitions.map(\.text)
    }
    try expect(
      candidates("SELECT * FROM _ WHERE type = 'a' AND n > 5 ORDER BY name").prefix(2),
      equals: ["type, n", "type, name"])
    try expect(candidates("SELECT name FROM _ AS d WHERE d.type = $t")[0], equals: "type")
    try expect(candidates("SELECT LOWER(name) AS l FROM _ ORDER BY l"), equals: ["LOWER(name)"])
    try expect(
      candidates("SELECT r.x FROM _ UNNEST reviews AS r WHERE r.stars = 5"),
      equals: ["r.stars UNNEST reviews AS r"])
    try expect(
      candidates("SELECT name FROM _ WHERE ANY l IN likes SATISFIES l = 'x' END"),
      equals: ["l UNNEST likes AS l"])
    try expect(
      candidates("SELECT a.x FROM _ AS a JOIN _ AS b ON b.owner = a.id").contains("owner"))
    try expect(candidates("SELECT META().id FROM _ WHERE META().id = 'x'"), equals: [])
  }
}
