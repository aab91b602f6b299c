import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// Two results files held against each other, and the forms that other programs read.
struct ComparisonTests {
  private static let machine = Machine(cpu: "c", cores: 2, memoryBytes: 1, os: "o", filesystem: "f")

  /// Results of workloads with these seconds a round, and limits of a second.
  private func file(
    _ seconds: [String: [Double]], machine: Machine = machine, library: String = "LMDB 0.9.24"
  ) throws -> ResultsFile {
    let count = seconds.values.first?.count ?? 0
    let workloads = seconds.sorted { $0.key < $1.key }.map { name, seconds in
      Workload(
        suite: "s", name: name, summary: "", parameters: ["n": 1, "text": "a,\"b\""], operations: 10,
        limit: .init(name: { _ in "bare" }, prepare: { _ in Trial(run: { .seconds(1) }) })
      ) { context in
        let duration = seconds[context.round % seconds.count]
        return Trial(run: { .seconds(duration) }, fileBytes: { 4_096 })
      }
    }
    return ResultsFile(
      touchstone: "0.1.0", machine: machine, engines: ["lmdb": .init(library: library, settings: [:])],
      dataset: nil, results: try ran(workloads, on: ["lmdb"], rounds: count))
  }

  private static let nine = [1.00, 1.02, 0.99, 1.01, 1.03, 0.98, 1.00, 1.02, 0.99]

  @Test func whatIsFifteenPercentSlowerIsWorseAndWhatIsEqualCannotBeTold() throws {
    let base = try file(["same": Self.nine, "slow": Self.nine, "fast": Self.nine])
    let new = try file([
      "same": Self.nine.reversed(), "slow": Self.nine.map { $0 * 1.15 }, "fast": Self.nine.map { $0 / 2 },
    ])
    let comparison = Comparison(base: base, new: new, measures: [.metric(.seconds), .normalized])
    func row(_ name: String, _ measure: Comparison.Measure) throws -> Comparison.Row {
      try #require(comparison.rows.first { $0.label.hasPrefix(name) && $0.measure == measure })
    }
    for measure in [Comparison.Measure.metric(.seconds), .normalized] {
      try expect(row("same", measure).verdict, equals: .unclear)
      try expect(row("slow", measure).verdict, equals: .worse)
      try expect(row("fast", measure).verdict, equals: .better)
      try expect(abs(try row("slow", measure).ratio - 1.15) < 1e-9)
    }
    expect(comparison.warnings, equals: [])
    let text = ComparisonTable(comparison).text()
    expect(
      text.contains("normalized: 1 better, 1 worse, 1 without a significant difference, of 3."), "\(text)")
    expect(!ComparisonTable(comparison, onlyDifferences: true).text().contains("same"))
  }

  /// However exact the samples are.
  @Test func whatDiffersByLessThanHalfAPercentIsNotWorse() throws {
    let exact = [Double](repeating: 1, count: 9)
    let base = try file(["little": exact, "more": exact])
    let new = try file(["little": exact.map { $0 * 1.004 }, "more": exact.map { $0 * 1.006 }])
    let rows = Comparison(base: base, new: new, measures: [.metric(.seconds)]).rows
    expect(rows.first { $0.label.hasPrefix("little") }?.verdict, equals: .unclear)
    expect(rows.first { $0.label.hasPrefix("more") }?.verdict, equals: .worse)
  }

  /// Of operations a second, more is better.
  @Test func moreOperationsASecondAreBetter() throws {
    let base = try file(["w": Self.nine])
    let new = try file(["w": Self.nine.map { $0 / 2 }])
    let rows = Comparison(base: base, new: new, measures: [.metric(.opsPerSecond)]).rows
    expect(rows.map(\.verdict), equals: [.better])
  }

  /// Of many rows without a difference hardly one is called different: the correction for their number.
  @Test func equalRunsAreSeldomCalledDifferent() throws {
    var random = ResamplingRandom(seed: 11)
    func noise() -> [Double] { (0..<9).map { _ in 1 + Double(random.below(1_000)) / 10_000 } }
    let template = try file(["w": [1]])
    var alarms = 0
    for _ in 0..<20 {
      var first: [String: [Double]] = [:]
      var second: [String: [Double]] = [:]
      for number in 0..<10 {
        first["w\(number)"] = noise()
        second["w\(number)"] = noise()
      }
      let base = try results(first, like: template)
      let new = try results(second, like: template)
      let comparison = Comparison(base: base, new: new, measures: [.metric(.seconds)])
      alarms += comparison.rows.contains { $0.verdict != .unclear } ? 1 : 0
    }
    expect(alarms <= 3)
  }

