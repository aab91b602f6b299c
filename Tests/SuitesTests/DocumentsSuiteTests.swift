import BenchmarkKit
import Foundation
import Storage
import Testing
import Touchstone

@testable import Suites

struct DocumentsSuiteTests {
  @Test(arguments: Engines.names)
  func everyWorkloadRuns(_ engine: EngineName) throws {
    let type = try Engines.type(engine)
    let settings = BenchSettings(
      engines: [type], samples: 2, workDirectory: NSTemporaryDirectory(), documents: 60, evictsCaches: false)
    let file = try BenchRun(settings, version: "0.1.0+test").run([.documents])
    #expect(Set(file.results.map(\.workload)) == Set(DocumentsWorkload.allCases.map(\.rawValue)))
    for result in file.results { #expect(result.metrics.seconds.median > 0, "\(result.label)") }
    #expect(ResultsSchema.faults(in: try file.encoded()) == [])
  }
}
