import BenchmarkKit

/// Makes the time series of a run.
enum EndureSeries {
  /// A value for each look. `seconds` is when the operations ended: the time after it is the phase `quiet`.
  static func make(
    _ intervals: [IntervalLatencies.Interval], _ looks: [EndureWatch.Look], interval: Double,
    seconds: Double, stalls: [Stall]
  ) -> TimeSeries? {
    // An operation may have ended after the last look.
    let count = max(intervals.count, looks.count)
    guard count > 0, let last = looks.last else { return nil }
    let intervals = intervals + Array(repeating: .init(), count: count - intervals.count)
    let looks = looks + Array(repeating: last, count: count - looks.count)
    func latencies(_ value: (IntervalLatencies.Interval) -> UInt64) -> [Double] {
      // Three digits after that of a microsecond.
      intervals.map { (Double(value($0)) / 10).rounded() / 1e8 }
    }
    func numbers(_ value: (EndureWatch.Look) -> Int) -> [Double] { looks.map { Double(value($0)) } }
    var activity: [String: [Double]] = [:]
    for name in Set(looks.flatMap { $0.activity.map(\.name) }) {
      var known = 0
      activity[name] = looks.map { look in
        known = look.activity.first { $0.name == name }?.value ?? known
        return Double(known)
      }
    }
    let end = Int(seconds / interval) + 1
    return TimeSeries(
      interval: interval,
      phases: [.init(name: "run", first: 0)] + (end < count ? [.init(name: "quiet", first: end)] : []),
      columns: [
        .operations: intervals.map { Double($0.operations) }, .latencyP50: latencies(\.median),
        .latencyP99: latencies(\.p99), .latencyMax: latencies(\.maximum), .userBytes: numbers(\.userBytes),
        .storedBytes: numbers(\.storedBytes), .diskBytesWritten: numbers(\.diskBytesWritten),
        .bytesWritten: numbers(\.bytesWritten), .fileBytes: numbers(\.fileBytes),
        .residentBytes: numbers(\.residentBytes), .anonymousBytes: numbers(\.anonymousBytes),
      ], activity: activity,
      stalls: stalls.map { stall in
        Stall(begin: (stall.begin * 100).rounded() / 100, seconds: (stall.seconds * 100).rounded() / 100)
      })
  }
}
