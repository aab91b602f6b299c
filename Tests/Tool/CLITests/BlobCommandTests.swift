import TestSupport

/// Blobs and attachments, and what a check says of them, over every engine.
@Suite struct BlobCommandTests {
  private static let document =
    #"{"_attachments":{"a.txt":{"data":"YWJj","content_type":"text/plain"}},"n":1}"#
  private static let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="

  @Test(arguments: TestEngine.some) func anAttachmentIsPutReadAndExported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      #expect(try tool.succeed("get", "db", "doc", "--attachment", "a.txt").output == "abc")
      #expect(try tool("get", "db", "doc", "--attachment", "b.txt").status == 1)
      try tool.succeed("put", "db", "blob", #"{"b":{"@type":"blob","digest":"\#(Self.digest)","length":3}}"#)
      #expect(try tool.succeed("get", "db", "blob", "--attachment", "b").output == "abc")
      let exported = try tool.succeed("export", "db", "--metadata").output
      #expect(
        exported.contains(#""_attachments":{"a.txt":{"content_type":"text/plain","digest":"\#(Self.digest)""#)
      )
      // And what was exported is taken back.
      try tool.write(exported, to: "exported.jsonl")
      try tool.succeed("import", "db", "exported.jsonl")
      #expect(try tool.succeed("check", "db", "--deep").faults == [])
      let absent = try tool(
        "put", "db", "x", #"{"b":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":0}}"#)
      #expect(absent.status == 2)
      #expect(absent.errors.contains("/b isn't in the database"))
    }
  }

  @Test(arguments: TestEngine.some) func whatIsExportedWithItsBlobsIsImported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      try tool.write("another", to: "a.txt")
      try tool.succeed("put", "db", "--attachment", "a=\(tool.path("a.txt"))", "--", "-second", "{}")
      try tool.succeed("put", "db", "gone", #"{"b":{"@type":"blob","digest":"\#(Self.digest)","length":3}}"#)
      for (file, options) in [("out.jsonl", ["--metadata"]), ("out.jsonl.gz", [])] {
        #expect(try tool.run(Tool.executable, ["export", "db", file] + options).status == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: tool.path(file + ".blobs"))
        #expect(names.count == 2 && names.contains("qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob"), "\(names)")
        let other = "other-" + file
        try tool.succeed("create", other, "--engine", engine.rawValue)
        try tool.succeed("import", other, file)
        #expect(try tool.succeed("get", other, "doc", "--attachment", "a.txt").output == "abc")
        #expect(try tool.succeed("get", other, "--attachment", "a", "--", "-second").output == "another")
        #expect(try tool.succeed("check", other, "--deep").faults == [])
        let same = try tool.succeed("export", other).output == tool.succeed("export", "db").output
        #expect(same)
      }
      // To standard output the blobs have to be asked for.
      #expect(try tool.succeed("export", "db").errors.contains("--blobs DIR"))
      let lines = try tool.succeed("export", "db", "--blobs", "mine")
      #expect(lines.errors == "")
      try tool.succeed("create", "third")
      // Without them, the documents come back, and the command says what is missing.
      let without = try tool.succeed("import", "third", "-", input: lines.output)
      #expect(without.errors.contains("references to blobs that aren't in the database"), "\(without.errors)")
      #expect(try tool("import", "third", "-", "--blobs", "none", input: lines.output).status == 2)
      try tool.succeed("import", "third", "-", "--blobs", "mine", input: lines.output)
      #expect(try tool.succeed("get", "third", "doc", "--attachment", "a.txt").output == "abc")
      // Other bytes than the name says.
      let file = tool.path("mine/qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob")
      try FileManager.default.removeItem(atPath: file)
      try Data("abd".utf8).write(to: URL(filePath: file))
      try tool.succeed("create", "fourth")
      #expect(try tool("import", "fourth", "-", "--blobs", "mine", input: lines.output).status == 3)
    }
  }

  @Test(arguments: TestEngine.some) func filesArePutAsAttachments(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.write("abc", to: "a.txt")
      try tool.write("typed", to: "c:d")
      try tool.succeed(
        "put", "db", "doc", #"{"n":1}"#, "--attachment", "a=\(tool.path("a.txt")):text/plain", "--attachment",
        "b=\(tool.path("a.txt"))", "--attachment",
        "c=\(tool.path("c:d")):application/json")
      #expect(try tool.succeed("get", "db", "doc", "--attachment", "a").output == "abc")
      #expect(try tool.succeed("get", "db", "doc", "--attachment", "b").output == "abc")
      #expect(try tool.succeed("get", "db", "doc", "--attachment", "c").output == "typed")
      let body = try tool.succeed("get", "db", "doc").output
      #expect(body.contains("text/plain"))
      #expect(body.contains("application/json"))
      let absent = try tool("put", "db", "doc", "{}", "--attachment", "a=\(tool.path("none.txt"))")
      #expect(absent.status == 2 && absent.errors.contains("none.txt"))
      #expect(try tool("put", "db", "doc", "{}", "--attachment", "a").status == 2)
      #expect(try tool("put", "db", "doc", "[]", "--attachment", "a=\(tool.path("a.txt"))").status == 2)
      #expect(try tool.succeed("check", "db", "--deep").faults == [])
    }
  }

  @Test(arguments: TestEngine.some) func aMissingBlobIsOneLineAndStatus1(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      let directory = tool.path("db.touchstone/Attachments")
      for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
        try FileManager.default.removeItem(atPath: directory + "/" + name)
      }
      let result = try tool("check", "db")
      #expect(result.status == 1)
      #expect(result.output == "document 'doc': the blob \(Self.digest) at /_attachments/a.txt is missing\n")
      let json = try tool("check", "db", "--json")
      #expect(json.status == 1)
      #expect(try json.json()["subject"] as? String == "document 'doc'")
    }
  }
}
