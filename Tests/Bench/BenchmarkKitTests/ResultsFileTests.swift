import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// Results files follow schema 1, read back as they were, and whatever breaks the schema is named.
struct ResultsFileTests {
  private func results() throws -> [WorkloadResult] {
    let workloads = [1, 4].map { threads in
      Workload(
        suite: "engine", name: "commitsync", summary: "",
        parameters: ["threads": .integer(threads), "index": "none", "cold": false], operations: 1_000,
        limit: .init(
          name: { "\($0) put, bare C" }, prepare: { _ in Trial(run: { .seconds(0.08) }) })
      ) { context in
        Trial(run: { .seconds(0.1 + Double(context.round) / 100) }, fileBytes: { 4_096 })
      }
    }
    return try ran(workloads, on: ["lmdb", "sqlite"], rounds: 3)
  }

  private func file() throws -> ResultsFile {
    ResultsFile(
      touchstone: "0.1.0+abc", started: "2026-11-20T10:00:00Z",
      machine: .current(directory: NSTemporaryDirectory()),
      engines: [
        "lmdb": .init(library: "LMDB 0.9.24", settings: ["durability": "normal"]),
        "sqlite": .init(library: "SQLite 3.40.1", settings: ["durability": "normal"]),
      ],
      dataset: .init(
        name: "travel-sample", documents: 10, jsonBytes: 100, sha256: String(repeating: "a", count: 64)),
      results: try results())
  }

  @Test func followsTheSchemaAndReadsBack() throws {
    let file = try file()
    let data = try file.encoded()
    expect(ResultsSchema.faults(in: data), equals: [])
    try expect(ResultsFile(validating: data), equals: file)
  }

  @Test func sameResultsGiveTheSameBytes() throws {
    let file = try file()
    try expect(file.encoded(), equals: file.encoded())
  }

