import TestSupport

/// Blobs and attachments, and what a check says of them, over every engine.
@Suite struct BlobCommandTests {
  private static let document =
    #"{"_attachments":{"a.txt":{"data":"YWJj","content_type":"text/plain"}},"n":1}"#
  private static let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="

  @Test(arguments: TestEngine.some) func anAttachmentIsPutReadAndExported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      try expect(tool.succeed("get", "db", "doc", "--attachment", "a.txt").output, equals: "abc")
      try expect(tool("get", "db", "doc", "--attachment", "b.txt").status, equals: 1)
      try tool.succeed("put", "db", "blob", #"{"b":{"@type":"blob","digest":"\#(Self.digest)","length":3}}"#)
      try expect(tool.succeed("get", "db", "blob", "--attachment", "b").output, equals: "abc")
      let exported = try tool.succeed("export", "db", "--metadata").output
      expect(
        exported.contains(#""_attachments":{"a.txt":{"content_type":"text/plain","digest":"\#(Self.digest)""#)
      )
      // And what was exported is taken back.
      try tool.write(exported, to: "exported.jsonl")
      try tool.succeed("import", "db", "exported.jsonl")
      try expect(tool.succeed("check", "db", "--deep").faults, equals: [])
      let absent = try tool(
        "put", "db", "x", #"{"b":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":0}}"#)
      expect(absent.status, equals: 2)
      expect(absent.errors.contains("/b isn't in the database"))
    }
  }

  @Test(arguments: TestEngine.some) func whatIsExportedWithItsBlobsIsImported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      try tool.write("another", to: "a.txt")
      try tool.succeed("put", "db", "--attachment", "a=\(tool.path("a.txt"))", "--", "-second", "{}")
      try tool.succeed("put", "db", "gone", #"{"b":{"@type":"blob","digest":"\#(Self.digest)","length":3}}"#)
      for (file, options) in [("out.jsonl", ["--metadata"]), ("out.jsonl.gz", [])] {
        try expect(tool.run(Tool.executable, ["export", "db", file] + options).status, equals: 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: tool.path(file + ".blobs"))
        expect(names.count == 2 && names.contains("qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob"), "\(names)")
        let other = "other-" + file
        try tool.succeed("create", other, "--engine", engine.rawValue)
        try tool.succeed("import", other, file)
        try expect(tool.succeed("get", other, "doc", "--attachment", "a.txt").output, equals: "abc")
        try expect(tool.succeed("get", other, "--attachment", "a", "--", "-second").output, equals: "another")
        try expect(tool.succeed("check", other, "--deep").faults, equals: [])
        let same = try tool.succeed("export", other).output == tool.succeed("export", "db").output
        expect(same)
      }
      // To standard output the blobs have to be asked for.
      try expect(tool.succeed("export", "db").errors.contains("--blobs DIR"))
      let lines = try tool.succeed("export", "db", "--blobs", "mine")
      expect(lines.errors, equals: "")
      try tool.succeed("create", "third")
      // Without them, the documents come back, and the command says what is missing.
      let without = try tool("import", "third", "-", input: lines.output)
      expect(without.status, equals: 1)
      let remark = "the documents were imported, but 2 blobs that 3 documents name are missing"
      expect(without.errors.contains(remark), "\(without.errors)")
      try expect(without.errors.contains(tool("check", "third").output), "\(without.errors)")
      try expect(tool("import", "third", "-", "--blobs", "none", input: lines.output).status, equals: 2)
      try tool.succeed("import", "third", "-", "--blobs", "mine", input: lines.output)
      try expect(tool.succeed("get", "third", "doc", "--attachment", "a.txt").output, equals: "abc")
      // Other bytes than the name says.
      let file = tool.path("mine/qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob")
      try FileManager.default.removeItem(atPath: file)
      try Data("abd".utf8).write(to: URL(filePath: file))
      try tool.succeed("create", "fourth")
      try expect(tool("import", "fourth", "-", "--blobs", "mine", input: lines.output).status, equals: 3)
    }
  }

