import BenchmarkKit
import TestSupport

@testable import Suites

struct QuerySuiteTests {
  @Test func everyWorkloadRunsAndAllEnginesFindTheSameRows() throws {
    let file = try ran(.query, on: [.sqlite, .lmdb], samples: 1, dataset: "synthetic-travel", documents: 500)
    expect(Set(file.results.map(\.workload)), equals: Set(Suite.query.workloadNames))
    for query in QueryCase.guide {
      let results = file.results.filter { $0.workload == query.name }
      expect(results.map(\.engine).sorted(), equals: ["lmdb", "sqlite"])
      expect(results.allSatisfy { $0.limit != nil && $0.parameters["index"] != nil })
    }
  }
}