  @Test func membersAreThoseOfTheSchema() throws {
    let json = try JSONSerialization.jsonObject(with: file().encoded())
    let object = try #require(json as? [String: Any])
    expect(
      Set(object.keys),
      equals: ["schema", "touchstone", "started", "machine", "engines", "dataset", "results"])
    let result = try #require((object["results"] as? [[String: Any]])?.first)
    expect(
      Set(result.keys),
      equals: ["suite", "workload", "engine", "parameters", "operations", "metrics", "limit"])
    let metrics = try #require(result["metrics"] as? [String: [String: Any]])
    let required: Set = [
      "seconds", "ops_per_second", "cpu_seconds", "bytes_written", "peak_rss_bytes", "file_bytes",
    ]
    expect(required.isSubset(of: metrics.keys))
    expect(Set(metrics.keys).isSubset(of: Metric.allCases.map(\.rawValue)))
    try expect(
      Set(try #require(metrics["seconds"]).keys), equals: ["samples", "median", "p95", "p99", "ci95"])
    let parameters = try #require(result["parameters"] as? [String: Any])
    expect(parameters["threads"] as? Int, equals: 1)
    expect(parameters["index"] as? String, equals: "none")
    let limit = try #require(result["limit"] as? [String: Any])
    expect(limit["normalized"] as? Double, equals: 0.11 / 0.08)
  }

  @Test func datasetMayBeLeftOut() throws {
    var file = try file()
    file.dataset = nil
    try expect(ResultsSchema.faults(in: try file.encoded()), equals: [])
  }

  /// What is broken, and what the fault must begin with.
  @Test(arguments: [
    ("schema", "schema"), ("touchstone", "touchstone"), ("started", "started"), ("machine", "machine"),
    ("engines", "engines"), ("results", "results"),
  ])
  func missingMembersAreNamed(_ member: String, _ fault: String) throws {
    var object = try #require(JSONSerialization.jsonObject(with: file().encoded()) as? [String: Any])
    object[member] = nil
    let faults = ResultsSchema.faults(in: try JSONSerialization.data(withJSONObject: object))
    expect(faults.contains { $0.hasPrefix(fault) }, "\(faults)")
  }

  @Test func brokenResultsAreNamed() throws {
    let whole = try #require(JSONSerialization.jsonObject(with: file().encoded()) as? [String: Any])
    let results = try #require(whole["results"] as? [[String: Any]])
    func faults(_ change: (inout [[String: Any]]) -> Void) throws -> String {
      var changed = results
      change(&changed)
      var object = whole
      object["results"] = changed
      return ResultsSchema.faults(in: try JSONSerialization.data(withJSONObject: object)).joined(
        separator: "\n")
    }
    try expect(faults { $0.append($0[0]) }.contains("occurs twice"))
    try expect(faults { $0[0]["engine"] = "rocks" }.contains("isn't one of the engines"))
    try expect(faults { $0[0]["operations"] = 0 }.contains("operations"))
    try expect(faults { $0[0]["operations"] = true }.contains("operations: it is missing or not a number"))
    try expect(faults { $0[0]["metrics"] = [:] }.contains("metrics.seconds"))
    try expect(
      faults { $0[0]["limit"] = ["name": "x", "normalized": 7, "seconds": ["median": 1]] }
        .contains("not the ratio of the medians"))
    expect(ResultsSchema.faults(in: Data("[]".utf8)), equals: ["it is not a JSON object"])
    #expect(throws: InvalidResults.self) { try ResultsFile(validating: Data("{}".utf8)) }
  }

  @Test func timestampsAreInUTC() {
    expect(ResultsFile.timestamp(Date(timeIntervalSince1970: 1_795_168_800)), equals: "2026-11-20T10:00:00Z")
  }

  @Test func tableHasAnEngineAColumnAndRatios() throws {
    let text = ResultsTable(try results(), engines: ["lmdb", "sqlite"]).text()
    let lines = text.split(separator: "\n")
    expect(lines[0].hasPrefix("engine "))
    expect(lines[0].contains("lmdb") && lines[0].contains("sqlite"))
    // 0.11 s for 1,000 operations, its limit 0.08 s.
    expect(lines[1].contains("commitsync") && lines[1].contains("110 µs (1.38)"))
    expect(lines[1].contains("×1.00"))
    expect(lines[2].contains("threads=4"))
  }

  @Test func longParametersThatRowsHaveInCommonAreSaidOnce() throws {
    let mix = "read=80,update=15,query=5,distribution=zipfian"
    func results(_ threads: [Int]) throws -> [WorkloadResult] {
      let mixes: [Parameters] = threads.map {
        ["operations": .string(mix), "seconds": 20, "rate": 500, "threads": .integer($0)]
      }
      let workloads = ([["index": "all"]] + mixes).map { parameters in
        Workload(
          suite: "mine", name: parameters.count == 1 ? "hotels" : "mix", summary: "", parameters: parameters,
          operations: 1_000
        ) { _ in Trial(run: { .seconds(0.1) }) }
      }
      return try ran(workloads, on: ["lmdb", "sqlite"], rounds: 3)
    }
    func lines(_ threads: [Int]) throws -> [String] {
      let lines = try ResultsTable(results(threads), engines: ["lmdb", "sqlite"]).text()
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
      return lines
    }
    let one = try lines([4])
    expect(one[1].hasPrefix("hotels  index=all  100 µs"), "\(one)")
    expect(one[2].hasPrefix("mix                100 µs"), "\(one)")
    expect(
      Array(one[3...6]),
      equals: ["", "mix: operations=\(mix), rate=500,", "  seconds=20, threads=4", ""], "\(one)")
    let two = try lines([1, 4])
    expect(two[2].hasPrefix("mix     threads=1  ") && two[3].hasPrefix("mix     threads=4  "), "\(two)")
    expect(
      Array(two[4...7]), equals: ["", "mix: operations=\(mix), rate=500,", "  seconds=20", ""], "\(two)")
  }

  @Test func summarySaysWhoWonAtWhichDurability() throws {
    let text = ResultsSummary(try results(), engines: ["lmdb", "sqlite"], durability: "normal").text()
    expect(text.contains("durability normal"))
    expect(text.contains("no clear winner in 2"))
    expect(text.contains("sqlite was 1.00x faster than lmdb"))
    // Nobody who has won nothing is named, and one workload has no range.
    expect(!text.contains("was fastest in 0"), "\(text)")
    let one = ResultsSummary(
      try results().filter { $0.parameters["threads"] == .integer(1) }, engines: ["lmdb", "sqlite"],
      durability: "normal"
    ).text()
    expect(one.contains("durability normal, 1 workload: there was no clear winner in 1."), "\(one)")
    expect(one.contains("sqlite was 1.00x faster than lmdb in commitsync"), "\(one)")
  }

  @Test(arguments: [
    (1.0, "1.00 s"), (0.9996, "1.00 s"), (0.0123, "12.3 ms"), (1.04e-6, "1.04 µs"), (123.4e-9, "123 ns"),
    (0, "0.00 ns"), (12.34, "12.3 s"),
  ])
  func durationsHaveThreeDigitsAndAUnit(_ seconds: Double, _ text: String) {
    expect(Format.duration(seconds), equals: text)
  }

  @Test func machineIsDescribed() {
    let machine = Machine.current(directory: NSTemporaryDirectory())
    expect(!machine.cpu.isEmpty && machine.cores > 0 && machine.memoryBytes > 0)
    expect(!machine.os.isEmpty && !machine.filesystem.isEmpty)
  }
}