  /// Results without running anything.
  private func results(_ seconds: [String: [Double]], like template: ResultsFile) throws -> ResultsFile {
    var file = template
    let one = file.results[0]
    file.results = try seconds.sorted { $0.key < $1.key }.map { name, samples in
      var result = one
      result.workload = name
      result.limit = nil
      let distribution = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Distribution(samples)))
      let metrics = Dictionary(
        uniqueKeysWithValues: Metric.allCases.filter(\.isRequired).map { ($0.rawValue, distribution) })
      result.metrics = try JSONDecoder().decode(
        WorkloadResult.Metrics.self, from: JSONSerialization.data(withJSONObject: metrics))
      return result
    }
    return file
  }

  @Test func runsThatDoNotCompareAreToldOf() throws {
    let base = try file(["a": [1], "b": [1]])
    var other = Self.machine
    other.cpu = "faster"
    let new = try file(["b": [1], "c": [1]], machine: other, library: "LMDB 1.0")
    let comparison = Comparison(base: base, new: new)
    expect(comparison.warnings.count, equals: 2)
    expect(comparison.warnings.contains { $0.contains("LMDB 0.9.24") && $0.contains("LMDB 1.0") })
    expect(comparison.unmatched.count, equals: 2)
    expect(Set(comparison.rows.map(\.label)).count, equals: 1)
  }

  @Test func commaSeparatedValuesReadBack() throws {
    let lines = ResultsExport([try file(["w": [1, 3, 2]])]).csv().split(separator: "\r\n").map(String.init)
    let header = lines[0].split(separator: ",").map(String.init)
    let seconds = try #require(lines.first { $0.contains(",seconds,") })
    // The parameter with a comma and quotes is quoted (RFC 4180).
    let quoted = "\"n=1, text=a,\"\"b\"\"\""
    expect(seconds.contains(quoted))
    let cells = seconds.replacing(quoted, with: "P").split(separator: ",", omittingEmptySubsequences: false)
    expect(cells.count, equals: header.count)
    let row = Dictionary(uniqueKeysWithValues: zip(header, cells.map(String.init)))
    expect(row["median"] == "2.0" && row["samples"] == "3" && row["unit"] == "s" && row["engine"] == "lmdb")
    expect(lines.contains { $0.contains(",normalized,") })
  }

  @Test func markdownHasARowForEveryWorkloadOfAllFilesOnce() throws {
    let text = ResultsExport([try file(["v": [1], "w": [2]]), try file(["w": [7], "x": [3]])]).markdown()
    let lines = text.split(separator: "\n")
    expect(lines[0], equals: "| s | lmdb |")
    expect(lines.count, equals: 5)
    expect(lines[3].contains("200 ms (2.00)") && lines[4].hasPrefix("| x"))
  }

  @Test func dashboardsGetNamesUnitsAndValues() throws {
    let data = try ResultsExport([try file(["w": [2]])]).smallerIsBetter()
    let entries = try #require(JSONSerialization.jsonObject(with: data) as? [[String: Any]])
    expect(entries.count, equals: 2)
    expect(entries.allSatisfy { $0["name"] is String && $0["unit"] is String && $0["value"] is Double })
    expect(entries[0]["unit"] as? String, equals: "ns/op")
    expect(entries[0]["value"] as? Double, equals: 2e8)
    expect(Set(entries.compactMap { $0["name"] as? String }).count, equals: 2)
  }

  @Test func conditionsAreNotedWhenTheMachineWasNotQuiet() {
    let quiet = RunConditions(
      seed: 1, calibration: .init(start: 0.04, end: 0.0401), load: .init(start: 0.2, end: 1),
      stealShare: 0.001)
    expect(quiet.notes(cores: 2), equals: [])
    let noisy = RunConditions(
      seed: 1, calibration: .init(start: 0.04, end: 0.05), load: .init(start: 3, end: 3), stealShare: 0.1)
    let notes = noisy.notes(cores: 2)
    expect(notes.count, equals: 3)
    expect(notes[0].contains("25% slower"))
    let watched = MachineWatch(seed: 5).conditions()
    expect(watched.seed == 5 && watched.calibration.start > 0 && watched.calibration.end > 0)
    expect((0...1).contains(watched.stealShare))
  }

  @Test func outliersAreFarFromTheQuartiles() {
    expect(SampleStatistics.outliers([1, 1.1, 1, 0.9, 1, 5]), equals: [5])
    expect(SampleStatistics.outliers([1, 1.1, 1, 0.9, 1.2]), equals: [])
    expect(SampleStatistics.outliers([1, 9, 1, 1]), equals: [])
  }

  @Test func unpairedRatioHoldsTheRatioOfTheMedians() {
    let (ratio, interval) = Bootstrap.unpairedRatio(Self.nine.map { $0 * 2 }, over: Self.nine)
    expect(abs(ratio - 2) < 1e-12 && interval.contains(2) && interval.lowerBound > 1.9)
  }
}