  @Test(arguments: TestEngine.some)
  func exportsAndImportsNameTheBlobsThatACheckMisses(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "doc", Self.document)
      // What looks like a reference and is none, and references of both kinds at several depths.
      let digest = Self.digest
      try tool.succeed(
        "put", "db", "none", #"{"digest":"\#(digest)","x":[{"digest":"\#(digest)"}],"s":"\#(digest)"}"#)
      try tool.succeed(
        "put", "db", "two",
        #"{"a":{"b":[1,{"@type":"blob","digest":"\#(digest)","length":3}]},"c":{"@type":"blob","digest":"\#(digest)"}}"#
      )
      try tool.succeed("export", "db", "whole.jsonl", "--attachments", "inline")
      let directory = tool.path("db.touchstone/Attachments")
      for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
        try FileManager.default.removeItem(atPath: directory + "/" + name)
      }
      let faults = try tool("check", "db").output
      func expectMissing(_ arguments: [String], _ done: String) throws {
        let result = try tool.run(Tool.executable, arguments)
        expect(result.status, equals: 1)
        let line = "touchstone \(arguments[0]): \(done), but 1 blob that 2 documents name is missing\n"
        expect(
          result.errors.split(separator: "\n").sorted(),
          equals: (faults + line).split(separator: "\n").sorted())
      }
      try expectMissing(["export", "db", "out.jsonl"], "the documents were exported")
      try expectMissing(
        ["export", "db", "out2.jsonl", "--attachments", "inline"], "the documents were exported")
      try expectMissing(["export", "db", "-", "--blobs", "mine"], "the documents were exported")
      try tool.succeed("export", "db")
      try tool.succeed("export", "db", "out.csv")
      for file in ["out.jsonl", "out2.jsonl"] {
        let other = "other-" + file
        try expectMissing(
          ["import", other, file, "--engine", engine.rawValue], "the documents were imported")
        try expect(tool("check", other).output, equals: faults)
        // A later line brings the blob.
        let lines = try tool.succeed("export", other).output
        try tool.write(lines + tool.read("whole.jsonl"), to: "both.jsonl")
        try tool.succeed("import", "both-" + file, "both.jsonl", "--engine", engine.rawValue)
      }
    }
  }

  @Test(arguments: TestEngine.some) func anExportThatFailsLeavesNoBlobs(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", Self.document)
      try tool.write("another", to: "b.txt")
      try tool.succeed("put", "db", "b", "{}", "--attachment", "b=\(tool.path("b.txt"))")
      let blobs = try FileManager.default.subpathsOfDirectory(atPath: tool.path("db.touchstone"))
        .filter { $0.contains("/") }
      expect(blobs.count, equals: 2)
      for blob in blobs { try tool.write("damaged", to: "db.touchstone/" + blob) }
      try expect(tool("export", "db", "out.jsonl").status, equals: 3)
      expect(!FileManager.default.fileExists(atPath: tool.path("out.jsonl")))
      expect(!FileManager.default.fileExists(atPath: tool.path("out.jsonl.blobs")))
      // A directory that was there stays.
      try FileManager.default.createDirectory(
        atPath: tool.path("mine"), withIntermediateDirectories: false)
      try expect(tool("export", "db", "out.jsonl", "--blobs", "mine").status, equals: 3)
      expect(FileManager.default.fileExists(atPath: tool.path("mine")))
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
      try expect(tool.succeed("get", "db", "doc", "--attachment", "a").output, equals: "abc")
      try expect(tool.succeed("get", "db", "doc", "--attachment", "b").output, equals: "abc")
      try expect(tool.succeed("get", "db", "doc", "--attachment", "c").output, equals: "typed")
      let body = try tool.succeed("get", "db", "doc").output
      expect(body.contains("text/plain"))
      expect(body.contains("application/json"))
      let absent = try tool("put", "db", "doc", "{}", "--attachment", "a=\(tool.path("none.txt"))")
      expect(absent.status == 2 && absent.errors.contains("none.txt"))
      try expect(tool("put", "db", "doc", "{}", "--attachment", "a").status, equals: 2)
      try expect(tool("put", "db", "doc", "[]", "--attachment", "a=\(tool.path("a.txt"))").status, equals: 2)
      try expect(tool.succeed("check", "db", "--deep").faults, equals: [])
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
      expect(result.status, equals: 1)
      expect(
        result.output, equals: "document 'doc': the blob \(Self.digest) at /_attachments/a.txt is missing\n")
      let json = try tool("check", "db", "--json")
      expect(json.status, equals: 1)
      try expect(json.json()["subject"] as? String, equals: "document 'doc'")
    }
  }
}
