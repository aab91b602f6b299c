import TestSupport

/// Map/reduce views on the command line, over every engine.
@Suite struct ViewCommandTests {
  @Test(arguments: TestEngine.some) func viewsAreMadeQueriedAndRemoved(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", #"{"type":"hotel","stars":3}"#)
      try tool.succeed("put", "db", "b", #"{"type":"inn","stars":1}"#)
      try tool.succeed("put", "db", "c", #"{"type":"hotel","stars":4}"#)
      try tool.write("function (doc) { emit(doc.type, doc.stars); }\n", to: "stars.js")
      try tool.write("(keys, values) => Math.max(...values)", to: "max.js")
      let map = tool.path("stars.js")
      try tool.succeed("view", "db", "create", "by/type", "--map", map, "--reduce", "_sum")
      try tool.succeed("view", "db", "create", "by/best", "--map", map, "--reduce", tool.path("max.js"))
      try tool.succeed("view", "db", "create", "plain", "--map", map)
      // The same definition changes nothing.
      let changes = try tool.succeed("changes", "db").lines.count
      try tool.succeed("view", "db", "create", "by/type", "--map", map, "--reduce", "_sum")
      try expect(tool.succeed("changes", "db").lines.count, equals: changes)

      try expect(
        tool.succeed("view", "db", "query", "by/type", "--json").output,
        equals: "{\"rows\":[\r\n{\"key\":null,\"value\":8}\r\n]}\n")
      try expect(
        tool.succeed("view", "db", "query", "by/best", "--group", "--descending", "--json").output,
        equals: "{\"rows\":[\r\n{\"key\":\"inn\",\"value\":1},\r\n{\"key\":\"hotel\",\"value\":4}\r\n]}\n")
      try expect(
        tool.succeed(
          "view", "db", "query", "by/type", "--reduce", "false", "--key", "\"hotel\"", "--skip", "1", "--json"
        ).output,
        equals:
          "{\"total_rows\":3,\"offset\":1,\"rows\":[\r\n{\"id\":\"c\",\"key\":\"hotel\",\"value\":4}\r\n]}\n")
      let table = try tool.succeed("view", "db", "query", "plain", "--include-docs", "--limit", "1").lines
      expect(table.count >= 2 && table[0].contains("key") && table[0].contains("doc"))
      expect(table.last?.contains(#"{"_id":"a","_rev":""#), equals: true)
      try expect(tool.succeed("view", "db", "query", "plain", "--endkey", "\"a\"").output, equals: "")

      let list = try tool.succeed("view", "db", "list", "--json").lines
      expect(list.count == 3 && list[2].hasPrefix(#"{"name":"plain/plain","rows":3,"sequence":"#))
      try expect(tool.succeed("view", "db", "list", "--read-only").lines.contains { $0.contains("by/best") })

      try tool.succeed("view", "db", "delete", "by/best")
      try expect(tool.succeed("view", "db", "list", "--json").lines.count, equals: 2)
      try tool.succeed("view", "db", "delete", "by/type")
      try tool.succeed("view", "db", "delete", "plain")
      try expect(tool.succeed("view", "db", "list").output, equals: "")
      try expect(tool.succeed("ls", "db").lines, equals: ["a", "b", "c"])
      try expect(tool("check", "db").faults, equals: [])
    }
  }

  @Test func whatIsWrongIsSaid() throws {
    try TestEngine.some[0].withDatabase { tool in
      try tool.write("function (doc) { emit(", to: "bad.js")
      try tool.write("function (doc) { emit(doc._id); }", to: "good.js")
      let bad = try tool("view", "db", "create", "v", "--map", tool.path("bad.js"))
      expect(
        bad.status == 2 && bad.errors.contains("Compilation of the map function in the 'v' view failed"))
      let unknown = try tool(
        "view", "db", "create", "v", "--map", tool.path("good.js"), "--reduce", "_nosuch")
      expect(unknown.status == 2 && unknown.errors.contains("`_nosuch` is not a supported reduce function."))
      try expect(tool("view", "db", "create", "v", "--map", "nowhere.js").status, equals: 2)
      try expect(tool.succeed("ls", "db").output, equals: "")
      try tool.succeed("view", "db", "create", "v", "--map", tool.path("good.js"))
      let limit = try tool("view", "db", "query", "v", "--limit", "-1")
      expect(limit.status == 2 && limit.errors.contains("Invalid value for positive integer: \"-1\""))
      try expect(
        tool("view", "db", "query", "v", "--startkey", "\"b\"", "--endkey", "\"a\"").status, equals: 2)
      try expect(tool("view", "db", "query", "v", "--group").status, equals: 2)
      try expect(tool("view", "db", "query", "w").status, equals: 1)
      try expect(tool("view", "db", "delete", "w").status, equals: 1)
      for arguments in [
        ["view", "db", "frob"], ["view", "db", "create", "v"], ["view", "db", "query"],
        ["view", "db", "list", "v"], ["view", "db", "list", "--limit", "1"],
        ["view", "db", "delete", "v", "--map", "x"], ["view", "db", "delete", "v", "--reduce", "_sum"],
        ["view", "db", "query", "/v"],
      ] {
        let result = try tool.run(Tool.executable, arguments)
        expect(result.status == 2 && result.errors.hasPrefix("touchstone view: "), "\(arguments)")
      }
    }
  }
}
