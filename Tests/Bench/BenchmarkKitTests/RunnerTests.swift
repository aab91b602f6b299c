import Expectations
import Foundation
import Synchronization
import Testing

@testable import BenchmarkKit

/// Runs come interleaved, each in a fresh directory, and what they took ends up with the right engine.
struct RunnerTests {
  /// What happened, in order.
  private final class Log: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  private struct Broken: Error {}

  private func workload(_ log: Log, limitOn limited: Set<String> = ["a", "b", "c"]) -> Workload {
    Workload(
      suite: "s", name: "w", summary: "", parameters: ["n": 1], operations: 10,
      limit: .init(
        name: { limited.contains($0) ? "limit of \($0)" : nil },
        prepare: { context in
          log.add("limit-\(context.engine)")
          return Trial(run: { .seconds(2) })
        })
    ) { context in
      log.add(context.engine)
      return Trial(run: { .seconds(context.engine == "a" ? 3 : 5) }, fileBytes: { 77 })
    }
  }

  @Test func enginesAndLimitsTakeTurnsAndTheOrderRotates() throws {
    let log = Log()
    _ = try ran([workload(log)], on: ["a", "b", "c"], rounds: 3)
    let rounds = (0..<3).map { Array(log.all[($0 * 6)..<($0 * 6 + 6)]) }
    let first = rounds[0].filter { !$0.hasPrefix("limit") }
    expect(Set(first), equals: ["a", "b", "c"])
    expect(rounds[0], equals: first.flatMap { [$0, "limit-\($0)"] })
    let second = Array(first[1...] + first[..<1])
    expect(rounds[1], equals: second.flatMap { ["limit-\($0)", $0] })
    let third = Array(first[2...] + first[..<2])
    expect(rounds[2], equals: third.flatMap { [$0, "limit-\($0)"] })
  }

  @Test func everyEngineIsInEveryPlaceOfTheOrder() {
    for engines in 1...4 {
      for place in 0..<engines {
        let inPlace = (0..<engines).map {
          Runner.order(round: $0, engines: engines, seed: 7)[place * 2].engine
        }
        expect(Set(inPlace), equals: Set(0..<engines))
      }
    }
  }

  @Test func orderDependsOnTheSeedAlone() {
    func order(_ seed: UInt64) -> [Int] {
      (0..<12).flatMap { Runner.order(round: $0, engines: 4, seed: seed).map(\.engine) }
    }
    expect(order(3), equals: order(3))
    expect(Set((0..<10).map { order($0) }).count > 1)
  }

  @Test func roundsGoOnUntilTheIntervalIsNarrow() throws {
    func rounds(_ sampling: Sampling, _ seconds: @escaping @Sendable (Int) -> Double) throws -> Int {
      let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { context in
        let duration = seconds(context.round)
        return Trial(run: { .seconds(duration) })
      }
      return try ran([workload], sampling)[0].metrics.seconds.samples.count
    }
    let sampling = Sampling(minimum: 5, maximum: 40, precision: 0.02)
    try expect(rounds(sampling) { _ in 1 }, equals: 5)
    // The first five differ by half; then all are equal, and the interval closes on them.
    let settling = try rounds(sampling) { $0 < 5 ? 1 + Double($0 % 2) / 2 : 1 }
    expect(settling > 5 && settling < 40)
    try expect(rounds(sampling) { 1 + Double($0 % 2) }, equals: 40)
    try expect(
      rounds(Sampling(minimum: 5, maximum: 40, precision: 0.02, budget: 0)) { 1 + Double($0 % 2) }, equals: 5)
    try expect(rounds(.fixed(3)) { 1 + Double($0 % 2) }, equals: 3)
  }

  @Test func roundsThatWarmUpAreLeftOutAndMadeAgain() throws {
    let workload = Workload(
      suite: "s", name: "w", summary: "", operations: 1,
      limit: .init(name: { _ in "l" }, prepare: { _ in Trial(run: { .seconds(1) }) })
    ) { context in
      let seconds = context.round == 0 ? 2 : 1 + Double(context.round) / 100
      return Trial(run: { .seconds(seconds) })
    }
    let result = try ran([workload], rounds: 5)[0]
    expect(result.warmups, equals: 1)
    expect(result.metrics.seconds.samples, equals: [1.01, 1.02, 1.03, 1.04, 1.05])
    expect(result.limit?.seconds.samples.count, equals: 5)
  }

  @Test func firstSampleIsAWarmUpOnlyFarAboveTheOthers() {
    expect(WarmUp.isInFirst(of: [[1, 1, 1, 1], [2, 1, 1.1, 0.9]]))
    expect(!WarmUp.isInFirst(of: [[1.2, 1, 1, 1]]))
    expect(!WarmUp.isInFirst(of: [[2, 1, 1.95, 1, 1]]))
    expect(!WarmUp.isInFirst(of: [[1, 2, 2, 2]]))
    expect(!WarmUp.isInFirst(of: [[9, 1, 1]]))
  }

