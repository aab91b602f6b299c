import Expectations
import Testing

@testable import BenchmarkKit

/// Operations at their times: what a stall does to those behind it is part of their latency.
struct ArrivalScheduleTests {
  /// A clock that stands still but for what is done with it.
  private final class Time {
    var now: UInt64 = 1_000_000
    /// When operations began.
    var begins: [UInt64] = []
  }

  private func run(
    _ schedule: ArrivalSchedule, _ count: Int, _ time: Time, takes duration: (Int) -> UInt64
  ) -> LatencyHistogram {
    var histogram = LatencyHistogram()
    schedule.run(
      count, into: &histogram, clock: { time.now }, wait: { time.now = max(time.now, $0) }
    ) { index in
      time.begins.append(time.now)
      time.now += duration(index)
    }
    return histogram
  }

  @Test func aStalledOperationsQueueShowsInThePercentiles() {
    // 1,000 a second for a second; each takes 10 µs but for one that stalls 100 ms.
    let time = Time()
    let schedule = ArrivalSchedule(begin: time.now, rate: 1_000)
    let open = run(schedule, 1_000, time) { $0 == 500 ? 100_000_000 : 10_000 }

    // What should have been: each operation behind the stall waits for it and for those before itself.
    var expected: [UInt64] = []
    var free: UInt64 = 0
    for index in 0..<1_000 {
      let start = UInt64(index) * 1_000_000
      free = max(free, start) + (index == 500 ? 100_000_000 : 10_000)
      expected.append(free - start)
    }
    expect(open.mean, equals: Double(expected.reduce(0, +)) / 1_000)
    expect(open.count, equals: 1_000)
    expect(open.maximum, equals: 100_000_000)
    let sorted = expected.sorted()
    for quantile in [0.5, 0.9, 0.95, 0.99] {
      let exact = Double(sorted[Int(quantile * 1_000) - 1])
      let found = Double(open.value(at: quantile))
      expect(found >= exact && found <= exact * 1.001, "\(quantile): \(found), not \(exact)")
    }
    // A tenth of the operations waited: the stall is in p95. A closed loop has it in its longest operation alone.
    expect(open.value(at: 0.95) > 50_000_000)
    var closed = LatencyHistogram()
    for index in 0..<1_000 { closed.record(index == 500 ? 100_000_000 : 10_000) }
    expect(closed.value(at: 0.99) < 11_000)
  }

  @Test func operationsBeginAtTheirTimesAndAreDealtToTheThreads() {
    let time = Time()
    let schedule = ArrivalSchedule(begin: time.now, rate: 500)
    let histogram = run(schedule, 20, time) { _ in 1_000 }
    let begins: [UInt64] = (0..<20).map { 1_000_000 + $0 * 2_000_000 }
    expect(time.begins, equals: begins)
    expect(histogram.maximum, equals: 1_000)
    let shared = ArrivalSchedule(begin: 0, rate: 1_000, threads: 2)
    let all = (0..<10).flatMap { index in (0..<2).map { shared.start(index, thread: $0) } }
    let expected: [UInt64] = (0..<20).map { $0 * 1_000_000 }
    expect(all, equals: expected)
  }

  @Test func waitingEndsNoEarlierThanAsked() {
    for nanoseconds in [0, 1_000, 100_000, 2_000_000] as [UInt64] {
      let wanted = Clock.nanoseconds() + nanoseconds
      ArrivalSchedule.wait(until: wanted)
      expect(Clock.nanoseconds() >= wanted)
    }
    ArrivalSchedule.wait(until: 0)
  }

  @Test func whatARunMeasuredItselfIsInItsSample() throws {
    let trial = Trial(
      run: { .seconds(2) }, fileBytes: { 300 }, logicalBytes: .init(written: 0, stored: 100),
      metrics: { [.cachedShare: 0.25, .opsPerSecond: 7] })
    let sample = try Sample.take(trial, operations: 10)
    expect(sample.values[.cachedShare], equals: 0.25)
    expect(sample.values[.opsPerSecond], equals: 7)
    expect(sample.values[.spaceAmplification], equals: 3)
    expect(sample.values[.writeAmplification] == nil)
  }
}
