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

  // MARK: Thresholds

  @Test func theLastPatternThatFitsSetsTheThreshold() throws {
    var thresholds = Gate.Thresholds()
    try thresholds.addExceptions(
      """
      # What is new.
      5 travel insert *

      2.5/40   travel  insert (n=1) on l*b
      20 * on sqlite
      """)
    func of(_ identity: String) -> [Double] {
      let found = thresholds.of(identity)
      return [found.processor, found.waiting]
    }
    expect(of("travel insert (n=1) on lmdb"), equals: [0.025, 0.4])
    expect(of("travel insert (n=2) on lmdb"), equals: [0.05, 0.05 * 3])
    expect(of("travel insert (n=1) on sqlite"), equals: [0.2, 0.2 * 3])
    expect(of("travel inserts on lmdb"), equals: [0.1, 0.1 * 3])
    expect(of("travel insert (n=1) on lmdbs"), equals: [0.05, 0.05 * 3])
    // They are used: 8% more instructions fail where 5% are allowed.
    try thresholds.addExceptions("5 s w on *")
    let old = try file(["w": Taken(seconds: Self.nine, instructions: 1_000)])
    let new = try file(["w": Taken(seconds: Self.nine, instructions: 1_080)])
    expect(Gate(new, baseline: old, thresholds: thresholds).rows.map(\.isBeyond), equals: [true])
    expect(Gate(new, baseline: old).rows.map(\.isBeyond), equals: [false])
  }

  @Test(arguments: [
    ("5", "line 1: the name of a workload is missing"), ("x insert", "line 1: 'x' isn't a percentage"),
    ("\n5 a\n0 b", "line 3: '0' isn't"), ("1/2/3 a", "line 1: '1/2/3' has more than two"),
    ("5/ a", "line 1: '' isn't"),
  ])
  func aLineThatIsNoThresholdIsNamed(_ text: String, _ wanted: String) {
    var thresholds = Gate.Thresholds()
    let error = #expect(throws: Gate.ThresholdsError.self) { try thresholds.addExceptions(text) }
    expect(error?.description.hasPrefix(wanted) == true, "\(String(describing: error))")
  }

  // MARK: Stores

  @Test func aStoreHasTheBaselinesOfEachMachine() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let machine = Machine(
      cpu: "AMD EPYC(R) 7763", cores: 2, memoryBytes: 1, os: "Debian GNU/Linux 12 (bookworm), Linux 6.1.0",
      filesystem: "ext4")
    let store = BaselineStore(directory.path + "/baselines", machine: machine)
    expect(store.directory.hasSuffix("/amd-epyc-r-7763-2-cores-debian-gnu-linux-12-bookworm-ext4"))
    try expect(store.names(), equals: [])
    expect(!store.has("main"))
    let results = try file(["w": Taken(seconds: Self.nine)])
    let names = ["main", "topic/ä", "..", "a%2Fb"]
    for name in names { try store.save(results, as: name) }
    try expect(store.names(), equals: names.sorted())
    let read = try Data(contentsOf: URL(filePath: store.path(of: "topic/ä")))
    try expect(store.has("topic/ä") && ResultsFile(validating: read) == results)
    // Another kernel is the same machine, another processor isn't.
    var same = machine
    same.os = "Debian GNU/Linux 12 (bookworm), Linux 6.2.0"
    try expect(BaselineStore(directory.path + "/baselines", machine: same).names(), equals: names.sorted())
    same.cores = 4
    try expect(BaselineStore(directory.path + "/baselines", machine: same).names(), equals: [])
  }

  // MARK: Reports

  /// A run with a row of each outcome, and one that can't be judged.
  private func verdict() throws -> GateVerdict {
    let old = try file([
      "same": Taken(seconds: Self.nine, instructions: 1_000),
      "slow|er": Taken(seconds: Self.nine, instructions: 1_000),
      "once": Taken(seconds: Self.nine, instructions: 1_000), "wide": Taken(seconds: Self.nine),
    ])
    let wide = Self.nine.enumerated().map { $0 % 2 == 0 ? $1 * 1.2 : $1 / 1.2 }
    let new = try file([
      "same": Taken(seconds: Self.nine, instructions: 1_001),
      "slow|er": Taken(seconds: Self.nine, instructions: 1_200),
      "once": Taken(seconds: Self.nine, instructions: 1_300), "wide": Taken(seconds: wide),
      "<new>": Taken(seconds: Self.nine),
    ])
    let again = try file([
      "slow|er": Taken(seconds: Self.nine, instructions: 1_210),
      "once": Taken(seconds: Self.nine, instructions: 1_000),
    ])
    return GateVerdict(Gate(new, baseline: old), repeated: Gate(again, baseline: old))
  }

  @Test func eachRowHasItsOutcome() throws {
    let verdict = try verdict()
    let outcomes = Dictionary(uniqueKeysWithValues: verdict.rows.map { ($0.row.workload, $0.outcome) })
    expect(
      outcomes, equals: ["same": .passed, "slow|er": .failed, "once": .notConfirmed, "wide": .inconclusive])
    expect(verdict.outcome, equals: .failed)
    expect(verdict.slower, equals: ["s slow|er on lmdb"])
    let old = try file(["w": Taken(seconds: Self.nine)])
    expect(GateVerdict(Gate(old, baseline: old), repeated: Gate(old, baseline: old)).outcome, equals: .passed)
    let none = Gate(old, baseline: try file([:]))
    expect(GateVerdict(none, repeated: none).outcome, equals: .inconclusive)
  }

  @Test func reportsAreWhatTheirReadersTake() throws {
    let report = GateReport(try verdict(), isBaselineSampled: false)
    expect(
      report.text.contains("FAILED: s slow|er on lmdb: instructions 1.2x (95%: 1.2x to 1.2x), again 1.21x"))
    expect(report.text.contains("not confirmed: s once on lmdb"))
    expect(!report.text.hasSuffix("passed"))
    expect(report.warnings.count, equals: 2)

    let markdown = report.markdown.split(separator: "\n").map(String.init)
    expect(markdown.first, equals: "## Touchstone gate: ❌ 1 slower than allowed")
    // Each row of a table has as many cells as its head, whatever is in a name.
    let cells = Set(
      markdown.filter { $0.hasPrefix("|") }
        .map { $0.replacing("\\|", with: "").filter { $0 == "|" }.count })
    expect(cells, equals: [9])
    expect(markdown.contains { $0.contains("slow\\|er") } && markdown.contains { $0.contains("\\<new\\>") })

    let github = report.github(file: "results/a,b:c%.json").split(separator: "\n").map(String.init)
    expect(
      github.map { $0.prefix { $0 != " " } }.sorted(),
      equals: ["::error", "::notice", "::notice", "::warning"])
    expect(
      github.contains {
        $0.hasPrefix("::error file=results/a%2Cb%3Ac%25.json,title=slower than allowed::s slow|er on lmdb: ")
      })

    let junit = report.junit
    expect(XMLCheck.isWellFormed(junit))
    expect(junit.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""))

    let json = try JSONSerialization.jsonObject(with: Data(report.json().utf8)) as? [String: Any]
    expect(json?["outcome"] as? String, equals: "failed")
    expect(json?["passed"] as? Bool, equals: false)
    expect(json?["inconclusive"] as? Bool, equals: false)
    expect((json?["rows"] as? [Any])?.count, equals: 4)
  }

  @Test func plantedDelayTakesItsShare() {
    let delay = PlantedDelay(share: 0.15)
    expect(delay.run("w", seconds: 0.1) >= 0.015)
    expect(PlantedDelay(share: 0.15, instructions: [:]).run("w", seconds: 10) < 1)
  }
}
