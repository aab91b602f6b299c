import BenchmarkKit
import TestSupport

@testable import Suites

struct FullTextSuiteTests {
  @Test func everyWorkloadRunsBesideFTS5() throws {
    let file = try ran(.fullText, on: [.lmdb], samples: 2, dataset: "synthetic-travel", documents: 1_000)
    expect(Set(file.results.map(\.workload)), equals: Set(Suite.fullText.workloadNames))
    for result in file.results where result.workload != "size" {
      expect(result.limit != nil, "\(result.label)")
    }
  }
}
