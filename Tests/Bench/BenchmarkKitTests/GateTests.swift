import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// The gate fails what is slower beyond doubt, and nothing else.
struct GateTests {
  /// What a workload took: seconds a round, the limit a second each, and which share of it the processor was busy.
  private struct Taken {
    var seconds: [Double]
    var busy = 1.0
    var instructions: Int?
  }

  private func file(_ taken: [String: Taken], hasLimit: Bool = true) throws -> ResultsFile {
    func distribution(_ samples: [Double]) throws -> Any {
      try JSONSerialization.jsonObject(with: JSONEncoder().encode(Distribution(samples)))
    }
    let results = try taken.sorted { $0.key < $1.key }.map { name, taken -> WorkloadResult in
      let cpu = taken.seconds.map { $0 * taken.busy }
      var metrics: [String: Any] = [:]
      for metric in Metric.allCases where metric.isRequired {
        metrics[metric.rawValue] = try distribution(taken.seconds)
      }
      metrics["cpu_seconds"] = try distribution(cpu)
      var object: [String: Any] = [
        "suite": "s", "workload": name, "engine": "lmdb", "parameters": [String: Any](), "operations": 1,
        "metrics": metrics,
      ]
      if hasLimit {
        let ones = taken.seconds.map { _ in 1.0 }
        object["limit"] = [
          "name": "bare", "seconds": try distribution(ones), "cpu_seconds": try distribution(ones),
          "normalized": SampleStatistics.median(taken.seconds),
        ]
      }
      if let count = taken.instructions { object["instructions"] = ["run": count] }
      return try JSONDecoder().decode(
        WorkloadResult.self, from: JSONSerialization.data(withJSONObject: object))
    }
    return ResultsFile(
      touchstone: "0", machine: Machine(cpu: "c", cores: 2, memoryBytes: 1, os: "o", filesystem: "f"),
      engines: ["lmdb": .init(library: "LMDB", settings: [:])], dataset: nil, results: results)
  }

  private static let nine = [1.00, 1.02, 0.99, 1.01, 1.03, 0.98, 1.00, 1.02, 0.99]

  private func row(_ new: Taken, _ old: Taken) throws -> Gate.Row {
    let gate = Gate(try file(["w": new]), baseline: try file(["w": old]))
    return try #require(gate.rows.first)
  }

  @Test func countedInstructionsDecideWhereBothRunsHaveThem() throws {
    // Times that say the opposite don't matter.
    let old = Taken(seconds: Self.nine, instructions: 1_000_000)
    let slower = try row(Taken(seconds: Self.nine.map { $0 / 2 }, instructions: 1_150_000), old)
    expect(slower.measure == .instructions && slower.isBeyond && slower.ratio == 1.15)
    let same = try row(Taken(seconds: Self.nine.map { $0 * 2 }, instructions: 1_001_000), old)
    expect(same.measure == .instructions && !same.isBeyond)
    try expect(row(Taken(seconds: Self.nine), old).measure, equals: .processor)
  }

  @Test func processorTimeDecidesWhereTheProcessorIsBusy() throws {
    let old = Taken(seconds: Self.nine)
    try expect(row(Taken(seconds: Self.nine.map { $0 * 1.2 }), old).isBeyond)
    try expect(!row(Taken(seconds: Self.nine.map { $0 * 1.05 }), old).isBeyond)
    try expect(!row(Taken(seconds: Self.nine.map { $0 / 2 }), old).isBeyond)
  }

  @Test func whatWaitsForTheDiskHasAThresholdOfItsOwn() throws {
    let old = Taken(seconds: Self.nine, busy: 0.2)
    let slower = try row(Taken(seconds: Self.nine.map { $0 * 1.2 }, busy: 0.2), old)
    expect(slower.measure == .wall && !slower.isBeyond)
    try expect(row(Taken(seconds: Self.nine.map { $0 * 1.5 }, busy: 0.2), old).isBeyond)
  }

  @Test func whatWaitsIsJudgedByItsInstructionsToo() throws {
    let old = try file(["w": Taken(seconds: Self.nine, busy: 0.2, instructions: 1_000_000)])
    func gate(_ new: Taken) throws -> Gate { Gate(try file(["w": new]), baseline: old) }
    let more = try gate(Taken(seconds: Self.nine, busy: 0.2, instructions: 1_150_000))
    expect(
      more.rows.map(\.measure) == [.instructions, .wall] && more.rows.map(\.isBeyond) == [true, false])
    let longer = try gate(Taken(seconds: Self.nine.map { $0 * 1.5 }, busy: 0.2, instructions: 1_000_000))
    expect(longer.rows.map(\.isBeyond), equals: [false, true])
    expect(longer.rows[0].isSame(as: more.rows[0]) && !longer.rows[0].isSame(as: more.rows[1]))
  }

