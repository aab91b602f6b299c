import TestSupport

@testable import touchstone

/// How the command is called, and what it says when it is called wrongly.
@Suite struct UsageTests {
  @Test func everyCommandHasHelpWithAnExample() throws {
    try Tool.run { tool in
      let overview = try tool.succeed("--help")
      expect(overview.lines.allSatisfy { $0.count <= 80 }, "\(overview.output)")
      for command in Subcommands.all {
        let words = command.usage.name.split(separator: " ").map(String.init)
        expect(
          overview.lines.contains {
            $0 == "  \(command.usage.name)" || $0.hasPrefix("  \(command.usage.name) ")
          })
        let help = try tool.run(Tool.executable, words + ["--help"])
        expect(help.status, equals: 0)
        expect(help.errors, equals: "")
        let example = try #require(help.output.range(of: "\nExample:\n"))
        expect(help.output[example.upperBound...].contains("touchstone \(command.usage.name)"))
        for option in command.usage.options { expect(help.output.contains("--\(option.name)")) }
        expect(help.lines.allSatisfy { $0.count <= 80 }, "\(help.output)")
        try expect(tool.run(Tool.executable, ["help"] + words).output, equals: help.output)
      }
    }
  }

  @Test(arguments: [
    (["frobnicate"], "touchstone: there is no command 'frobnicate'; touchstone --help lists all commands"),
    (["impotr"], "touchstone: there is no command 'impotr' (did you mean import?); touchstone --help"),
    (["sql"], "touchstone: there is no command 'sql'; it is called query"),
    (
      ["get", "--jsno", "db", "id"], "touchstone get: there is no option '--jsno' (did you mean --json?); put"
    ),
    (
      ["bench", "travell"], "touchstone bench: there is no suite 'travell' (did you mean travel?); known are"
    ),
    (
      ["gate", "travell", "--store", "s"],
      "touchstone gate: there is no suite 'travell' (did you mean travel?)"
    ),
    (
      ["bench", "--only", "raed"],
      "touchstone bench: there is no workload 'raed' in travel (did you mean read?)"
    ),
    (["key"], "touchstone: 'key' isn't a complete command; commands are: key show"),
    (["get", "--frob", "db", "id"], "touchstone get: there is no option '--frob'"),
    (["get", "-j", "db", "id"], "touchstone get: there is no option '-j'"),
    (
      ["get", "db", "-rSvBcUzkbsB9gO"],
      "touchstone get: there is no option '-rSvBcUzkbsB9gO'; put -- before a name that begins with -"
    ),
    (["get", "db"], "touchstone get: ID is missing"),
    (["rm", "db", "id", "other"], "touchstone rm: unexpected argument 'other'"),
    (["get", "db", "id", "--rev"], "touchstone get: --rev needs a value (REV)"),
    (["get", "db", "id", "--json=yes"], "touchstone get: --json takes no value"),
    (["get", "db", "id", "--rev", "x"], "touchstone get: --rev: 'x' isn't a revision ID"),
    (["changes", "db", "--since", "-1"], "touchstone changes: --since: '-1' is not an integer from 0 up"),
    (
      ["import", "db", "f", "--batch=0"], "touchstone import: --batch: '0' is not an integer from 1 to 100000"
    ),
    (
      ["create", "db", "--engine", "oracle"],
      "touchstone create: there is no engine \"oracle\"; known are"
    ),
  ]) func wrongUsageIsOneLineAndStatus2(arguments: [String], message: String) throws {
    try Tool.run { tool in
      let result = try tool.run(Tool.executable, arguments)
      expect(result.status, equals: 2)
      expect(result.output, equals: "")
      expect(result.errors.hasPrefix(message))
      expect(result.errors.filter(\.isNewline).count, equals: 1)
    }
  }

  @Test func helpIsFoundByWhatIsNearlyItsCommand() throws {
    try Tool.run { tool in
      let overview = try tool.succeed("--help").output
      try expect(tool.succeed("help", "help").output, equals: overview)
      try expect(tool.succeed("help", "--help").output, equals: overview)
      let keys = try tool.succeed("key", "show", "--help").output
      try expect(tool.succeed("key", "--help").output, equals: keys)
      try expect(tool.succeed("help", "key").output, equals: keys)
      try tool.succeed("create", "travel")
      let database = try tool("travel")
      expect(database.status, equals: 2)
      expect(database.errors.contains("'touchstone shell travel' opens it"), "\(database.errors)")
    }
  }

