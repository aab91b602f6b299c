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
      try expect(tool.succeed("verify", "db", "other").output, equals: "equal: 2 documents\n")
      let equal = try tool.succeed("verify", "db", "other", "--json").json()
      expect(equal["equal"] as? Bool, equals: true)
      expect(equal["compared"] as? Int, equals: 2)
      expect((equal["differences"] as? [Any])?.isEmpty, equals: true)
      try expect(tool("verify", "db", "other", "--sequences").status, equals: 1)

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

  @Test func whatCannotBeOpenedHasAStatusOfItsOwn() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "sqlite")
      try expect(tool("verify", "db", "nothing").status, equals: 3)
      try expect(tool("verify", "db").status, equals: 2)
    }
  }
}
