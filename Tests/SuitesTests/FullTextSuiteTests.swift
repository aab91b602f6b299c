import BenchmarkKit
import Foundation
import Storage
import Testing
import Touchstone

@testable import Suites

struct FullTextSuiteTests {
  @Test func everyWorkloadRunsBesideFTS5() throws {
    let settings = BenchSettings(
      engines: [try Engines.type(.lmdb)], samples: 2, workDirectory: NSTemporaryDirectory(),
      dataset: "synthetic-travel", documents: 1_000, evictsCaches: false)
    let file = try BenchRun(settings, version: "0.1.0+test").run([.fullText])
    #expect(Set(file.results.map(\.workload)) == Set(Suite.fullText.workloadNames))
    for result in file.results where result.workload != "size" {
      #expect(result.limit != nil, "\(result.label)")
    }
  }
}