  @Test func everyExampleOfTheHelpIsACallThatTheCommandTakes() throws {
    for command in Subcommands.all {
      for example in command.usage.examples {
        var names: [String] = []
        for call in example.components(separatedBy: " | ") where call.hasPrefix("touchstone ") {
          // Without what the shell does with files.
          let words = try ShellCommands.split(call).prefix { $0 != ">" && $0 != "<" }.dropFirst()
          let found = try Subcommands.find(words)
          names.append(found.usage.name)
          do {
            _ = try Arguments(words.dropFirst(found.usage.words.count), usage: found.usage)
          } catch { expect(Bool(false), "\(example): \(error)") }
        }
        expect(names.contains(command.usage.name), "\(example)")
      }
    }
  }

  @Test func theVersionTellsTheLibrariesOfTheEngines() throws {
    try Tool.run { tool in
      let text = try tool.succeed("version").output
      expect(text.hasPrefix("touchstone \(touchstoneVersion)"), "\(text)")
      let json = try tool.succeed("version", "--json").json()
      expect(json["version"] as? String, equals: touchstoneVersion)
      let libraries = try #require(json["libraries"] as? [String: String])
      for (engine, name) in [("sqlite", "SQLite "), ("lmdb", "LMDB "), ("sqlcipher", "SQLCipher ")] {
        expect(libraries[engine]?.hasPrefix(name) ?? false, "\(libraries)")
      }
    }
  }

  @Test func onATerminalErrorsAreColouredUnlessNO_COLORIsSet() throws {
    try Tool.run { tool in
      let coloured = try PseudoTerminal(tool, "frobnicate")
      try expect(coloured.end(), equals: 2)
      expect(coloured.raw.hasPrefix("\u{1B}[1;31mtouchstone:\u{1B}[m there is no command"), "\(coloured.raw)")
      var tool = tool
      for plain in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
        tool.environment = plain
        let terminal = try PseudoTerminal(tool, "frobnicate")
        try expect(terminal.end(), equals: 2)
        expect(terminal.raw.hasPrefix("touchstone: there is no command"), "\(terminal.raw)")
      }
    }
  }

  @Test func withoutACommandTheHelpGoesToStandardError() throws {
    try Tool.run { tool in
      let result = try tool()
      expect(result.status, equals: 2)
      expect(result.output, equals: "")
      expect(result.errors.contains("Usage: touchstone [--log LEVELS] COMMAND"))
    }
  }

  @Test func theLogGoesToStandardErrorWithTheLevelsOfTheOption() throws {
    try Tool.run { tool in
      try expect(tool("create", "db").status, equals: 0)
      let silent = try tool("info", "db")
      expect(silent.status == 0 && silent.errors == "")
      let logged = try tool(
        "--log", "none verbose:query info:database", "query", "db", "SELECT COUNT(*) FROM _")
      let plain = try tool("query", "db", "SELECT COUNT(*) FROM _")
      expect(logged.status == 0 && logged.output == plain.output)
      expect(logged.errors.contains(" info database ") && logged.errors.contains("opened: sqlite"))
      expect(logged.errors.contains(" verbose query ") && logged.errors.contains(": SELECT COUNT(*) FROM _"))
      for arguments in [["--log"], ["--log", "loud", "info", "db"]] {
        let refused = try tool.run(Tool.executable, arguments)
        expect(refused.status == 2 && refused.errors.hasPrefix("touchstone: --log needs levels"))
      }
    }
  }

  @Test func aDatabaseThatIsNotThereIsStatus3() throws {
    try Tool.run { tool in
      for arguments in [["info", "db"], ["get", "db", "id"], ["delete", "db"], ["import", "db", "-"]] {
        let result = try tool.run(Tool.executable, arguments)
        expect(result.status, equals: 3, "\(arguments)")
        expect(result.errors.contains(tool.directory + "/db.touchstone"))
        expect(result.errors.filter(\.isNewline).count, equals: 1)
      }
      expect(!FileManager.default.fileExists(atPath: tool.path("db.touchstone")))
      try FileManager.default.createDirectory(
        atPath: tool.path("old.cblite2"), withIntermediateDirectories: false)
      for arguments in [
        ["info", "old.cblite2"], ["verify", "old.cblite2", "db"], ["check", "old.cblite2/"],
      ] {
        let result = try tool.run(Tool.executable, arguments)
        expect(result.status, equals: 3, "\(arguments)")
        expect(
          result.errors.contains("there is one of Couchbase Lite: 'touchstone upgrade' makes"),
          "\(result.errors)")
      }
    }
  }
}

/// The parser, without a process.
@Suite struct ArgumentsTests {
  private static let flag = Flag("flag", "")
  private static let text = Option("text", "TEXT", "")
  private static let number = Option("number", "N", in: 1...9, "")
  private static let first = Positional("FIRST", "")
  private static let second = Positional("SECOND", "", count: .optional)
  private static let rest = Positional("REST", "", count: .any)

  private func parse(_ words: String...) throws -> Arguments {
    try Arguments(
      words,
      usage: Usage(
        "test", "", positionals: [Self.first, Self.second, Self.rest],
        options: [Self.flag, Self.text, Self.number], examples: []))
  }

