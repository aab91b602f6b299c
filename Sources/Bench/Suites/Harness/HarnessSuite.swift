import BenchmarkKit
import StorageLMDB

extension Suite {
  /// The overhead of the harness: a loop run as a workload, compared with the same loop between two reads of
  /// the clock.
  public static let harness = Suite(
    name: "harness",
    summary:
      "The overhead of the harness: an operation of about 100 ns, run like a workload, compared with the same loop between "
      + "two readings of the clock.",
    workloadNames: HarnessWorkload.allCases.map(\.rawValue), usesDataset: false,
    // No engine is used, but a run needs the name of one.
    standardEngines: { [LMDBEngines.lmdb] }, notes: HarnessWorkload.notes
  ) { _ in HarnessWorkload.allCases.map { $0.workload() } }
}

/// The ways to time a run.
enum HarnessWorkload: String, CaseIterable {
  /// All operations together, as in most workloads.
  case together
  /// One operation in 64, as possible for short operations.
  case sampled
  /// Each operation.
  case each

  static let operations = 200_000
  private static let sampling = 64

  private var summary: String {
    switch self {
    case .together: "operations timed all together"
    case .sampled: "one operation in \(Self.sampling) timed by itself too"
    case .each: "each operation timed by itself too"
    }
  }

  func workload() -> Workload {
    Workload(
      suite: "harness", name: rawValue, summary: summary, operations: Self.operations,
      limit: .init(name: { _ in "the loop alone" }) { _ in
        Trial(run: {
          let start = Clock.nanoseconds()
          for _ in 0..<Self.operations { Self.operation() }
          return .seconds(Double(Clock.nanoseconds() - start) / 1e9)
        })
      }
    ) { _ in Trial(run: run) }
  }

  private func run() -> Trial.Duration {
    var latencies = LatencyHistogram()
    switch self {
    case .together:
      for _ in 0..<Self.operations { Self.operation() }
      return .whole
    case .sampled:
      for number in 0..<Self.operations {
        guard number % Self.sampling == 0 else {
          Self.operation()
          continue
        }
        Self.timed(&latencies)
      }
    case .each:
      for _ in 0..<Self.operations { Self.timed(&latencies) }
    }
    return .latencies(latencies)
  }

  private static func timed(_ latencies: inout LatencyHistogram) {
    let start = Clock.nanoseconds()
    operation()
    latencies.record(Clock.nanoseconds() - start)
  }

  /// Work of about 100 ns that uses no memory: a chain of shifts, each of which depends on the one before.
  @inline(never)
  private static func operation() {
    var state = last
    for _ in 0..<50 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
    }
    last = state
  }

  // The start of the next operation. The compiler can't precompute it, because it is written and read at run
  // time.
  private nonisolated(unsafe) static var last: UInt64 = 0x9E37_79B9_7F4A_7C15

  static func notes(_ results: [WorkloadResult]) -> [String] {
    results.compactMap { result in
      guard let limit = result.limit else { return nil }
      let nanoseconds = limit.seconds.median / Double(result.operations) * 1e9
      let share = (limit.normalized - 1) * 100
      return "\(result.workload): the harness adds \((share * 10).rounded() / 10)% to an operation of "
        + "\((nanoseconds * 10).rounded() / 10) ns."
    }
  }
}
