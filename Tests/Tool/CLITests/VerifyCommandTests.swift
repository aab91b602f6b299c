import TestSupport

/// `verify` over engines: its lines, its JSON, its statuses.
@Suite struct VerifyCommandTests {
  @Test(arguments: TestEngine.some) func equalIsOneLineAndSoIsADifference(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", #"{"n":1}"#)
      try tool.succeed("put", "db", "b", #"{"n":2}"#)
      // The other one by another order of saves.
      try tool.succeed("create", "other", "--engine", "lmdb")
      try tool.succeed("put", "other", "b", #"{"n":2}"#)
      try tool.succeed("put", "other", "a", #"{"n":1}"#)
      try expect(tool.succeed("verify", "--quiet", "db", "other").output, equals: "")
      try expect(tool.succeed("verify", "db", "other").output, equals: "equal: 2 documents, 2 revisions\n")
      let equal = try tool.succeed("verify", "db", "other", "--json").json()
      expect(equal["equal"] as? Bool, equals: true)
      expect(equal["compared"] as? Int, equals: 2)
      expect((equal["differences"] as? [Any])?.isEmpty, equals: true)
      try expect(tool("verify", "db", "other", "--sequences").status, equals: 1)
      for name in ["db", "other"] {
        try tool.succeed("put", name, "gone", "{}")
        try tool.succeed("rm", name, "gone")
      }
      try expect(
        tool.succeed("verify", "db", "other").output, equals: "equal: 2 documents, 1 tombstone, 4 revisions\n"
      )
      try expect(tool.succeed("verify", "db", "other", "--json").json()["revisions"] as? Int, equals: 4)
      // Of each document and tombstone, the current one.
      try expect(
        tool.succeed("verify", "--current", "db", "other").output,
        equals: "equal: 2 documents, 1 tombstone, 3 revisions\n")

      try tool.succeed("put", "other", "a", #"{"n":3}"#)
      try tool.succeed("put", "other", "c", #"{}"#)
      let result = try tool("verify", "db", "other")
      expect(result.status, equals: 1)
      let lines = result.output.split(separator: "\n")
      expect(lines.map { $0.prefix(11) }, equals: ["a: current:", "a: revision", "c: document"])
      expect(lines.last, equals: "c: document: none | a document")
      let json = try tool("verify", "db", "other", "--json").json()
      let differences = try #require(json["differences"] as? [[String: String]])
      expect(differences.map { $0["kind"] }, equals: ["current", "revision", "document"])
      expect(
        differences.last, equals: ["id": "c", "kind": "document", "left": "none", "right": "a document"])
      expect(json["equal"] as? Bool, equals: false)
    }
  }

  @Test func onlyTheFirstOfManyDifferencesAreShownAndAllAreCounted() throws {
    try Tool.run { tool in
      try tool.succeed("create", "empty", "--engine", "sqlite")
      let lines = (1...1_002).map { "{\"_id\":\"d\($0)\"}\n" }.joined()
      try tool.succeed("import", "db", "-", "--engine", "sqlite", input: lines)
      let first = try tool("verify", "db", "empty")
      expect(first.status, equals: 1)
      expect(first.lines.count, equals: 1_000)
      expect(
        first.errors.hasPrefix("touchstone verify: 1,002 differences between ")
          && first.errors.hasSuffix("; the first 1,000 are shown, and --limit 0 shows all\n"),
        "\(first.errors)")
      for (limit, count) in [("0", 1_002), ("3", 3), ("1002", 1_002)] {
        let result = try tool("verify", "db", "empty", "--limit", limit)
        expect(result.lines.count, equals: count)
        expect(result.errors.contains("are shown"), equals: limit == "3", "\(result.errors)")
      }
      func differences(_ options: String...) throws -> Int? {
        let result = try tool.run(Tool.executable, ["verify", "db", "empty", "--json"] + options)
        return try (result.json()["differences"] as? [Any])?.count
      }
      try expect(differences(), equals: 1_002)
      try expect(differences("--limit", "2"), equals: 2)
    }
  }

  @Test func whatCannotBeOpenedHasAStatusOfItsOwn() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "sqlite")
      try expect(tool("verify", "db", "nothing").status, equals: 3)
      try expect(tool("verify", "db").status, equals: 2)
    }
  }
}
