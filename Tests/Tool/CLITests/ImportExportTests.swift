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
      try expect(tool.succeed("import", "db", "in.jsonl").output, equals: "3 documents\n")
      try expect(tool.succeed("export", "db").output, equals: Self.exported)
      try expect(tool.succeed("export", "db", "-").output, equals: Self.exported)
      try tool.succeed("export", "db", "out.jsonl")
      try expect(tool.read("out.jsonl"), equals: Self.exported)
      try tool.succeed("export", "db", "out.jsonl.gz")
      try expect(tool.run("zcat", ["out.jsonl.gz"]).output, equals: Self.exported)

      try tool.succeed("create", "other", "--engine", engine.rawValue)
      try tool.succeed("import", "other", "out.jsonl.gz")
      try expect(tool.succeed("export", "other", "--metadata").lines.count, equals: 3)
      try expect(tool.succeed("export", "other").output, equals: Self.exported)
    }
  }

  @Test(arguments: TestEngine.some) func linesOfOneDocumentAreOneDocument(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let lines = "{\"_id\":\"a\",\"n\":1}\n{\"_id\":\"b\"}\n{\"_id\":\"a\",\"n\":2}\n"
      // Into an empty database, and over what is there.
      for _ in 0..<2 {
        let result = try tool.succeed("import", "db", "-", input: lines)
        expect(result.output, equals: "2 documents\n")
        expect(
          result.errors, equals: "touchstone import: 1 line has the ID of an earlier line; the last one won\n"
        )
        try expect(tool.succeed("export", "db", "-").lines.first, equals: #"{"_id":"a","n":2}"#)
      }
      let more =
        try tool.succeed(
          "import", "db", "-", "--json", "--batch", "1", input: lines + lines + "{\"_id\":\"c\"}\n"
        ).json() as? [String: Int]
      expect(more, equals: ["documents": 3, "repeated": 4])
      // What is replaced isn't repeated, and neither is a line that changes nothing.
      let exported = try tool.succeed("export", "db", "--metadata").output
      for text in [exported, exported + "{\"_id\":\"d\"}\n"] {
        let result = try tool.succeed("import", "db", "-", input: text)
        expect(result.output, equals: text == exported ? "3 documents\n" : "4 documents\n")
        expect(result.errors, equals: "")
      }
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
    expect(exports.count, equals: 1)
  }

  @Test(arguments: TestEngine.some) func metadataIsTakenBack(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("import", "db", "-", input: Self.lines)
      try tool.succeed("put", "db", "b", #"{"n":2}"#)
      try tool.succeed("rm", "db", "c")
      let exported = try tool.succeed("export", "db", "--metadata").output
      expect(exported.contains(#"{"_id":"b","_rev":"2-"#))
      expect(exported.contains(#""_sequence":5,"_deleted":true}"#))
      try tool.succeed("create", "other", "--engine", engine.rawValue)
      func withoutSequences(_ text: String) -> String { text.replacing(/"_sequence":\d+/, with: "") }
      for _ in 1...2 {
        try tool.succeed("import", "other", "-", input: exported)
        let again = try tool.succeed("export", "other", "--metadata").output
        expect(withoutSequences(again), equals: withoutSequences(exported))
      }
      try expect(tool.succeed("info", "other", "--json").json()["lastSequence"] as? Int, equals: 3)

      // Where there is something else, the last write wins.
      try tool.succeed("put", "other", "b", #"{"n":99}"#)
      try tool.succeed("put", "other", "c", #"{"n":99}"#)
      try tool.succeed("import", "other", "-", input: exported)
      try expect(tool.succeed("get", "other", "b").output, equals: "{\"n\":2}\n")
      try expect(
        tool.succeed("get", "other", "b", "--json").json()["rev"].map { "\($0)".hasPrefix("4-") },
        equals: true)
      try expect(tool("get", "other", "c").status, equals: 1)
    }
  }

  @Test func aLineWithoutAnIDGetsAUUIDAndAnotherPropertyCanBeIt() throws {
    try TestEngine.lmdb.withDatabase { tool in
      try tool.succeed(
        "import", "db", "-", "--id-property", "key", input: "{\"key\":\"k\",\"a\":1}\n{\"a\":2}\n")
      let ids = try tool.succeed("ls", "db").lines
      expect(ids.count, equals: 2)
      expect(ids.contains("k"))
      expect(ids.contains { UUID(uuidString: $0) != nil })
      try expect(tool.succeed("get", "db", "k").output, equals: "{\"a\":1}\n")
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
        expect(result.status, equals: 2, "\(bad)")
        expect(result.errors.contains("in.jsonl: line 26: "), "\(bad): \(result.errors)")
        expect(result.errors.contains("20 documents were imported"))
      }
      try expect(tool.succeed("info", "db", "--json").json()["documents"] as? Int, equals: 20)
    }
  }

  @Test func inputThatCantBeReadIsStatus2() throws {
    try TestEngine.sqlite.withDatabase { tool in
      try tool.succeed("import", "db", "-", input: Self.lines)
      try tool.succeed("export", "db", "out.jsonl.gz")
      let whole = try Data(contentsOf: URL(filePath: tool.path("out.jsonl.gz")))
      try whole.dropLast(12).write(to: URL(filePath: tool.path("cut.jsonl.gz")))
      try expect(tool("import", "db", "cut.jsonl.gz").status, equals: 2)
      try expect(tool("import", "db", "absent.jsonl").status, equals: 2)
      try expect(tool("export", "db", "absent/out.jsonl").status, equals: 2)
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
      expect(result.status, equals: 130)
      expect(result.errors.contains("200 documents were imported"))
      try pipe.close()
      try expect(tool.succeed("ls", "db").lines.count, equals: 200)
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
      try expect(child.wait().output, equals: "\(isLong ? "1,000,000" : "20,000") documents\n")
      expect(peak > 1 << 20)
      expect(peak < 200 << 20, "\(peak >> 20) MiB")
    }
  }
}
