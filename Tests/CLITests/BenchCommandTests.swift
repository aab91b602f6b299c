import TestSupport

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
      #expect(results.count == 2)
      for result in results {
        let metrics = try #require(result["metrics"] as? [String: [String: Any]])
        let samples = try #require(metrics["allocations"]?["samples"] as? [Double])
        // A transaction at least, and not as much as the whole process.
        #expect(samples.count == 1 && samples[0] >= 1 && samples[0] < 25_000, "\(samples)")
      }
    }
  }
}
