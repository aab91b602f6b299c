import TestSupport

@testable import touchstone

/// The commands that purge, expire and compare documents, keep local ones, and look at many at once.
@Suite struct UpkeepCommandTests {
  @Test(arguments: TestEngine.some) func purgeRemovesDocumentsWithoutATraceAllOrNone(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      for id in ["a", "b", "c"] { try tool.succeed("put", "db", id, "{}") }
      let failed = try tool("purge", "db", "a", "nothing")
      expect(failed.status, equals: 1)
      expect(failed.errors.contains("nothing"), "\(failed.errors)")
      try expect(tool.succeed("ls", "db").lines, equals: ["a", "b", "c"])
      try expect(tool.succeed("purge", "db", "a", "b", "a").output, equals: "purged 2 documents\n")
      try expect(tool.succeed("purge", "db", "c", "--json").output, equals: "{\"purged\":1}\n")
      // Two documents, although Swift's strings are equal.
      let twins = ["caf\u{E9}", "cafe\u{301}"]
      for id in twins { try tool.succeed("put", "db", id, "{}") }
      try expect(tool.succeed("purge", "db", twins[0], twins[1]).output, equals: "purged 2 documents\n")
      try expect(tool.succeed("ls", "db", "--include-deleted").lines, equals: [])
      try expect(tool("purge", "db").status, equals: 2)
      try expect(tool("purge", "db", "a", "b", "--rev", "1-a").status, equals: 2)
    }
  }

  @Test(arguments: TestEngine.some) func expirationsAreSetShownListedAndCleared(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      for id in ["a", "b", "c"] { try tool.succeed("put", "db", id, "{}") }
      try expect(tool("expire", "db", "show", "a").status, equals: 1)
      try tool.succeed("expire", "db", "set", "a", "b", "--at", "2100-01-31")
      try tool.succeed("expire", "db", "set", "c", "--at", "2099-12-31T12:00:00.250Z")
      try expect(tool.succeed("expire", "db", "show", "a").output, equals: "2100-01-31T00:00:00.000Z  a\n")
      try expect(
        tool.succeed("expire", "db", "list", "--limit", "2").lines,
        equals: ["2099-12-31T12:00:00.250Z  c", "2100-01-31T00:00:00.000Z  a"])
      try expect(
        tool.succeed("expire", "db", "list", "--json").lines.first,
        equals: #"{"id":"c","expires":"2099-12-31T12:00:00.250Z"}"#)
      try tool.succeed("expire", "db", "clear", "a")
      let cleared = try tool("expire", "db", "show", "a")
      expect(cleared.status, equals: 1)
      expect(cleared.errors, equals: "touchstone expire: the document 'a' doesn't expire\n")
      try expect(tool.succeed("expire", "db", "purge").output, equals: "purged 0 documents\n")
      try tool.succeed("expire", "db", "set", "a", "--after", "30d")
      try expect(tool.succeed("expire", "db", "list").lines.count, equals: 3)
      // Nothing is set if one of the documents isn't there.
      try expect(tool("expire", "db", "set", "b", "nothing", "--after", "0s").status, equals: 1)
      try expect(tool.succeed("ls", "db").lines, equals: ["a", "b", "c"])
      for wrong in [
        ["set", "a"], ["set", "a", "--at", "soon"], ["set", "a", "--at", "2027-02-29"],
        ["set", "a", "--at", "2027-01-31T25:00:00Z"], ["set", "a", "--at", "2027-01-31T12:00:00+99:99"],
        ["set", "a", "--at", "2027-01-31T12:00:00"], ["set", "a", "--after", "5 days"], ["show"], ["x"],
      ] {
        try expect(tool.run(Tool.executable, ["expire", "db"] + wrong).status, equals: 2, "\(wrong)")
      }
    }
  }

  @Test(arguments: TestEngine.some) func localDocumentsAreKeptReplacedAndRemoved(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try expect(
        tool.succeed("local", "db", "put", "settings", #"{"theme":"dark"}"#).output, equals: "1-local\n")
      try expect(
        tool.succeed("local", "db", "put", "settings", "-", "--rev", "1-local", input: #"{"theme":"light"}"#)
          .output,
        equals: "2-local\n")
      try expect(tool("local", "db", "put", "settings", "{}", "--rev", "1-local").status, equals: 1)
      try expect(tool.succeed("local", "db", "get", "settings").output, equals: #"{"theme":"light"}"# + "\n")
      try expect(
        tool.succeed("local", "db", "get", "settings", "--json").output,
        equals: #"{"id":"settings","rev":"2-local","body":{"theme":"light"}}"# + "\n")
      try expect(tool.succeed("local", "db", "list").lines.contains("settings"))
      try tool.succeed("local", "db", "rm", "settings")
      try expect(tool("local", "db", "get", "settings").status, equals: 1)
      try expect(tool("local", "db", "rm", "settings").status, equals: 1)
      for wrong in [["put", "a"], ["put", "a", "[1]"], ["get"], ["get", "a", "b"], ["list", "a"], ["x"]] {
        try expect(tool.run(Tool.executable, ["local", "db"] + wrong).status, equals: 2, "\(wrong)")
      }
    }
  }

  @Test(arguments: TestEngine.some) func conflictsAreListedShownSideBySideAndResolved(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      try conflict(in: tool)
      let listed = try tool.succeed("conflicts", "db").lines
      expect(listed.first, equals: "ID     REVISIONS")
      let words = try #require(listed.last).split(separator: " ").map(String.init)
      expect(words.count == 3 && words[0] == "hotel")
      let (winner, other) = (words[1], words[2])
      try expect(
        tool.succeed("conflicts", "db", "--json").output,
        equals: "{\"id\":\"hotel\",\"revisions\":[\"\(winner)\",\"\(other)\"]}\n")

      let shown = try tool.succeed("conflicts", "db", "hotel").lines
      expect(shown.first?.contains("\(winner) (current)") ?? false, "\(shown)")
      expect(
        shown.contains { $0.hasPrefix("geo.lat ") && $0.contains("51.5") && $0.contains("52") }, "\(shown)")
      expect(!shown.contains { $0.hasPrefix("type") }, "\(shown)")
      expect(shown.last, equals: "1 property is the same")
      let json = try tool.succeed("conflicts", "db", "hotel", "--json").json()
      expect((json["revisions"] as? [[String: Any]])?.map { $0["rev"] as? String }, equals: [winner, other])

      let unknown = try tool("conflicts", "db", "hotel", "--keep", "9-abc")
      expect(unknown.status, equals: 1)
      expect(unknown.errors.contains(winner) && unknown.errors.contains(other), "\(unknown.errors)")
      try tool.write(#"{"type":"hotel","name":"Both","geo":{"lat":51.75}}"#, to: "merged.json")
      let merged = try tool.succeed("conflicts", "db", "hotel", "--merged", "merged.json").lines[0]
      try expect(tool.succeed("get", "db", "hotel", "--json").json()["rev"] as? String, equals: merged)
      try expect(
        tool.succeed("get", "db", "hotel").output,
        equals: #"{"geo":{"lat":51.75},"name":"Both","type":"hotel"}"# + "\n")
      try expect(tool.succeed("conflicts", "db").output, equals: "")
      try expect(tool("conflicts", "db", "hotel").status, equals: 1)
      try expect(tool("conflicts", "db", "--keep", "1-a").status, equals: 2)
      try expect(tool("conflicts", "db", "hotel", "--merged", "nothing").status, equals: 2)

      try tool.succeed("purge", "db", "hotel")
      try conflict(in: tool)
      try expect(tool.succeed("conflicts", "db", "hotel", "--keep", other).output, equals: other + "\n")
      try expect(tool.succeed("get", "db", "hotel", "--json").output.contains(other))
    }
  }

  /// Makes a document with two branches.
  private func conflict(in tool: Tool) throws {
    var options = DatabaseOptions(creation: .openExisting)
    if let keyFile = tool.keyFile { options.key = try UserKey(contentsOfFile: keyFile) }
    let database = try Database.open(tool.path("db"), options: options)
    let base = try database.save(
      "hotel", DocumentBody(json: #"{"type":"hotel","name":"Old","geo":{"lat":51}}"#))
    for (name, lat) in [("Here", 51.5), ("There", 52)] {
      let body = DocumentBody(json: #"{"type":"hotel","name":"\#(name)","geo":{"lat":\#(lat)}}"#)
      try database.save("hotel", body, basedOn: base.revisionID, onConflict: .allowConflict)
    }
    try database.close()
  }

  @Test(arguments: TestEngine.some) func theSchemaTellsHowOftenPropertiesAndTypesOccur(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      let lines = (0..<40).map { number in
        number % 4 == 0
          ? #"{"_id":"\#(number)","n":"text","tags":["a",1]}"#
          : #"{"_id":"\#(number)","n":\#(number),"geo":{"lat":1.5}}"#
      }
      try tool.succeed("import", "db", "-", input: lines.joined(separator: "\n"))
      try tool.succeed("rm", "db", "0")
      let table = try tool.succeed("schema", "db")
      expect(
        table.lines,
        equals: [
          "property  documents  types", "geo            77 %  object", "geo.lat        77 %  number",
          "n             100 %  number 77 %, string 23 %", "tags           23 %  array",
          "tags[]         23 %  number 50 %, string 50 %",
        ])
      expect(table.errors, equals: "read 39 of 39 documents\n")
      let json = try tool.succeed("schema", "db", "geo", "--json").json()
      expect(json["documents"] as? Int, equals: 39)
      expect(json["sampled"] as? Int, equals: 39)
      let properties = try #require(json["properties"] as? [[String: Any]])
      expect(properties.map { $0["path"] as? String }, equals: ["geo", "geo.lat"])
      expect(properties[0]["documents"] as? Int, equals: 30)
      expect(properties[0]["types"] as? [String: Int], equals: ["object": 30])
      // A sample is spread over all, and reads no more than it was told.
      let sample = try tool.succeed("schema", "db", "--sample", "10", "--json").json()
      let read = try #require(sample["sampled"] as? Int)
      expect(read > 7 && read <= 10, "\(read)")
      try expect(tool.succeed("schema", "db", "--all", "--json").json()["sampled"] as? Int, equals: 39)
      try expect(tool("schema", "db", "--all", "--sample", "3").status, equals: 2)
      let none = try tool("schema", "db", "geoo")
      expect(none.status == 1 && none.output == "", "\(none.output)")
      expect(
        none.errors, equals: "touchstone schema: no document has the property 'geoo' (did you mean geo?)\n")
      let sampled = try tool("schema", "db", "--sample", "3", "nothing", "--json")
      expect(sampled.status, equals: 1)
      try expect((sampled.json()["properties"] as? [Any])?.count, equals: 0)
      expect(
        sampled.errors.contains(" documents of 39 has the property 'nothing'"), "\(sampled.errors)")
    }
  }

  @Test(arguments: TestEngine.some) func severalDocumentsAreReadAtOnceByNameOrFromAList(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      for (id, n) in [("a*1", 1), ("a*2", 2), ("ab", 3)] {
        try tool.succeed("put", "db", id, #"{"n":\#(n)}"#)
      }
      try expect(tool.succeed("ls", "db", "--prefix", "a*").lines, equals: ["a*1", "a*2"])
      try expect(tool("ls", "db", "a", "--prefix", "a").status, equals: 2)
      try expect(tool.succeed("get", "db", "ab", "a*1").output, equals: "{\"n\":3}\n{\"n\":1}\n")
      let list = try tool.succeed("get", "db", "--ids", "-", "--json", input: "a*2\n\nab\n").lines
      expect(list.count == 2 && list[0].hasPrefix(#"{"id":"a*2","rev":"1-"#), "\(list)")
      expect(list[0].hasSuffix(#""deleted":false,"body":{"n":2}}"#), "\(list)")
      let missing = try tool("get", "db", "nothing", "ab", "none")
      expect(missing.status == 1 && missing.output == "{\"n\":3}\n")
      expect(missing.errors.contains("2 of 3 documents aren't in "), "\(missing.errors)")
      expect(missing.errors.hasSuffix(": 'nothing', 'none'\n"), "\(missing.errors)")
      try expect(tool("get", "db", "a", "b", "--history").status, equals: 2)
      try expect(tool("get", "db", "a", "--ids", "-").status, equals: 2)
      try expect(tool("get", "db").status, equals: 2)
    }
  }
}