  @Test func optionsMayStandAnywhereAndHaveTheirValueAfterABlankOrAnEqualsSign() throws {
    for arguments in [
      try parse("a", "--flag", "--text", "x=y", "b", "--number=3"),
      try parse("--number", "3", "--text=x=y", "--flag", "a", "b"),
    ] {
      expect(arguments[Self.flag])
      try expect(arguments.value(Self.text), equals: "x=y")
      try expect(arguments.value(Self.number), equals: 3)
      try expect(arguments.required(Self.first), equals: "a")
      expect(arguments.optional(Self.second), equals: "b")
      expect(arguments.all(Self.rest), equals: [])
    }
  }

  @Test func whatIsNotGivenIsNil() throws {
    let arguments = try parse("a")
    expect(!arguments[Self.flag])
    try expect(arguments.value(Self.text) == nil)
    expect(arguments.optional(Self.second) == nil)
  }

  @Test func twoDashesEndTheOptionsAndOneIsAPositional() throws {
    let arguments = try parse("-", "--", "--flag", "-x", "y")
    try expect(arguments.required(Self.first), equals: "-")
    expect(arguments.optional(Self.second), equals: "--flag")
    expect(arguments.all(Self.rest), equals: ["-x", "y"])
    expect(!arguments[Self.flag])
  }

  @Test func ofAnOptionGivenTwiceTheLastValueCountsOrAllDo() throws {
    let arguments = try parse("a", "--text", "x", "--text", "y")
    try expect(arguments.value(Self.text), equals: "y")
    try expect(arguments.allValues(Self.text), equals: ["x", "y"])
  }

  @Test func badValuesAreRefusedWhileParsing() {
    #expect(throws: UsageError.self) { try parse("a", "--number", "10") }
    #expect(throws: UsageError.self) { try parse("a", "--text", "") }
    #expect(throws: UsageError.self) { try parse() }
  }
}

@Suite struct TextTests {
  @Test func tablesAlignTheirColumns() {
    var table = TextTable([("NAME", .left), ("COUNT", .right)])
    table.add("a", "1,000")
    table.add("longer", "1")
    expect(table.lines, equals: ["NAME    COUNT", "a       1,000", "longer      1"])
  }

  @Test func aLongCellDoesNotMakeOtherRowsLong() {
    var table = TextTable([("NAME", .left), ("COUNT", .right), ("", .left), ("NOTE", .left)])
    let name = String(repeating: "n", count: 100_000)
    table.add(name, "1", "", "")
    table.add("a", "10", "", "")
    let blanks = String(repeating: " ", count: 199)
    expect(
      table.lines,
      equals: ["NAME" + blanks.dropLast(3) + "  COUNT  NOTE", name + "      1", "a" + blanks + "     10"])
  }

  @Test func longExamplesGoOnInTheNextLineAsAShellReadsThem() {
    let usage = Usage(
      "x", "Does", examples: ["touchstone x --one 'a b c' " + String(repeating: "w", count: 50) + " --two 2"],
      notes: "One\nparagraph.\n\nTwo.")
    let help = usage.help
    expect(
      help.hasSuffix(
        "\nExample:\n  touchstone x --one 'a b c' \\\n    \(String(repeating: "w", count: 50)) --two 2\n"),
      "\(help)")
    expect(help.contains("\n\nOne paragraph.\n\nTwo.\n"), "\(help)")
  }

  @Test func longHelpIsBrokenAtBlanks() {
    expect(Usage.wrapped("one two three four", to: 9), equals: ["one two", "three", "four"])
    expect(Usage.wrapped("incomprehensibilities", to: 9), equals: ["incomprehensibilities"])
    expect(Usage.wrapped("", to: 9), equals: [""])
  }

  @Test func thousandsAreSetApart() {
    let numbers = [0, 999, 1_000, 31_591, 1_000_000, -1_234]
    expect(
      numbers.map { TextTable.grouped($0) }, equals: ["0", "999", "1,000", "31,591", "1,000,000", "-1,234"])
  }

  @Test func jsonObjectsKeepTheirOrderAndEscapeTheirStrings() throws {
    let object: JSONObjectText = ["b": "\"\\\n\t\r\u{1}\u{7F}ö\u{1F600}", "a": 1, "c": true]
    expect(
      object.jsonText, equals: "{\"b\":\"\\\"\\\\\\n\\t\\r\\u0001\\u007fö\u{1F600}\",\"a\":1,\"c\":true}")
    let parsed = try JSONSerialization.jsonObject(with: Data(object.jsonText.utf8)) as? [String: Any]
    expect(parsed?["b"] as? String, equals: "\"\\\n\t\r\u{1}\u{7F}ö\u{1F600}")
  }
}
