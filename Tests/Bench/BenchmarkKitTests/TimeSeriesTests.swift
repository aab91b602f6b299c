import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// What a run did by the second: how it is counted, kept in results files, and drawn.
struct TimeSeriesTests {
  // MARK: Stalls

  @Test func slotsWithoutOperationsAreAStall() {
    var counts = [Int](repeating: 100, count: 20)
    counts[5...7] = [0, 9, 0]
    counts[15] = 3
    let stalls = Stall.find(counts, slot: 0.5)
    expect(stalls, equals: [Stall(begin: 2.5, seconds: 1.5), Stall(begin: 7.5, seconds: 0.5)])
    // A tenth of the median is no stall.
    counts = [Int](repeating: 100, count: 20)
    counts[5] = 10
    expect(Stall.find(counts, slot: 0.5), equals: [])
  }

  @Test func aStallAtTheEndCounts() {
    let counts = [Int](repeating: 50, count: 10) + [0, 0]
    expect(Stall.find(counts, slot: 1), equals: [Stall(begin: 10, seconds: 2)])
  }

  @Test func slowOperationsAreCountedInLongerSlots() {
    // One operation in each slot: a slot without any says nothing, ten say something.
    var counts = [Int](repeating: 1, count: 200)
    counts[3] = 0
    expect(Stall.find(counts, slot: 0.1), equals: [])
    for index in 20..<60 { counts[index] = 0 }
    expect(Stall.find(counts, slot: 0.1), equals: [Stall(begin: 2, seconds: 4)])
  }

  @Test func tooFewOperationsHaveNoStalls() {
    expect(Stall.find([], slot: 0.1), equals: [])
    expect(Stall.find([100, 0, 100], slot: 0.1), equals: [])
    expect(Stall.find([Int](repeating: 0, count: 50), slot: 0.1), equals: [])
    expect(Stall.find([1, 0, 0, 0, 1, 0, 0, 0], slot: 0.1), equals: [])
  }

  // MARK: Latencies

  @Test func percentilesAreThoseOfTheIntervalInWhichOperationsEnded() {
    let second: UInt64 = 1_000_000_000
    let latencies = IntervalLatencies(begin: 10 * second, interval: 1, threads: 2)
    var first = latencies.recorder(0)
    // In the first second 100 operations of 1 to 100 ns, and nothing in the second one.
    for time in 1...100 { first.record(end: 10 * second + UInt64(time), latency: UInt64(time)) }
    // A stall of 1.5 s ends in the third second.
    first.record(end: 12 * second + 5, latency: 1_500_000_000)
    var other = latencies.recorder(1)
    other.record(end: 10 * second + 7, latency: 1_000)
    other.record(end: 12 * second + 7, latency: 30)
    first.finish()
    other.finish()
    let outcome = latencies.outcome()
    expect(outcome.intervals.map(\.operations), equals: [101, 0, 2])
    expect(outcome.intervals[0].median, equals: 51)
    expect(outcome.intervals[0].p99, equals: 100)
    expect(outcome.intervals[0].maximum, equals: 1_000)
    expect(outcome.intervals[1], equals: IntervalLatencies.Interval())
    expect(outcome.intervals[2].median, equals: 30)
    expect(outcome.intervals[2].maximum, equals: 1_500_000_000)
    expect(outcome.operations, equals: 103)
    expect(outcome.total.count, equals: 103)
    // Slots of a tenth of a second.
    expect(outcome.slots.count, equals: 21)
    expect(
      outcome.slots.first == 101 && outcome.slots.last == 2 && outcome.slots[1..<20].allSatisfy { $0 == 0 })
  }

  @Test func operationsThatNeverBeganCountAsLatenciesAndNotAsDone() {
    let latencies = IntervalLatencies(begin: 0, interval: 1, threads: 1)
    var recorder = latencies.recorder(0)
    recorder.record(end: 500, latency: 5)
    for _ in 0..<9 { recorder.record(waiting: 1_000) }
    recorder.finish()
    let outcome = latencies.outcome()
    expect(outcome.operations, equals: 1)
    expect(outcome.total.count, equals: 10)
    expect(outcome.intervals.map(\.operations), equals: [1])
    expect(outcome.intervals[0].median, equals: 1_000)
  }

  // MARK: Quiet

  @Test func aProcessIsQuietWhenItDidLittleForAWindow() {
    var detector = QuietDetector(window: 1)
    var found: Double?
    // Busy for two seconds: a tenth of a second of processor time in each tenth.
    for step in 0...60 where found == nil {
      let time = Double(step) / 10
      found = detector.add(.init(time: time, cpu: min(time, 2), written: 0))
    }
    expect(abs((found ?? 0) - 2) < 0.11, "\(String(describing: found))")
    // What it writes counts too.
    detector = QuietDetector(window: 1)
    found = nil
    for step in 0...60 where found == nil {
      let time = Double(step) / 10
      found = detector.add(.init(time: time, cpu: 0, written: min(step, 30) * 1_000_000))
    }
    expect(abs((found ?? 0) - 3) < 0.11, "\(String(describing: found))")
    expect(detector.add(.init(time: 0, cpu: 0, written: 0)) == nil || found != nil)
  }

  // MARK: Files

