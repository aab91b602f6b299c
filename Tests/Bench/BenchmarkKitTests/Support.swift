import Foundation

@testable import BenchmarkKit

/// What workloads take in a temporary directory, in as many rounds.
func ran(_ workloads: [Workload], on engines: [String] = ["a"], rounds: Int) throws -> [WorkloadResult] {
  try ran(workloads, on: engines, .fixed(rounds))
}

func ran(
  _ workloads: [Workload], on engines: [String] = ["a"], _ sampling: Sampling,
  shouldStop: @escaping () -> Bool = { false }
) throws -> [WorkloadResult] {
  try Runner(
    .init(
      sampling: sampling, workDirectory: NSTemporaryDirectory(), evictsCaches: false, shouldStop: shouldStop)
  ).run(workloads, engines: engines)
}