  @Test func anIntervalThatReachesBelowTheThresholdDoesNotFail() throws {
    let noisy = [0.7, 1.9, 0.8, 1.6, 0.9, 1.8, 1.0, 1.7, 1.3]
    let found = try row(Taken(seconds: noisy), Taken(seconds: Self.nine))
    expect(found.ratio > 1.1 && !found.isBeyond)
  }

  @Test func whatCannotBeJudgedIsNamed() throws {
    let gate = Gate(
      try file(["w": Taken(seconds: Self.nine), "new": Taken(seconds: Self.nine)], hasLimit: false),
      baseline: try file(["w": Taken(seconds: Self.nine)], hasLimit: false))
    expect(gate.rows.isEmpty)
    expect(gate.notJudged.count, equals: 2)
    expect(gate.notJudged.contains { $0.contains("s new on lmdb") && $0.contains("baseline") })
  }

  @Test func runsMergeSampleBySample() throws {
    let first = try file(["a": Taken(seconds: [1, 2], instructions: 7), "b": Taken(seconds: [1, 1])])
    let second = try file(["a": Taken(seconds: [3])])
    let merged = try #require(ResultsFile.merged([first, second]))
    expect(merged.results.map(\.workload), equals: ["a"])
    expect(merged.results[0].metrics.seconds.samples, equals: [1, 2, 3])
    expect(merged.results[0].limit?.seconds.samples, equals: [1, 1, 1])
    expect(merged.results[0].limit?.normalized, equals: 2)
    expect(merged.results[0].instructions?.run, equals: 7)
    try expect(ResultsSchema.faults(in: try merged.encoded()), equals: [])
    expect(ResultsFile.merged([]) == nil)
  }

  /// What a row says it would have shown is shown, and what is less isn't.
  @Test func aRowTellsTheSmallestSlowdownThatItWouldHaveShown() throws {
    let old = Taken(seconds: Self.nine)
    let quiet = try row(old, old)
    expect(quiet.visible > 1.1 && quiet.visible < 1.15 && !quiet.isBlurred)
    let wide = Self.nine.enumerated().map { $0 % 2 == 0 ? $1 * 1.2 : $1 / 1.2 }
    let blurred = try row(Taken(seconds: wide), old)
    expect(blurred.isBlurred && blurred.canBeSharper && !blurred.isBeyond)
    for (factor, isShown) in [(1.01, true), (0.99, false)] {
      let slower = wide.map { $0 / blurred.ratio * blurred.visible * factor }
      try expect(row(Taken(seconds: slower), old).isBeyond, equals: isShown, "\(factor)")
    }
    // More samples narrow it, but not what the baseline varies by.
    var more = try file(["w": Taken(seconds: wide)])
    for _ in 0..<20 { more.add(try file(["w": Taken(seconds: Self.nine), "other": old])) }
    expect(more.results.map(\.workload) == ["w"] && more.results[0].metrics.seconds.samples.count == 189)
    try expect(#require(Gate(more, baseline: try file(["w": old])).rows.first).isBlurred, equals: false)
    let low = Self.nine.enumerated().map { $0 % 2 == 0 ? $1 / 1.2 : $1 * 1.2 }
    let byBaseline = try row(old, Taken(seconds: low))
    expect(byBaseline.isBlurred && !byBaseline.canBeSharper)
    // Counts don't vary.
    let counted = Taken(seconds: wide, instructions: 1_000)
    try expect(row(counted, counted).visible, equals: 1.1)
  }

  /// Nine noisy samples a side, of equal runs and of runs that are 15% slower: how often the gate's first look errs.
  @Test func noiseSeldomFailsAndASlowdownIsSeen() throws {
    var random = ResamplingRandom(seed: 5)
    // Within 4% of the median, as measured between runs of one build.
    func noise(_ factor: Double) -> [Double] {
      (0..<9).map { _ in factor * (0.96 + Double(random.below(800)) / 10_000) }
    }
    var alarms = 0
    var missed = 0
    for _ in 0..<40 {
      let base = Taken(seconds: noise(1))
      if try row(Taken(seconds: noise(1)), base).isBeyond { alarms += 1 }
      if try !row(Taken(seconds: noise(1.25)), base).isBeyond { missed += 1 }
    }
    expect(alarms, equals: 0)
    expect(missed <= 2)
  }

  @Test func plantedDelayTakesItsShare() {
    let delay = PlantedDelay(share: 0.15)
    expect(delay.run("w", seconds: 0.1) >= 0.015)
    expect(PlantedDelay(share: 0.15, instructions: [:]).run("w", seconds: 10) < 1)
  }
}
