import Datasets
import TestSupport

/// Documents in and out, over every engine.
@Suite struct ImportExportTests {
  private static let lines = """
    {"_id":"b","n":1.0,"text":"\\u00f6\\n","nested":{"z":[1,null,true],"a":{}}}
    {"type":"x","_id":"a \\"quoted\\""}
    {"_id":"c"}

    """
  /// The same by ID, with sorted names.
  private static let exported = """
    {"_id":"a \\"quoted\\"","type":"x"}
    {"_id":"b","n":1.0,"nested":{"a":{},"z":[1,null,true]},"text":"ö\\n"}
    {"_id":"c"}

    """

  @Test(arguments: TestEngine.some) func whatIsImportedIsExported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.write(Self.lines, to: "in.jsonl")
      #expect(try tool.succeed("import", "db", "in.jsonl").output == "3 documents\n")
      #expect(try tool.succeed("export", "db").output == Self.exported)
      #expect(try tool.succeed("export", "db", "-").output == Self.exported)
      try tool.succeed("export", "db", "out.jsonl")
      #expect(try tool.read("out.jsonl") == Self.exported)
      try tool.succeed("export", "db", "out.jsonl.gz")
      #expect(try tool.run("zcat", ["out.jsonl.gz"]).output == Self.exported)

      try tool.succeed("create", "other", "--engine", engine.rawValue)
      try tool.succeed("import", "other", "out.jsonl.gz")
      #expect(try tool.succeed("export", "other", "--metadata").lines.count == 3)
      #expect(try tool.succeed("export", "other").output == Self.exported)
    }
  }

  @Test func revisionsAreTheSameOnAllEngines() throws {
    var exports: Set<String> = []
    for engine in TestEngine.some {
      try engine.withDatabase { tool in
        try tool.succeed("import", "db", "-", input: Self.lines)
        try tool.succeed("import", "db", "-", input: Self.lines)
        try tool.succeed("rm", "db", "c")
        exports.insert(try tool.succeed("export", "db", "--metadata").output)
      }
    }
    #expect(exports.count == 1)
  }

  @Test(arguments: TestEngine.some) func metadataIsTakenBack(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("import", "db", "-", input: Self.lines)
      try tool.succeed("put", "db", "b", #"{"n":2}"#)
      try tool.succeed("rm", "db", "c")
      let exported = try tool.succeed("export", "db", "--metadata").output
      #expect(exported.contains(#"{"_id":"b","_rev":"2-"#))
      #expect(exported.contains(#""_sequence":5,"_deleted":true}"#))
      try tool.succeed("create", "other", "--engine", engine.rawValue)
      func withoutSequences(_ text: String) -> String { text.replacing(/"_sequence":\d+/, with: "") }
      for _ in 1...2 {
        try tool.succeed("import", "other", "-", input: exported)
        let again = try tool.succeed("export", "other", "--metadata").output
        #expect(withoutSequences(again) == withoutSequences(exported))
      }
      #expect(try tool.succeed("info", "other", "--json").json()["lastSequence"] as? Int == 3)

      // Where there is something else, the last write wins.
      try tool.succeed("put", "other", "b", #"{"n":99}"#)
      try tool.succeed("put", "other", "c", #"{"n":99}"#)
      try tool.succeed("import", "other", "-", input: exported)
      #expect(try tool.succeed("get", "other", "b").output == "{\"n\":2}\n")
      #expect(
        try tool.succeed("get", "other", "b", "--json").json()["rev"].map { "\($0)".hasPrefix("4-") } == true)
      #expect(try tool("get", "other", "c").status == 1)
    }
  }

  @Test func aLineWithoutAnIDGetsAUUIDAndAnotherPropertyCanBeIt() throws {
    try TestEngine.lmdb.withDatabase { tool in
      try tool.succeed(
        "import", "db", "-", "--id-property", "key", input: "{\"key\":\"k\",\"a\":1}\n{\"a\":2}\n")
      let ids = try tool.succeed("ls", "db").lines
      #expect(ids.count == 2)
      #expect(ids.contains("k"))
      #expect(ids.contains { UUID(uuidString: $0) != nil })
      #expect(try tool.succeed("get", "db", "k").output == "{\"a\":1}\n")
    }
  }

  @Test(arguments: TestEngine.some) func aBadLineIsNamedAndTheTransactionsBeforeItStay(
    engine: TestEngine
  ) throws {
    try engine.withDatabase { tool in
      let good = (1...25).map { #"{"_id":"d\#($0)"}"# }
      for bad in [
        "{\"_id\":\"x\",", "[1]", "nonsense", "{\"_id\":\"\"}", "{\"_id\":3}",
        "{\"_id\":\"x\",\"_rev\":\"y\"}",
      ] {
        try tool.write((good + [bad] + good).joined(separator: "\n"), to: "in.jsonl")
        let result = try tool("import", "db", "in.jsonl", "--batch", "10")
        #expect(result.status == 2, "\(bad)")
        #expect(result.errors.contains("in.jsonl: line 26: "), "\(bad): \(result.errors)")
        #expect(result.errors.contains("20 documents were imported"))
      }
      #expect(try tool.succeed("info", "db", "--json").json()["documents"] as? Int == 20)
    }
  }

  @Test func inputThatCantBeReadIsStatus2() throws {
    try TestEngine.sqlite.withDatabase { tool in
      try tool.succeed("import", "db", "-", input: Self.lines)
      try tool.succeed("export", "db", "out.jsonl.gz")
      let whole = try Data(contentsOf: URL(filePath: tool.path("out.jsonl.gz")))
      try whole.dropLast(12).write(to: URL(filePath: tool.path("cut.jsonl.gz")))
      #expect(try tool("import", "db", "cut.jsonl.gz").status == 2)
      #expect(try tool("import", "db", "absent.jsonl").status == 2)
      #expect(try tool("export", "db", "absent/out.jsonl").status == 2)
    }
  }

  @Test(arguments: TestEngine.some) func ctrlCStopsAnImportBetweenTransactions(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      mkfifo(tool.path("pipe"), 0o600)
      let child = try Child(
        tool, Tool.executable, ["import", "db", "pipe", "--batch", "100"])
      let pipe = try #require(FileHandle(forWritingAtPath: tool.path("pipe")))
      func send(_ numbers: Range<Int>) throws {
        try pipe.write(contentsOf: Data(numbers.map { #"{"_id":"d\#($0)"}"# + "\n" }.joined().utf8))
      }
      try send(0..<150)
      try child.wait { try tool.succeed("info", "db", "--json").json()["documents"] as? Int == 100 }
      child.kill(SIGINT)
      try send(150..<250)
      let result = try child.wait()
      #expect(result.status == 130)
      #expect(result.errors.contains("200 documents were imported"))
      try pipe.close()
      #expect(try tool.succeed("ls", "db").lines.count == 200)
    }
  }

  /// Memory doesn't grow with the file; the long form is the million documents that the project promises.
  /// A sanitizer's own memory would be measured with it.
  @Test(.disabled(if: isSanitized), arguments: TestEngine.some)
  func importingTakesLittleMemory(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let count = isLong ? 1_000_000 : 20_000
      let writer = try ByteWriter(path: tool.path("in.jsonl"))
      let source = try SyntheticTravel(documentCount: count)
      while let line = source.nextLine() { try writer.writeLine(line) }
      try writer.finish()
      let child = try Child(tool, Tool.executable, ["import", "db", "in.jsonl"])
      let peak = child.peakMemory()
      #expect(try child.wait().output == "\(isLong ? "1,000,000" : "20,000") documents\n")
      #expect(peak > 1 << 20)
      #expect(peak < 200 << 20, "\(peak >> 20) MiB")
    }
  }
}
