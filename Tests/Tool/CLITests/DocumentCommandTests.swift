import TestSupport

/// The commands on single documents, over every engine.
@Suite struct DocumentCommandTests {
  @Test(arguments: TestEngine.some) func aDocumentIsPutReadReplacedAndRemoved(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let first = try tool.succeed("put", "db", "airline_1", #"{"name":"Paper Planes","fleet":2}"#).lines[0]
      expect(first.hasPrefix("1-"))
      try expect(
        tool.succeed("get", "db", "airline_1").output, equals: #"{"fleet":2,"name":"Paper Planes"}"# + "\n")

      let second = try tool.succeed("put", "db", "airline_1", "-", "--rev", first, input: #"{"fleet": 3}"#)
        .lines[0]
      let json = try tool.succeed("get", "db", "airline_1", "--json").json()
      expect(Set(json.keys), equals: ["id", "rev", "sequence", "deleted", "body"])
      expect(json["id"] as? String, equals: "airline_1")
      expect(json["rev"] as? String, equals: second)
      expect(json["sequence"] as? Int, equals: 2)
      expect(json["deleted"] as? Bool, equals: false)
      expect(json["body"] as? [String: Int], equals: ["fleet": 3])
      try expect(tool.succeed("get", "db", "airline_1", "--rev", first).output.contains("Paper Planes"))

      let third = try tool.succeed("rm", "db", "airline_1").lines[0]
      expect(third.hasPrefix("3-"))
      try expect(tool("get", "db", "airline_1").status, equals: 1)
      let tombstone = try tool.succeed("get", "db", "airline_1", "--json", "--history").json()
      expect(tombstone["deleted"] as? Bool, equals: true)
      expect(tombstone["rev"] as? String, equals: third)
      let revisions = try #require(tombstone["revisions"] as? [[String: Any]])
      expect(revisions.map { $0["rev"] as? String }, equals: [third, second, first])
      expect(revisions.map { $0["parent"] as? String }, equals: [second, first, nil])
      expect(revisions.map { $0["deleted"] as? Bool }, equals: [true, false, false])
      expect(revisions.map { $0["leaf"] as? Bool }, equals: [true, false, false])
      expect(revisions[1]["body"] as? [String: Int], equals: ["fleet": 3])
    }
  }

  @Test(arguments: TestEngine.some) func aRevisionThatIsNotCurrentIsAConflict(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let first = try tool.succeed("put", "db", "a", "{}").lines[0]
      let second = try tool.succeed("put", "db", "a", #"{"n":2}"#).lines[0]
      try expect(tool("put", "db", "a", #"{"n":3}"#, "--rev", first).status, equals: 1)
      try expect(tool("rm", "db", "a", "--rev", first).status, equals: 1)
      try expect(tool.succeed("get", "db", "a", "--json").json()["rev"] as? String, equals: second)
      try expect(tool("rm", "db", "a", "--rev", second).status, equals: 0)
      try expect(tool("rm", "db", "nothing").status, equals: 1)
    }
  }

  @Test func badBodiesAndIDsAreStatus2() throws {
    try TestEngine.sqlite.withDatabase { tool in
      for body in ["", " ", "[1]", "{", "{\"a\":1} x", "3"] {
        let result = try tool("put", "db", "a", body)
        expect(result.status, equals: 2, "\(body)")
        expect(result.errors.filter(\.isNewline).count, equals: 1, "\(body)")
      }
      try expect(tool("put", "db", "_a", "{}").status, equals: 2)
      try expect(tool("get", "db", "a").status, equals: 1)
    }
  }

  @Test(arguments: TestEngine.some) func listAndChangesShowWhatIsThere(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      for id in ["b_2", "a_1", "b_1", "c%"] { try tool.succeed("put", "db", id, "{}") }
      try tool.succeed("rm", "db", "a_1")
      try expect(tool.succeed("ls", "db").lines, equals: ["b_1", "b_2", "c%"])
      try expect(tool.succeed("ls", "db", "b_*").lines, equals: ["b_1", "b_2"])
      try expect(tool.succeed("ls", "db", "*2").lines, equals: ["b_2"])
      try expect(tool.succeed("ls", "db", "[bc]?*", "--limit", "2").lines, equals: ["b_1", "b_2"])
      try expect(tool.succeed("ls", "db", "x*").lines, equals: [])
      let listed = try tool.succeed("ls", "db", "b_2", "--json").json()
      expect(listed["id"] as? String, equals: "b_2")
      expect(listed["sequence"] as? Int, equals: 1)
      try expect(tool.succeed("ls", "db", "--include-deleted").lines, equals: ["a_1", "b_1", "b_2", "c%"])
      let tombstone = try tool.succeed("ls", "db", "a*", "--include-deleted", "--json").json()
      expect(tombstone["deleted"] as? Bool, equals: true)
      try expect(tool.succeed("ls", "db", "--conflicts").lines, equals: [])
      try expect(tool("ls", "db", "--conflicts", "--include-deleted").status, equals: 2)

      try expect(tool.succeed("changes", "db").lines, equals: ["1 b_2", "3 b_1", "4 c%", "5 a_1 deleted"])
      try expect(tool.succeed("changes", "db", "--since", "4").lines, equals: ["5 a_1 deleted"])
      let change = try tool.succeed("changes", "db", "--since", "4", "--json").json()
      expect(change["id"] as? String, equals: "a_1")
      expect(change["deleted"] as? Bool, equals: true)
    }
  }

  @Test(arguments: TestEngine.some) func followedChangesComeUntilCtrlC(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "before", "{}")
      let child = try Child(tool, Tool.executable, ["changes", "db", "--follow"])
      try child.wait { child.output == "1 before\n" }
      try tool.succeed("put", "db", "after", "{}")
      try child.wait { child.output == "1 before\n2 after\n" }
      child.kill(SIGINT)
      try expect(child.wait().status, equals: 0)
    }
  }
}
