import TestSupport

/// `backup`: a database that is the same, of one that may be in use.
@Suite struct BackupCommandTests {
  @Test(arguments: TestEngine.some) func aBackupIsTheSameDatabase(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.write("abc", to: "a.txt")
      try tool.succeed("put", "db", "a", #"{"n":1}"#)
      try tool.succeed("put", "db", "b", "{}", "--attachment", "a.txt=\(tool.path("a.txt"))")
      try tool.succeed("put", "db", "gone", "{}")
      try tool.succeed("rm", "db", "gone")
      try tool.succeed("local", "db", "put", "l", #"{"x":1}"#)
      try expect(
        tool.succeed("backup", "db", "saved").output, equals: "backed up on \(engine.rawValue): 2 documents\n"
      )
      try expect(
        tool.succeed("verify", "db", "saved", "--sequences").output,
        equals: "equal: 2 documents, 1 tombstone, 4 revisions\n")
      try expect(tool.succeed("get", "saved", "b", "--attachment", "a.txt").output, equals: "abc")
      func info(_ name: String) throws -> [String?] {
        let object = try tool.succeed("info", name, "--json").json()
        return ["engine", "publicUUID", "privateUUID"].map { object[$0] as? String }
      }
      try expect(info("saved"), equals: info("db"))
      try expect(tool.succeed("backup", "db", "quiet", "--quiet").output, equals: "")
      let again = try tool("backup", "db", "saved")
      expect(again.status == 2 && again.errors.hasPrefix("touchstone backup: "), "\(again.errors)")
      try expect(tool("backup", "none", "saved2").status, equals: 3)

      // Back to it.
      try tool.succeed("rm", "db", "a")
      try tool.succeed("delete", "db")
      try tool.succeed("backup", "saved", "db")
      try expect(tool.succeed("get", "db", "a").output.contains("\"n\":1"))
    }
  }

  @Test(arguments: TestEngine.some) func anotherProcessMayBeInTheMidstOfWriting(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      mkfifo(tool.path("pipe"), 0o600)
      let child = try Child(tool, Tool.executable, ["import", "db", "pipe", "--batch", "100"])
      let pipe = try #require(FileHandle(forWritingAtPath: tool.path("pipe")))
      func send(_ numbers: Range<Int>) throws {
        try pipe.write(contentsOf: Data(numbers.map { #"{"_id":"d\#($0)"}"# + "\n" }.joined().utf8))
      }
      try send(0..<150)
      try child.wait { try tool.succeed("info", "db", "--json").json()["documents"] as? Int == 100 }
      // Its transaction is open.
      try expect(
        tool.succeed("backup", "db", "saved").output,
        equals: "backed up on \(engine.rawValue): 100 documents\n")
      try send(150..<200)
      try pipe.close()
      try expect(child.wait().output, equals: "200 documents\n")
      try expect(tool.succeed("check", "saved", "--deep").faults, equals: [])
      try expect(tool.succeed("ls", "saved").lines.count, equals: 100)
    }
  }
}
