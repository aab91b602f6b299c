import TestSupport

@testable import touchstone

/// `touchstone shell` at a terminal, from a pipe and from files.
@Suite struct ShellCommandTests {
  private func withDatabase(_ body: (Tool) throws -> Void) throws {
    try TestEngine.sqlite.withDatabase { tool in
      let documents = (1...30).map { number in
        #"{"_id":"hotel_\#(number)","type":"hotel","name":"Hotel \#(number)","geo":{"lat":\#(number),"lon":1.5}}"#
      }
      _ = try tool.succeed(
        "import", "db", "-",
        input: (documents + [#"{"_id":"x","type":"route","stops":null}"#]).joined(separator: "\n"))
      try body(tool)
    }
  }

  // MARK: At a terminal

  @Test func aPersonTypesQueriesOverSeveralLinesAndEndsWithCtrlD() throws {
    try withDatabase { tool in
      let shell = try PseudoTerminal(tool, "shell", "db")
      try shell.wait(for: "31 documents\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT name, geo.lat AS lat\n")
      try shell.wait(for: "...> ")
      shell.type("FROM _ WHERE geo.lat = 7;\n")
      try shell.wait(for: "name     lat\nHotel 7  7\n")
      try shell.wait(for: "db> ")
      shell.type("\u{4}")
      try expect(shell.end(), equals: 0)
    }
  }

  @Test func tabCompletesWordsFunctionsPropertiesAndCommands() throws {
    try withDatabase { tool in
      let shell = try PseudoTerminal(tool, "shell", "db")
      try shell.wait(for: "db> ")
      // SELECT, geo.lat, FROM, WHERE
      shell.type("sel\tgeo.la\t AS a fr\t_ wher\tty\t = 'hotel' AND geo.lat < 2;\n")
      try shell.wait(for: "a\n1\n")
      // The choices, when there are several.
      shell.type("SELECT geo.l\t")
      try shell.wait(for: "geo.lat  geo.lon\n")
      shell.type("on AS west FROM _ h WHERE UPPE\th.ty\t) = 'HOTEL' LIMIT 1;\n")
      try shell.wait(for: "west\n1.5\n")
      shell.type(".mo\tcs\t\n.ti\ton\nSELECT COUN\t(*) AS n FROM _;\n")
      try shell.wait(for: "n\n31\n1 row, ")
      shell.type(".qu\t\n")
      try expect(shell.end(), equals: 0)
    }
  }

  @Test func ctrlCStopsAQueryAndNotTheShell() throws {
    try withDatabase { tool in
      let shell = try PseudoTerminal(tool, "shell", "db", "--format", "json")
      try shell.wait(for: "db> ")
      // 30 to the eighth power of rows. The first ones are shown before the query is stopped.
      let sources = (1...8).map { "_ s\($0)" }
      let joined = sources.dropFirst().reduce("FROM " + sources[0]) { "\($0) JOIN \($1) ON 1 = 1" }
      shell.type("SELECT 'endless' AS row \(joined);\n")
      try shell.wait(for: #"{"row":"endless"}"#)
      shell.type("\u{3}")
      try shell.wait(for: "\nstopped: ")
      try shell.wait(for: "db> ")
      // Nothing is shown of a table that has no row yet. Each line waits for its prompt: Ctrl-C drops what was typed ahead.
      shell.type(".mode table\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT COUNT(*) AS endless \(joined);\n")
      try shell.wait(for: ";\n")
      shell.type("\u{3}")
      try shell.wait(for: "\nstopped: 0 rows were printed\n")
      expect(!shell.text.contains("\nendless\n"), "\(shell.text.suffix(500))")
      try shell.wait(for: "db> ")
      shell.type(".mode json\n")
      try shell.wait(for: "db> ")
      // A line that was begun is given up.
      shell.type("SELECT nonsense\u{3}")
      try shell.wait(for: "^C\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT COUNT(*) AS n FROM _;\n")
      try shell.wait(for: "{\"n\":31}\n")
      shell.type(".quit\n")
      try expect(shell.end(), equals: 0)
    }
  }

  @Test func ctrlCEndsAScriptAndWhatIsTypedMayBeAnyText() throws {
    try withDatabase { tool in
      let sources = (1...8).map { "_ s\($0)" }
      let joined = sources.dropFirst().reduce("FROM " + sources[0]) { "\($0) JOIN \($1) ON 1 = 1" }
      try tool.write("SELECT 'endless' AS row \(joined);\nSELECT 'after' AS row;\n", to: "endless.n1ql")
      var tool = tool
      tool.environment = ["LC_ALL": "C"]
      let shell = try PseudoTerminal(tool, "shell", "db", "--format", "json")
      try shell.wait(for: "db> ")
      shell.type(".read endless.n1ql\n")
      try shell.wait(for: #"{"row":"endless"}"#)
      shell.type("\u{3}")
      try shell.wait(for: "stopped: ")
      try shell.wait(for: "db> ")
      shell.type("SELECT LENGTH('äß€😀') AS n;\n")
      try shell.wait(for: "{\"n\":4}\n")
      shell.type(".quit\n")
      try expect(shell.end(), equals: 0)
      expect(!shell.text.contains("after"), "\(shell.text.suffix(500))")

      let script = try Child(tool, Tool.executable, ["shell", "db", "-f", "endless.n1ql"])
      try script.wait { script.output.contains("endless") }
      script.kill(SIGINT)
      let result = try script.wait()
      expect(result.status, equals: 130)
      expect(result.errors.hasPrefix("touchstone shell: stopped: "), "\(result.errors)")
      expect(!result.output.contains("after"))
    }
  }

  @Test func mistakesAreShownWithTheirPlaceAndTheShellGoesOn() throws {
    try withDatabase { tool in
      let shell = try PseudoTerminal(tool, "shell", "db")
      try shell.wait(for: "db> ")
      shell.type("SELECT n FRM _;\n")
      try shell.wait(for: "line 1, column 14: ")
      try shell.wait(for: "\n  SELECT n FRM _\n               ^\n")
      shell.type(".tiemr on\n")
      try shell.wait(for: "there is no command .tiemr (did you mean timer?); .help lists all commands\n")
      shell.type(".tables\n")
      try shell.wait(
        for: "no command .tables; a database has documents and no tables; .schema shows their properties\n")
      shell.type("help\n")
      try shell.wait(for: ".help [COMMAND]")
      shell.type(".read nothing.n1ql\n")
      try shell.wait(for: "can't open nothing.n1ql: No such file or directory\n")
      shell.type("exit;\n")
      try expect(shell.end(), equals: 0)
    }
  }

  @Test func theHistoryComesBackInTheNextShellAndOnlyItsOwnerReadsIt() throws {
    try withDatabase { tool in
      let first = try PseudoTerminal(tool, "shell", "db")
      try first.wait(for: "db> ")
      first.type("SELECT COUNT(*)\nAS n FROM _;\n")
      try first.wait(for: "n\n31\ndb> ")
      // At the prompt: before it, the terminal itself would take the key.
      first.type("\u{4}")
      try expect(first.end(), equals: 0)
      var status = stat()
      expect(stat(tool.path("state/touchstone/history"), &status), equals: 0)
      expect(status.st_mode & 0o777, equals: 0o600)
      try expect(tool.read("state/touchstone/history"), equals: "SELECT COUNT(*)\\nAS n FROM _;\n")

      let second = try PseudoTerminal(tool, "shell", "db", "--format", "json")
      try second.wait(for: "db> ")
      // Up, and Enter. Both lines come back.
      second.type("\u{1B}[A\n")
      try second.wait(for: "{\"n\":31}\ndb> ")
      second.type("\u{4}")
      try expect(second.end(), equals: 0)

      let third = try PseudoTerminal(tool, "shell", "db", "--no-history")
      try third.wait(for: "db> ")
      third.type("SELECT 1 AS one;\n")
      try third.wait(for: "one\n1\ndb> ")
      third.type("\u{4}")
      try expect(third.end(), equals: 0)
      try expect(!tool.read("state/touchstone/history").contains("SELECT 1"))
    }
  }

  // MARK: Scripts

  @Test func aScriptFromAPipeRunsItsStatements() throws {
    try withDatabase { tool in
      let script = """
        -- Comments, and a semicolon in a string.
        SELECT COUNT(*) AS n FROM _; SELECT ';' AS s;
        .mode csv
        SELECT name, geo.lat
          FROM _ /* all; */ WHERE geo.lat > 29;
        .mode line
        .param t=route
        SELECT type, META().id FROM _ WHERE type = $t
        """
      let result = try tool.succeed("shell", "db", input: script)
      expect(
        result.output,
        equals: "{\"n\":31}\n{\"s\":\";\"}\nname,lat\r\nHotel 30,30\r\ntype = route\n  id = x\n")
      expect(result.errors, equals: "")
    }
  }

  @Test func valuesOfParametersKeepTheirBlanksAndQuotes() throws {
    try withDatabase { tool in
      let script = """
        .param ids=["d1", "d  2"]
        .param  o = {"a": "x"}
        .param text=two  'blanks'  \u{20}
        .param quoted="two  blanks"
        .param
        SELECT $ids AS a, $text AS b, $quoted AS c;
        .param clear
        .param
        """
      let result = try tool.succeed("shell", "db", input: script)
      expect(
        result.output,
        equals: #"""
          $ids = ["d1","d  2"]
          $o  = {"a":"x"}
          $quoted = "two  blanks"
          $text = "two  'blanks'"
          {"a":["d1","d  2"],"b":"two  'blanks'","c":"two  blanks"}

          """#)
    }
  }

  @Test func rowsGoToAFileUntilTheyDoNot() throws {
    try withDatabase { tool in
      try tool.write("SELECT 5 AS read;\nSELECT 6 AS read;\n", to: "read.n1ql")
      let script = """
        .once "one file.json"
        SELECT 1 AS once;
        SELECT 2 AS here;
        .output all.csv
        .mode csv
        SELECT 3 AS there;
        .engine
        .once inner.csv
        SELECT 4 AS four;
        SELECT 7 AS after;
        .output again.csv
        SELECT 8 AS again;
        .output
        .once read.csv
        .read read.n1ql
        """
      try expect(
        tool.succeed("shell", "db", input: script).output, equals: "{\"here\":2}\nafter\r\n7\r\nread\r\n6\r\n"
      )
      try expect(tool.read("one file.json"), equals: "{\"once\":1}\n")
      let all = try tool.read("all.csv")
      expect(all.hasPrefix("there\r\n3\r\nsqlite (SQLite ") && all.hasSuffix(")\n"), "\(all)")
      try expect(tool.read("inner.csv"), equals: "four\r\n4\r\n")
      try expect(tool.read("again.csv"), equals: "again\r\n8\r\n")
      try expect(tool.read("read.csv"), equals: "read\r\n5\r\n")
      for (line, reason) in [
        (".output nothing/x", "nothing/x: can't be written: No such file or directory"),
        (".once", ".once needs the name of one file"), (".output a b", ".output needs the name of one file"),
        (".once | less", ".once takes no program; "), (".output |less", ".output takes no program; "),
      ] {
        let result = try tool("shell", "db", input: line + "\nSELECT 1 AS one;\n")
        expect(result.status == 2 && result.output == "", "\(line): \(result.status) \(result.output)")
        expect(result.errors.contains(reason), "\(line): \(result.errors)")
      }
    }
  }

  @Test func aFileThatCannotBeWrittenDoesNotEndTheShell() throws {
    try withDatabase { tool in
      let shell = try PseudoTerminal(tool, "shell", "db", "--format", "table")
      try shell.wait(for: "db> ")
      shell.type(".output /dev/full\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT 1 AS one;\n")
      try shell.wait(for: "error: /dev/full: can't be written: No space left on device\ndb> ")
      shell.type(".once rows.txt\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT 2 AS two;\n")
      try shell.wait(for: "db> ")
      shell.type("SELECT 3 AS three;\n")
      // At the prompt: before it, the terminal itself would take the key.
      try shell.wait(for: "three\n3\ndb> ")
      shell.type("\u{4}")
      try expect(shell.end(), equals: 0)
      // Without what a terminal shows in bold.
      try expect(tool.read("rows.txt"), equals: "two\n2\n")
    }
  }

  @Test func aScriptMayBeginWithTheMarkOfWindows() throws {
    try withDatabase { tool in
      try expect(
        tool.succeed("shell", "db", input: "\u{FEFF}SELECT 1 AS one;\r\n.mode csv\r\nSELECT 2 AS two;")
          .output,
        equals: "{\"one\":1}\ntwo\r\n2\r\n")
    }
  }

  @Test func aScriptStopsAtItsFirstErrorWithItsPlaceAndStatus() throws {
    try withDatabase { tool in
      try tool.write(
        "SELECT 1 AS a;\n\nSELECT 2 AS b; SELECT\n  c FRM _;\nSELECT 3 AS d;\n", to: "script.n1ql")
      let stopped = try tool("shell", "db", "-f", "script.n1ql")
      expect(stopped.status, equals: 2)
      expect(stopped.output, equals: "{\"a\":1}\n{\"b\":2}\n")
      expect(stopped.errors.hasPrefix("touchstone shell: script.n1ql:4:9: "), "\(stopped.errors)")
      expect(stopped.errors.hasSuffix("\n    c FRM _\n          ^\n"), "\(stopped.errors)")

      let gone = try tool("shell", "db", "--file", "script.n1ql", "--keep-going")
      expect(gone.status, equals: 2)
      expect(gone.output, equals: "{\"a\":1}\n{\"b\":2}\n{\"d\":3}\n")
      expect(gone.errors.hasSuffix("touchstone shell: 1 statement failed\n"), "\(gone.errors)")

      try tool.write(".mode line\n.read script.n1ql\n", to: "outer.n1ql")
      let outer = try tool("shell", "db", "-f", "outer.n1ql")
      expect(outer.status == 2 && outer.output == "a = 1\nb = 2\n")
      expect(outer.errors.hasPrefix("touchstone shell: script.n1ql:4:9: "), "\(outer.errors)")

      try tool.write(".read loop.n1ql\n", to: "loop.n1ql")
      let loop = try tool("shell", "db", "-f", "loop.n1ql")
      expect(loop.status == 2 && loop.errors.contains("does loop.n1ql read itself?"), "\(loop.errors)")
      let limited = try tool("shell", "db", "--row-limit", "1", input: "SELECT name FROM _;")
      expect(limited.status, equals: 2)
      expect(limited.errors.hasPrefix("touchstone shell: standard input:1: "), "\(limited.errors)")
      try expect(tool("shell", "db", "-f", "nothing").status, equals: 2)
      try expect(tool("shell", "nothing").status, equals: 3)
    }
  }

  @Test func theCommandsShowIndexesInfoPlansAndTheSampledSchema() throws {
    try withDatabase { tool in
      try tool.succeed("index", "db", "create", "byType", "type")
      let shown = try tool.succeed(
        "shell", "db", "--format", "table", input: ".schema geo\n.indexes\n.engine\n"
      ).lines
      expect(
        shown.dropLast(),
        equals: [
          "property  documents  types", "geo            97 %  object", "geo.lat        97 %  number",
          "geo.lon        97 %  number", "index   kind   on", "byType  value  type",
        ])
      expect(shown.last?.hasPrefix("sqlite (SQLite ") ?? false, "\(shown)")
      let info = try tool.succeed("shell", "db", input: ".info\n").json()
      expect(info["documents"] as? Int, equals: 31)
      let plan = try tool.succeed(
        "shell", "db", input: ".explain on\nSELECT COUNT(*) AS n FROM _ WHERE type = 'route';\n")
      expect(plan.output.contains("byType") && plan.output.hasSuffix("\n\n{\"n\":1}\n"), "\(plan.output)")
      let help = try tool.succeed("shell", "db", input: ".help\n").output
      for word in [
        ".schema", ".indexes", ".timer on|off", ".mode table|json|csv|line", ".quit", ".read FILE",
      ] {
        expect(help.contains("\n\(word) ") || help.hasPrefix(word), "\(word)")
      }
    }
  }
}

@Suite struct StatementReaderTests {
  private func read(_ lines: String...) -> (statements: [String], isInside: Bool) {
    var reader = StatementReader()
    let statements = lines.flatMap { reader.add($0) }.map { "\($0.line):\($0.column) \($0.text)" }
    return (statements, reader.isInside)
  }

  @Test func statementsEndAtSemicolonsOutsideOfStringsNamesAndComments() {
    let (statements, isInside) = read(
      "  SELECT ';' AS a, \"it;s\", `b;c` FROM _; SELECT 'it''s;' -- not; here", "/* nor; here */ ;;",
      "; /* a;", "b */ .x", ".mode csv")
    expect(
      statements,
      equals: [
        "1:2 SELECT ';' AS a, \"it;s\", `b;c` FROM _",
        "1:41 SELECT 'it''s;' -- not; here\n/* nor; here */",
      ])
    expect(isInside)
  }

  @Test func aDotBeginsACommandOnlyWhereNoQueryHasBegun() {
    let (statements, isInside) = read(".mode csv", "SELECT", ".5;", " ", "-- a comment", ".quit")
    expect(statements, equals: ["1:0 .mode csv", "2:0 SELECT\n.5", "6:0 .quit"])
    expect(!isInside)
  }

  @Test func whatIsLeftAtTheEndIsAStatementToo() {
    var reader = StatementReader()
    expect(reader.add("SELECT 1  ").isEmpty)
    expect(reader.end()?.text, equals: "SELECT 1")
    expect(reader.end() == nil)
    // What a comment without an end hides isn't dropped in silence: no parser takes it.
    expect(reader.add(" /* SELECT 2;").isEmpty)
    expect(reader.add("SELECT 3;").isEmpty)
    expect(reader.isInside)
    expect(reader.end(), equals: ShellStatement(kind: .query, text: "/*", line: 2, column: 1))
    expect(reader.end() == nil)
  }

  @Test func historyLinesAreReadBackAsTheyWere() {
    for text in ["SELECT 1;", "a\nb", "a\\nb", "\\", "ä\\\n"] {
      expect(ShellHistory.unescaped(ShellHistory.escaped(text)), equals: text)
      expect(!ShellHistory.escaped(text).contains("\n"))
    }
  }
}
