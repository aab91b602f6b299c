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
        let bytes = try #require(metrics["file_bytes"]?["median"] as? Double)
        expect(bytes > 500 * 150, "\(bytes)")
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

  /// A workload of some milliseconds: on a busy machine only what is fifty times as slow is sure to be seen.
  @Test(.disabled(if: isSanitized, "it takes a minute"))
  func aGateEndsWithItsAnswerInEachFormat() throws {
    try Tool.run { tool in
      func gate(_ arguments: String...) throws -> Tool.Result {
        try tool.run(
          Tool.executable,
          [
            "gate", "harness", "--only", "together", "--samples", "3", "--no-instructions", "--time-limit",
            "0",
          ] + arguments)
      }
      // A store gets its first baseline, is compared with, and keeps it when a workload has failed.
      let none = try gate("--store", "baselines")
      expect(none.status == 4 && none.errors.contains("has no baseline 'main'"), "\(none.errors)")
      let first = try gate("--store", "baselines", "--save-as", "main")
      expect(first.status == 0 && first.errors.contains("the first baseline"), "\(first.errors)")
      let files = try FileManager.default.subpathsOfDirectory(atPath: tool.path("baselines"))
      let baseline = try #require(files.first { $0.hasSuffix("main.json") }.map { "baselines/" + $0 })

      let passed = try gate(
        "--store", "baselines", "--save-as", "topic/a", "--threshold", "1000", "--format", "json")
      expect(passed.status, equals: 0, "\(passed.errors)")
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(passed.output.utf8)) as? [String: Any])
      expect(object["outcome"] as? String != "failed" && (object["rows"] as? [Any])?.isEmpty == false)

      try tool.write("# All.\n10 harness *\n", to: "thresholds")
      // On a machine that is busy enough, samples vary too much to tell. That has a status of its own.
      var attempt = 1
      func slowed() throws -> Tool.Result {
        try gate(
          "--store", "baselines", "--save-as", "slow\(attempt)", "--inconclusive", "fail", "--threshold",
          "1000", "--thresholds", "thresholds",
          "--inject-delay", "5000", "--format", "github", "--markdown", "summary.md", "--junit", "junit.xml")
      }
      var failed = try slowed()
      while failed.status == 4, attempt < 5 {
        attempt += 1
        failed = try slowed()
      }
      expect(failed.status, equals: 1, "\(failed.errors)")
      expect(failed.output.contains("::error file="), "\(failed.output)")
      expect(failed.output.contains("title=slower than allowed::harness together"), "\(failed.output)")
      try expect(tool.read("summary.md").contains("slower than allowed"))
      try expect(tool.read("junit.xml").contains("<failure"))
      try expect(gate("--store", "baselines", "--baseline", "slow\(attempt)").status, equals: 4)
      let other = try gate("--store", "baselines", "--baseline", "other")
      expect(other.status == 4 && other.errors.contains("it has main, "), "\(other.errors)")

      // Without a limit and without instructions there is nothing to judge by.
      try tool.write(tool.read(baseline).replacing("\"limit\"", with: "\"unlimited\""), to: "bare.json")
      let blind = try gate("--baseline", "bare.json", "--format", "junit")
      expect(blind.status == 4 && blind.errors.contains("nothing was judged"), "\(blind.errors)")

      try tool.write("10 engine *\nten travel", to: "thresholds")
      let wrong = try gate("--baseline", baseline, "--thresholds", "thresholds")
      expect(wrong.status == 2 && wrong.errors.contains("'thresholds': line 2: 'ten'"), "\(wrong.errors)")
      for arguments in [
        ["--json", "--format", "markdown"], ["--inconclusive", "maybe"], ["--save-as", "main"],
      ] {
        let result = try tool.run(
          Tool.executable, ["gate", "harness", "--baseline", baseline] + arguments)
        expect(result.status, equals: 2, "\(arguments)")
      }
    }
  }

  @Test func theListSaysWhatEachWorkloadDoesIn80Columns() throws {
    try Tool.run { tool in
      let list = try tool.succeed("bench", "--list")
      expect(list.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(list.output)")
      expect(
        list.output.contains("\n  insert-single           2,000 documents, a transaction each\n"),
        "\(list.output)")
      for suite in ["travel", "query", "endure", "mine"] {
        expect(list.output.hasPrefix(suite + ": ") || list.output.contains("\n" + suite + ": "))
      }
      let wrong = try tool("bench", "--engines", "oracle")
      expect(wrong.status == 2 && wrong.errors.contains(", or all"), "\(wrong.errors)")
    }
  }
}