  private func series(_ scale: Double = 1) throws -> TimeSeries {
    try #require(
      TimeSeries(
        interval: 1, phases: [.init(name: "run", first: 0), .init(name: "quiet", first: 3)],
        columns: [
          .operations: [1_000, 0, 900, 0].map { $0 * scale }, .latencyP50: [1e-5, 0, 2e-5, 0],
          .latencyP99: [1e-4, 0, 2e-4, 0], .latencyMax: [1e-3, 0, 1.5, 0], .userBytes: [1e6, 1e6, 2e6, 2e6],
          .diskBytesWritten: [2e6, 3e6, 6e6, 8e6], .bytesWritten: [2e6, 3e6, 6e6, 8e6],
          .fileBytes: [1e6, 2e6, 3e6, 2e6], .storedBytes: [1e6, 1e6, 1e6, 1e6],
          .residentBytes: [1e8, 1e8, 1e8, 1e8], .anonymousBytes: [5e7, 5e7, 5e7, 5e7],
        ], activity: ["flushes": [0, 1, 1, 2]], stalls: [Stall(begin: 1, seconds: 1)]))
  }

  private func file() throws -> ResultsFile {
    let (one, two) = (try series(), try series(2))
    let workload = Workload(suite: "endure", name: "update", summary: "", operations: 1) { context in
      Trial(run: { .seconds(0.001) }, series: { context.engine == "a" ? one : two })
    }
    let engine = ResultsFile.EngineDescription(library: "L", settings: ["durability": "normal"])
    return ResultsFile(
      touchstone: "0.1.0+abc", machine: .current(directory: NSTemporaryDirectory()),
      engines: ["a": engine, "b": engine], dataset: nil,
      results: try ran([workload], on: ["a", "b"], rounds: 2))
  }

  @Test func seriesAreInTheFileOneForEachSample() throws {
    let file = try file()
    try expect(file.results[0].series?.all, equals: [series(), series()])
    let data = try file.encoded()
    expect(ResultsSchema.faults(in: data), equals: [])
    try expect(ResultsFile(validating: data), equals: file)
    let text = String(decoding: data, as: UTF8.self)
    expect(text.contains("\"flushes\" : [0, 1, 1, 2]"), "an array of numbers is one line")
    // The samples of several runs are joined, and their series too.
    let merged = try #require(ResultsFile.merged([file, file]))
    expect(merged.results[0].series?.all.count, equals: 4)
  }

  @Test func readersLeaveOutWhatTheyDoNotKnow() throws {
    let text = String(decoding: try file().encoded(), as: UTF8.self)
    func read(_ text: String) throws -> Int {
      try ResultsFile(validating: Data(text.utf8)).results[0].series?.all.count ?? 0
    }
    try expect(read(text), equals: 2)
    try expect(read(text.replacing("\"version\" : 1", with: "\"version\" : 2")), equals: 0)
    // A member that only a later version has.
    try expect(read(text.replacing("\"version\" : 1", with: "\"version\" : 1, \"later\" : {}")), equals: 2)
    // Columns of different lengths are a fault.
    let short = text.replacing("\"flushes\" : [0, 1, 1, 2]", with: "\"flushes\" : [0]")
    expect(ResultsSchema.faults(in: Data(short.utf8)).contains { $0.contains("series[0].columns") })
    expect(
      ResultsSchema.faults(in: Data(text.replacing("\"version\" : 1", with: "\"edition\" : 1").utf8))
        .contains { $0.contains("series[0].version") })
    // Numbers that no integer holds.
    for number in ["9223372036854775808", "1e308", "1.5", "-1"] {
      let faults = ResultsSchema.faults(
        in: Data(text.replacing("\"version\" : 1", with: "\"version\" : \(number)").utf8))
      expect(faults.contains { $0.contains("series[0].version") }, "\(number): \(faults)")
    }
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(
        TimeSeries.self,
        from: Data(#"{"version": 1, "interval_seconds": 1, "columns": {"a": [1], "b": []}}"#.utf8))
    }
    expect(TimeSeries(interval: 0, columns: [.operations: [1]]) == nil)
    expect(TimeSeries(interval: 1, columns: [:]) == nil)
    expect(TimeSeries(interval: 1, columns: [.operations: [.infinity]]) == nil)
  }

  @Test func stringsKeepTheirBlanks() {
    let json = "{ \"a [ 1,\\n 2 ]\" : [\n  1,\n  -2.5e-7\n ], \"b\\\"[ 1 ]\" : [ ], \"c\" : [ \"1\" ] }"
    let expected = "{ \"a [ 1,\\n 2 ]\" : [1, -2.5e-7], \"b\\\"[ 1 ]\" : [], \"c\" : [ \"1\" ] }"
    expect(String(decoding: Data(json.utf8).withNumbersOnOneLine, as: UTF8.self), equals: expected)
  }

  // MARK: Pictures

  @Test func enginesAreDrawnUnderEachOtherWithTheSameAxes() throws {
    let charts = try Report([file()]).sections[0].charts.filter { $0.script.contains("multiplot") }
    expect(
      charts.map(\.name),
      equals: ["endure-by-second-update", "endure-amplification-update", "endure-memory-update"])
    let script = charts[0].script
    expect(script.contains("set multiplot layout 2,1"))
    // The axes are set once, before the panels. The second engine did twice as much.
    expect(script.components(separatedBy: "set yrange").count, equals: 2)
    expect(script.contains("set yrange [0:2200.0]") && script.contains("set xrange [0:4.0]"))
    expect(script.components(separatedBy: "\nplot ").count, equals: 3)
    // Without operations there is no latency.
    expect(script.contains("1.5 0.0 NaN NaN NaN"))
    expect(script.contains("\"quiet\""))
    for chart in charts {
      let svg = try Gnuplot().svg(width: chart.width, height: chart.height, chart.script)
      expect(XMLCheck.isWellFormed(svg), "\(chart.name)")
    }
  }
}
