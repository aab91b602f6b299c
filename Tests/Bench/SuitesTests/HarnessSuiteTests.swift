import BenchmarkKit
import TestSupport

@testable import Suites

@Suite struct HarnessSuiteTests {
  @Test func eachWayOfTimingStandsBesideTheLoopAlone() throws {
    let file = try ran(.harness, samples: 2)
    expect(file.results.map(\.workload).sorted(), equals: Suite.harness.workloadNames.sorted())
    expect(file.results.allSatisfy { $0.limit.map { $0.normalized > 0 } == true })
    let timed = file.results.filter { $0.metrics[.latencyP50] != nil }
    expect(Set(timed.map(\.workload)), equals: ["sampled", "each"])
    let notes = Suite.harness.notes(file.results)
    expect(notes.count == 3 && notes.allSatisfy { $0.contains("the harness adds") })
  }
}
