import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// A trend names the run from which on a workload is slower or faster, and nothing that is noise.
struct TrendTests {
  private static let stable = [1.00, 1.01, 0.99, 1.00, 1.02, 0.98, 1.00, 1.01]

  private func changes(_ values: [Double], least: Double = 0.03) -> [Int] {
    Trend.changes(values.map { [$0] }, leastChange: least).map(\.index)
  }

  @Test func noiseIsNoChange() {
    expect(changes(Self.stable), equals: [])
    var random = ResamplingRandom(seed: 3)
    var found = 0
    for _ in 0..<200 {
      let values = (0..<20).map { _ in
        (0..<9).map { _ in 0.9 + Double(random.below(2_000)) / 10_000 }
      }
      found += Trend.changes(values, leastChange: 0.03).count
    }
    expect(found <= 4, "\(found)")
  }

  @Test func aStepIsFoundWhereItIs() {
    expect(changes(Self.stable + Self.stable.map { $0 * 1.2 }), equals: [8])
    let found = Trend.changes((Self.stable + Self.stable.map { $0 * 1.2 }).map { [$0] }, leastChange: 0.03)
    expect(abs((found.first?.ratio ?? 0) - 1.2) < 1e-9)
    // Up and down again, and in the last run.
    let three = Self.stable + Self.stable.map { $0 * 1.3 } + Self.stable
    expect(changes(three), equals: [8, 16])
    expect(changes(Self.stable + [1.5]), equals: [8])
    // A slow drift has no single beginning, but it isn't hidden.
    expect(!changes((0..<20).map { 1 + Double($0) * 0.03 }).isEmpty)
    // One run that was disturbed is none.
    expect(changes(Self.stable + [1.3] + Self.stable), equals: [])
  }

  @Test func countsThatDoNotVaryShowSmallSteps() {
    expect(changes([100, 100, 100.1, 101, 101.1, 101], least: 0.005), equals: [3])
    expect(changes([100, 100, 100.1, 100.3, 100.2, 100.3], least: 0.005), equals: [])
    expect(changes([100, 108], least: 0.005), equals: [1])
    expect(changes([100], least: 0.005), equals: [])
  }

  /// What a run's own samples vary by can't be a change between two runs.
  @Test func samplesThatVaryHideASmallStep() {
    let wide = [0.7, 1.3, 0.8, 1.2, 1.0]
    expect(Trend.changes([wide, wide.map { $0 * 1.1 }], leastChange: 0.03), equals: [])
    expect(Trend.changes([wide, wide.map { $0 * 4 }], leastChange: 0.03).map(\.index), equals: [1])
  }

  // MARK: Files

  private func files(_ seconds: [Double], instructions: [Int?] = []) throws -> [ResultsFile] {
    try seconds.enumerated().map { number, seconds in
      var file = ResultsFile(
        touchstone: "0.3.0+\(number)", started: "2026-11-\(10 + number)T00:00:00Z",
        machine: Machine(cpu: "c", cores: 2, memoryBytes: 1, os: "o", filesystem: "f"),
        engines: [:], dataset: nil, results: [try result(seconds)])
      if let count = number < instructions.count ? instructions[number] : nil {
        file.results[0].instructions = .init(run: count)
      }
      return file
    }
  }

  private func result(_ seconds: Double) throws -> WorkloadResult {
    let one = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Distribution([seconds])))
    var metrics: [String: Any] = [:]
    for metric in Metric.allCases where metric.isRequired { metrics[metric.rawValue] = one }
    let object: [String: Any] = [
      "suite": "s", "workload": "w", "engine": "lmdb", "parameters": [String: Any](), "operations": 1,
      "metrics": metrics,
    ]
    return try JSONDecoder().decode(
      WorkloadResult.self, from: JSONSerialization.data(withJSONObject: object))
  }

  @Test func runsAreInTheOrderOfTheirBegin() throws {
    let files = try files([1, 1.01, 1, 1.5, 1.51, 1.5])
    let row = try #require(Trend([files[4], files[0], files[5], files[3], files[1], files[2]]).rows.first)
    expect(row.measure, equals: .seconds)
    expect(row.points.map(\.build), equals: (0..<6).map { "0.3.0+\($0)" })
    expect(row.changes.map(\.index), equals: [3])
    let trend = Trend(files)
    expect(trend.table.contains("1.50 at 0.3.0+3"), "\(trend.table)")
    let json = try JSONSerialization.jsonObject(with: Data(trend.json().utf8)) as? [String: Any]
    let rows = try #require(json?["rows"] as? [[String: Any]])
    expect((rows[0]["changes"] as? [[String: Any]])?.first?["build"] as? String, equals: "0.3.0+3")
    expect(Trend([files[0]]).rows.isEmpty)
  }

  @Test func instructionsAreTakenWhereAllRunsCountedThem() throws {
    let counted = try files([1, 2, 3], instructions: [1_000, 1_000, 1_100])
    let row = try #require(Trend(counted).rows.first)
    expect(row.measure == .instructions && row.changes.map(\.index) == [2])
    try expect(
      #require(Trend(files([1, 2, 3], instructions: [1, nil, 1])).rows.first).measure, equals: .seconds)
  }

  @Test func secondsOfAnotherMachineAreLeftOut() throws {
    var files = try files([9, 1, 1.01, 1])
    files[0].machine.cpu = "another"
    let trend = Trend(files)
    expect(trend.foreignRuns == 1 && trend.rows.first?.points.count == 3)
  }

  @Test func aReportOfSeveralRunsDrawsThem() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let names = try Report(files([1, 1.01, 1, 1.5, 1.51, 1.5])).write(to: directory.path)
    expect(names.contains("trend-s.svg"))
    let page = try String(contentsOfFile: "\(directory.path)/index.html", encoding: .utf8)
    expect(page.contains("<h2>From run to run</h2>") && page.contains("0.3.0+3"))
    try expect(Report(files([1])).trendCharts.isEmpty)
  }
}
