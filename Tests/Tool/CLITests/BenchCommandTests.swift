import TestSupport

@testable import touchstone

struct BenchCommandTests {
  @Test(.disabled(if: isSanitized, "a sanitizer allocates in its own way, uncounted"))
  func allocationsAreCountedInAProcessOfTheirOwn() throws {
    try Tool.run { tool in
      try tool.succeed(
        "bench", "engine", "--only", "readrandom", "--keys", "500", "--samples", "2", "--engines", "lmdb",
        "--allocations", "--output", "r.json")
      let file = try #require(
        try JSONSerialization.jsonObject(with: Data(try tool.read("r.json").utf8)) as? [String: Any])
      let results = try #require(file["results"] as? [[String: Any]])
      expect(results.count, equals: 2)
      for result in results {
        let metrics = try #require(result["metrics"] as? [String: [String: Any]])
        let samples = try #require(metrics["allocations"]?["samples"] as? [Double])
        // A transaction at least, and not as much as the whole process.
        expect(samples.count == 1 && samples[0] >= 1 && samples[0] < 25_000, "\(samples)")
      }
    }
  }

  @Test func aDataSetThatCannotBeMeasuredIsRefusedWithItsLine() throws {
    try Tool.run { tool in
      let sets = [
        ("empty", "", "there are no documents"),
        ("double", #"{"_id":"a"}"# + "\n" + #"{"_id":"a"}"#, "line 2: the document has the ID a of line 1"),
        ("broken", #"{"_id":"a"}"# + "\n\n" + #"{"_id":"b",oops}"#, "line 3: it is not a JSON object"),
        ("reserved", #"{"_id":"_a"}"#, "line 1: the ID _a begins with an underscore"),
      ]
      for (name, text, reason) in sets {
        try tool.write(text, to: name)
        let result = try tool(
          "bench", "travel", "--only", "reopen", "--samples", "1", "--engines", "sqlite", "--dataset", name)
        expect(result.status == 2 && result.errors.contains("\(name): "), "\(result.errors)")
        expect(result.errors.contains(reason), "\(result.errors)")
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: tool.directory).filter {
        !$0.hasPrefix(".")
      }
      expect(left.sorted(), equals: sets.map(\.0).sorted())
    }
  }

  /// Whatever repository it is started in, and wherever the executable was copied to.
  @Test func onlyTheCheckoutThatItWasBuiltFromIsNamed() throws {
    try Tool.run { tool in
      func git(_ arguments: String...) throws -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-C", tool.directory]
        return try tool.run("/usr/bin/git", identity + arguments).output
      }
      _ = try git("init", "-q")
      try tool.write("a", to: "file")
      _ = try git("add", "file")
      _ = try git("commit", "-q", "-m", "x")
      let revision = try git("rev-parse", "--short", "HEAD").filter(\.isHexDigit)
      let source = tool.path("Sources/Tool/CLI/Commands/BenchCommand.swift")
      let inside = tool.path(".build/release/touchstone")
      expect(
        BenchCommand.version(executable: inside, source: source), equals: "\(touchstoneVersion)+\(revision)")
      expect(BenchCommand.version(executable: "/usr/bin/env", source: source), equals: touchstoneVersion)
      expect(
        BenchCommand.version(
          executable: inside, source: "/nowhere/Sources/Tool/CLI/Commands/BenchCommand.swift"),
        equals: touchstoneVersion)
      // A copy of the sources inside a repository isn't a checkout of it.
      let inner = tool.path("inner/Sources/Tool/CLI/Commands/BenchCommand.swift")
      try FileManager.default.createDirectory(atPath: tool.path("inner"), withIntermediateDirectories: true)
      expect(BenchCommand.version(executable: tool.path("inner/x"), source: inner), equals: touchstoneVersion)
      try tool.write("b", to: "file")
      expect(
        BenchCommand.version(executable: inside, source: source),
        equals: "\(touchstoneVersion)+\(revision).changed")
    }
  }
}