  @Test func singleOperationsGivePercentilesAndBytesGiveAmplifications() throws {
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1_000) { context in
      Trial(
        run: {
          var histogram = LatencyHistogram()
          for nanoseconds in 1...1_000 { histogram.record(UInt64(nanoseconds)) }
          try Data(count: 100_000).write(to: URL(fileURLWithPath: "\(context.directory)/f"))
          return .latencies(histogram, seconds: 0.5)
        }, fileBytes: { 30_000 }, logicalBytes: .init(written: 10_000, stored: 20_000))
    }
    let metrics = try ran([workload], rounds: 2)[0].metrics
    expect(metrics[.latencyP50]?.median, equals: 500e-9)
    expect(metrics[.latencyP99]?.median, equals: 990e-9)
    expect(metrics[.latencyMax]?.samples, equals: [1e-6, 1e-6])
    expect(metrics.seconds.median, equals: 0.5)
    expect(metrics[.spaceAmplification]?.median, equals: 1.5)
    expect((metrics[.writeAmplification]?.median ?? 0) >= 10)
    expect((metrics[.systemCalls]?.median ?? 0) >= 1)
  }

  @Test func samplesGoToTheirEngineAndLimit() throws {
    let results = try ran([workload(Log())], on: ["a", "b"], rounds: 2)
    expect(results.map(\.engine), equals: ["a", "b"])
    expect(results[0].metrics.seconds.samples, equals: [3, 3])
    expect(results[1].metrics.seconds.samples, equals: [5, 5])
    expect(results[0].limit?.name, equals: "limit of a")
    expect(results[0].limit?.normalized, equals: 1.5)
    expect(results[1].limit?.normalized, equals: 2.5)
    expect(results[1].metrics.opsPerSecond.median, equals: 2)
    expect(results[1].metrics.fileBytes.median, equals: 77)
    expect(results[0].metrics.peakMemoryBytes.median > 0)
  }

  @Test func engineWithoutALimitHasNone() throws {
    let log = Log()
    let results = try ran([workload(log, limitOn: ["b"])], on: ["a", "b"], rounds: 1)
    expect(results[0].limit == nil)
    expect(results[1].limit != nil)
    expect(log.all, equals: ["a", "b", "limit-b"])
  }

  @Test func wholeRunsAreTimedByTheRunner() throws {
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { _ in
      Trial(run: {
        let start = Clock.nanoseconds()
        while Clock.nanoseconds() - start < 5_000_000 {}
        return .whole
      })
    }
    let results = try ran([workload], rounds: 1)
    expect(results[0].metrics.seconds.median >= 0.005)
    expect(results[0].metrics.cpuSeconds.median > 0)
  }

  @Test func bytesWrittenAreCounted() throws {
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { context in
      Trial(
        run: {
          try Data(count: 100_000).write(to: URL(fileURLWithPath: "\(context.directory)/f"))
          return .whole
        }, fileBytes: { try TrialDirectory.fileBytes(in: context.directory) })
    }
    let results = try ran([workload], rounds: 1)
    expect(results[0].metrics.bytesWritten.median >= 100_000)
    expect(results[0].metrics.fileBytes.median, equals: 100_000)
  }

  @Test func directoriesAreFreshAndRemoved() throws {
    let log = Log()
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { context in
      try expect(FileManager.default.contentsOfDirectory(atPath: context.directory).isEmpty)
      try Data([1]).write(to: URL(fileURLWithPath: "\(context.directory)/f"))
      log.add(context.directory)
      return Trial(run: { .whole })
    }
    _ = try ran([workload], rounds: 3)
    expect(Set(log.all).count, equals: 3)
    for directory in log.all { expect(!FileManager.default.fileExists(atPath: directory)) }
  }

  @Test func failureNamesWorkloadAndEngineAndFinishes() {
    let log = Log()
    let workload = Workload(suite: "s", name: "w", summary: "", parameters: ["n": 1], operations: 1) { _ in
      Trial(run: { throw Broken() }, finish: { log.add("finished") })
    }
    let failure = #expect(throws: Runner.Failure.self) {
      try ran([workload], rounds: 1)
    }
    expect(failure?.description.contains("s w (n=1) on a"), equals: true)
    expect(log.all, equals: ["finished"])
  }

  @Test func stopsBetweenRunsWhenAsked() {
    let log = Log()
    var asked = 0
    #expect(throws: Runner.Interrupted.self) {
      try ran([workload(log)], .fixed(3)) {
        asked += 1
        return asked > 2
      }
    }
    expect(log.all, equals: ["a", "limit-a"])
  }

  @Test func fixturesAreFilledOnceAndCopied() throws {
    let fixtures = Fixtures(in: NSTemporaryDirectory())
    let log = Log()
    var paths: Set<String> = []
    for _ in 0..<2 {
      paths.insert(
        try fixtures.directory("x") { directory in
          log.add("fill")
          try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(directory)/f"))
        })
    }
    expect(log.all, equals: ["fill"])
    let source = try #require(paths.first)
    let target = try TrialDirectory(in: NSTemporaryDirectory())
    defer { target.remove() }
    try Fixtures.copy(source, to: target.path)
    try expect(Data(contentsOf: URL(fileURLWithPath: "\(target.path)/f")), equals: Data([1, 2, 3]))
    fixtures.removeAll()
    expect(!FileManager.default.fileExists(atPath: source))
  }

  @Test func peakMemoryIsThatSinceTheReset() throws {
    // Far more than the tests that run beside this one take at once. They may take and give much all the same,
    // so that it is tried again.
    let size = 256 << 20
    var isSinceReset = false
    for _ in 0..<5 where !isSinceReset {
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
      memory.initializeMemory(as: UInt8.self, repeating: 1)
      let held = try #require(ProcessUsage.peakMemory())
      expect(held > size && memory[size - 1] == 1)
      memory.deallocate()
      guard ProcessUsage.resetPeakMemory() else { return }
      isSinceReset = try #require(ProcessUsage.peakMemory()) < held - size / 2
    }
    expect(isSinceReset)
  }
}
