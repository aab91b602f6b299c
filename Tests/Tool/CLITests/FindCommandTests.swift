import TestSupport

/// `touchstone find`, over every engine.
@Suite struct FindCommandTests {
  private func fill(_ tool: Tool) throws {
    try tool.succeed("put", "db", "a", #"{"type":"hotel","n":2}"#)
    try tool.succeed("put", "db", "b", #"{"type":"hotel","n":1,"name":"Zoo,\r\n"}"#)
    try tool.succeed("put", "db", "c", #"{"type":"route","n":3}"#)
  }

  @Test(arguments: TestEngine.some) func documentsThatASelectorChoosesArePrintedLineByLine(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      try fill(tool)
      let found = try tool.succeed("find", "db", #"{"n":{"$lt":3}}"#, "--fields", "_id,name").output
      expect(found, equals: #"{"_id":"a"}"# + "\n" + #"{"_id":"b","name":"Zoo,\r\n"}"# + "\n")
      let one = try tool.succeed(
        "find", "db", "-", "--skip", "1", "--fields", "_id",
        input: #"{"selector":{"type":{"$exists":true}},"limit":1}"#
      ).output
      expect(one, equals: #"{"_id":"b"}"# + "\n")
      let none = try tool.succeed("find", "db", #"{"n":7}"#).output
      expect(none, equals: "")
      let bad = try tool("find", "db", "{type")
      expect(bad.status, equals: 2)
      expect(bad.errors.hasPrefix("touchstone find: the selector isn't valid JSON: "), "\(bad.errors)")
    }
  }

  @Test func anIndexSortsAndIsShown() throws {
    try TestEngine.sqlite.withDatabase { tool in
      try fill(tool)
      let unsorted = try tool("find", "db", #"{"n":{"$gt":0}}"#, "--sort", "n")
      expect(unsorted.status == 2 && unsorted.errors.contains("no_usable_index"), "\(unsorted.errors)")
      try tool.succeed(
        "put", "db", "_design/by",
        #"{"language":"query","views":{"n":{"map":{"fields":{"n":"asc"}},"reduce":"_count","options":{"def":{"fields":["n"]}}}}}"#
      )
      let sorted = try tool.succeed(
        "find", "db", #"{"n":{"$gt":0}}"#, "--sort", "n", "--descending", "--fields", "n"
      ).output
      expect(sorted, equals: "{\"n\":3}\n{\"n\":2}\n{\"n\":1}\n")
      let plan = try tool.succeed("find", "db", #"{"n":1}"#, "--explain").output
      expect(plan.contains(#""ddoc":"_design/by""#), "\(plan)")
      let wrong = try tool("find", "db", #"{"n":{"$foo":1}}"#)
      expect(wrong.status == 2 && wrong.errors.contains("Invalid operator: $foo"), "\(wrong.errors)")
    }
  }
}
