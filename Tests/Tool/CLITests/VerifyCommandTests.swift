import TestSupport

/// `verify` over engines: its lines, its JSON, its statuses.
@Suite struct VerifyCommandTests {
  @Test(arguments: TestEngine.some) func equalIsSilentAndADifferenceIsALine(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", #"{"n":1}"#)
      try tool.succeed("put", "db", "b", #"{"n":2}"#)
      // The other one by another order of saves.
      try tool.succeed("create", "other", "--engine", "lmdb")
      try tool.succeed("put", "other", "b", #"{"n":2}"#)
      try tool.succeed("put", "other", "a", #"{"n":1}"#)
      #expect(try tool.succeed("verify", "db", "other").output == "")
      let equal = try tool.succeed("verify", "db", "other", "--json").json()
      #expect(equal["equal"] as? Bool == true)
      #expect(equal["compared"] as? Int == 2)
      #expect((equal["differences"] as? [Any])?.isEmpty == true)
      #expect(try tool("verify", "db", "other", "--sequences").status == 1)

      try tool.succeed("put", "other", "a", #"{"n":3}"#)
      try tool.succeed("put", "other", "c", #"{}"#)
      let result = try tool("verify", "db", "other")
      #expect(result.status == 1)
      let lines = result.output.split(separator: "\n")
      #expect(lines.map { $0.prefix(11) } == ["a: current:", "a: revision", "c: document"])
      #expect(lines.last == "c: document: none | a document")
      let json = try tool("verify", "db", "other", "--json").json()
      let differences = try #require(json["differences"] as? [[String: String]])
      #expect(differences.map { $0["kind"] } == ["current", "revision", "document"])
      #expect(differences.last == ["id": "c", "kind": "document", "left": "none", "right": "a document"])
      #expect(json["equal"] as? Bool == false)
    }
  }

  @Test func whatCannotBeOpenedHasAStatusOfItsOwn() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "sqlite")
      #expect(try tool("verify", "db", "nothing").status == 3)
      #expect(try tool("verify", "db").status == 2)
    }
  }
}
