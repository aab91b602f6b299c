import BenchmarkKit
import TestSupport

@testable import Suites

struct DocumentsSuiteTests {
  @Test(arguments: benchedEngines)
  func everyWorkloadRuns(_ engine: EngineName) throws {
    let file = try ran(.documents, on: [engine], samples: 1, documents: 60)
    expect(Set(file.results.map(\.workload)), equals: Set(DocumentsWorkload.allCases.map(\.rawValue)))
    for result in file.results { expect(result.metrics.seconds.median > 0, "\(result.label)") }
  }
}
