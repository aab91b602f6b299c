import TestSupport

/// `touchstone query`, over every engine.
@Suite struct QueryCommandTests {
  private func fill(_ tool: Tool) throws {
    try tool.succeed("put", "db", "a", #"{"type":"hotel","name":"Apple, \"Droid\"","n":2}"#)
    try tool.succeed("put", "db", "b", #"{"type":"hotel","name":"Zoo","tags":["x"]}"#)
    try tool.succeed("put", "db", "c", #"{"type":"route","n":3}"#)
  }

  @Test(arguments: [
    (
      "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON a.n % 7 = b.n % 7 JOIN _ AS c ON b.n % 5 = c.n % 5",
      "0 rows"
    ),
    (
      "UPDATE _ SET n = (SELECT RAW COUNT(*) FROM _ AS a JOIN _ AS b ON a.n % 7 = b.n % 7 JOIN _ AS c ON b.n % 5 = c.n % 5)[0]",
      "nothing was changed"
    ),
  ]) func ctrlCEndsAStatement(_ text: String, _ outcome: String) throws {
    try TestEngine.sqlite.withDatabase { tool in
      let lines = (0..<4_000).map { #"{"_id":"d\#($0)","n":\#($0)}"# }.joined(separator: "\n")
      try tool.succeed("import", "db", "-", input: lines)
      let child = try Child(tool, Tool.executable, ["query", "db", text])
      // Until it listens for signals, one would end it as it does any program.
      try child.wait { try catchesInterrupts(child.identifier) }
      child.kill(SIGINT)
      let result = try child.wait()
      expect(result.status, equals: 130)
      expect(result.errors.contains(outcome), "\(result.errors)")
      try expect(tool.succeed("query", "db", "SELECT RAW MAX(n) FROM _").lines, equals: ["3999"])
    }
  }

  /// Whether a process has a handler for SIGINT.
  private func catchesInterrupts(_ process: pid_t) throws -> Bool {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
    let mask = line?.split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0, radix: 16) } ?? 0
    return mask & 1 << UInt64(SIGINT - 1) != 0
  }

  @Test(arguments: TestEngine.some) func rowsComeAsJSONInAPipeAndInOtherFormats(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try fill(tool)
      let text = "SELECT name, n, tags FROM db WHERE type = $t AND name >= $from ORDER BY name"
      let rows = try tool.succeed("query", "db", text, "--param", "t=hotel", "--param=from=\"\"").output
      expect(
        rows, equals: #"{"name":"Apple, \"Droid\"","n":2}"# + "\n" + #"{"name":"Zoo","tags":["x"]}"# + "\n")
      let table = try tool.succeed(
        "query", "db", text, "--param", "t=hotel", "--param", "from=A", "--format", "table"
      ).lines
      expect(table, equals: ["name            n  tags", "Apple, \"Droid\"  2", "Zoo                [\"x\"]"])
      let csv = try tool.succeed(
        "query", "db", text, "--param", "t=hotel", "--param", "from=A", "--format", "csv"
      ).output
      expect(csv, equals: "name,n,tags\r\n\"Apple, \"\"Droid\"\"\",2,\r\nZoo,,\"[\"\"x\"\"]\"\r\n")
      try expect(
        tool.succeed("query", "db", text, "--param", "t=hotel", "--param=from=\"\"", "--json").output,
        equals: rows)
      try expect(tool("query", "db", text, "--json", "--format", "csv").status, equals: 2)
      // A row of one empty field isn't an empty line, which readers skip.
      let one = try tool.succeed(
        "query", "db", "SELECT n FROM db WHERE type = $t ORDER BY name", "--param", "t=hotel", "--format",
        "csv"
      ).output
      expect(one, equals: "n\r\n2\r\n\"\"\r\n")
      try expect(!tool.succeed("query", "db", "SELECT n FROM _", "--explain").output.isEmpty)
    }
  }

  @Test func aStatementChangesDocumentsAndADryRunDoesNot() throws {
    try TestEngine.lmdb.withDatabase { tool in
      try fill(tool)
      let text = "UPDATE _ SET n = 9 WHERE type = 'hotel' RETURNING META().id, n"
      let dry = try tool("query", "db", "DELETE FROM _ WHERE type = 'hotel'", "--dry-run")
      expect(dry.status == 0 && dry.output == "deleted a\ndeleted b\n", "\(dry.output)\(dry.errors)")
      expect(dry.errors.contains("would change 2 documents"), "\(dry.errors)")
      let changed = try tool("query", "db", text)
      expect(changed.output, equals: #"{"id":"a","n":9}"# + "\n" + #"{"id":"b","n":9}"# + "\n")
      expect(changed.errors.contains("changed 2 documents"), "\(changed.errors)")
      let refused = try tool("query", "db", text, "--read-only")
      expect(refused.status != 0)
      try expect(tool.succeed("query", "db", "SELECT RAW COUNT(*) FROM _ WHERE n = 9").output, equals: "2\n")
      let csv = try tool.succeed("query", "db", "SELECT RAW n FROM _ ORDER BY META().id", "--format", "csv")
        .output
      expect(csv, equals: "n\r\n9\r\n9\r\n3\r\n")
    }
  }

  @Test func statementsAreRunOneAfterTheOther() throws {
    try TestEngine.lmdb.withDatabase { tool in
      try fill(tool)
      let text = "PREPARE p AS SELECT RAW n FROM _ WHERE n > ?; -- a; b\nEXECUTE p USING [2]; SELECT RAW ';';"
      try expect(tool.succeed("query", "db", text).lines, equals: [#"{"name":"p"}"#, "3", #"";""#])
      let mixed = "UPDATE _ SET m = 1 WHERE n = 2; SELECT RAW COUNT(*) FROM _ WHERE m = 1"
      try expect(tool.succeed("query", "db", mixed).output, equals: "1\n")
      // The first one that fails ends it.
      let failing = try tool("query", "db", "SELECT RAW 1; SELEC 2; DELETE FROM _")
      expect(failing.status != 0 && failing.output == "1\n", "\(failing.output)\(failing.errors)")
      try expect(tool.succeed("query", "db", "SELECT RAW COUNT(*) FROM _").output, equals: "3\n")
      // A name ends with the process.
      try expect(tool("query", "db", "EXECUTE p").status != 0)
    }
  }

  @Test func indexesAreMadeAndQueriesAreReadAsJSON() throws {
    try TestEngine.lmdb.withDatabase { tool in
      try fill(tool)
      let made = try tool("query", "db", "CREATE INDEX byType ON db (type)")
      expect(made.status == 0 && made.errors.contains("created: index byType"), "\(made.errors)")
      let json =
        #"["SELECT", {"WHAT": [["._id"]], "WHERE": ["=", [".type"], "hotel"], "ORDER_BY": [["._id"]]}]"#
      try expect(!tool.succeed("query", "db", json, "--explain").output.isEmpty)
      try expect(
        tool.succeed("query", "db", json).output, equals: #"{"id":"a"}"# + "\n" + #"{"id":"b"}"# + "\n")
      try expect(tool("query", "db", "DROP INDEX byType ON _", "--read-only").status != 0)
      try expect(tool("query", "db", "DROP INDEX byType ON _").errors.contains("dropped: index byType"))
    }
  }

  @Test func aQueryIsReadFromStandardInputAndRowsArePrintedLineByLine() throws {
    try TestEngine.sqlite.withDatabase { tool in
      try fill(tool)
      let text = "SELECT name, n, tags\nFROM _ -- all hotels\nWHERE type = $t ORDER BY name;\n"
      let lines = try tool.succeed(
        "query", "db", "-", "--param", "t=hotel", "--format", "line", input: text
      ).output
      expect(lines, equals: "name = Apple, \"Droid\"\n   n = 2\n\nname = Zoo\ntags = [\"x\"]\n")
      let mistake = try tool("query", "db", "-", input: "SELECT n\nFRM _")
      expect(mistake.status == 2 && mistake.errors.contains("line 2, column "), "\(mistake.errors)")
      let empty = try tool("query", "db", "-", input: " \n")
      expect(empty.status, equals: 2)
      expect(empty.errors, equals: "touchstone query: the query is missing: standard input is empty\n")
    }
  }

  @Test(arguments: TestEngine.some) func limitsOfRowsAndTimeEndAQueryWithStatus2(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      try fill(tool)
      let text = "SELECT n FROM db WHERE n > 0 ORDER BY n"
      let all = try tool.succeed("query", "db", text, "--row-limit", "2", "--time-limit", "60").lines
      expect(all, equals: [#"{"n":2}"#, #"{"n":3}"#])
      let rows = try tool("query", "db", text, "--row-limit=1")
      expect(rows.status == 2 && rows.output == #"{"n":2}"# + "\n")
      expect(rows.errors.contains("row limit of 1;"))
      let table = try tool("query", "db", text, "--row-limit=1", "--format", "table")
      expect(table.status == 2 && table.output == "")
      let time = try tool("query", "db", text, "--time-limit", "0")
      expect(time.status == 2 && time.errors.contains("time limit of 0"))
      try expect(tool("query", "db", text, "--row-limit", "-1").status, equals: 2)
      try expect(tool("query", "db", text, "--time-limit", "soon").status, equals: 2)
    }
  }

  @Test func mistakesAreStatus2AndTellTheirPlace() throws {
    try TestEngine.sqlite.withDatabase { tool in
      let result = try tool("query", "db", "SELECT n FRM _")
      expect(result.status, equals: 2)
      expect(result.errors.contains("line 1, column 14"))
      expect(result.errors.contains("\n  SELECT n FRM _\n               ^"))
      let unset = try tool("query", "db", "SELECT n FROM _ WHERE n = $who")
      expect(unset.status, equals: 2)
      expect(unset.errors.contains("who"))
      try expect(tool("query", "db", "SELECT 1", "--param", "x").status, equals: 2)
      try expect(tool("query", "db", "SELECT 1", "--format", "xml").status, equals: 2)
    }
  }
}
