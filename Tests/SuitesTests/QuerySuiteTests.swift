import BenchmarkKit
import Foundation
import Storage
import Testing
import Touchstone

@testable import Suites

struct QuerySuiteTests {
  @Test func everyWorkloadRunsAndAllEnginesFindTheSameRows() throws {
    let settings = BenchSettings(
      engines: [try Engines.type(.sqlite), try Engines.type(.lmdb)], samples: 2,
      workDirectory: NSTemporaryDirectory(), dataset: "synthetic-travel", documents: 500,
      evictsCaches: false)
    let file = try BenchRun(settings, version: "0.1.0+test").run([.query])
    #expect(Set(file.results.map(\.workload)) == Set(Suite.query.workloadNames))
    for query in QueryCase.guide {
      let results = file.results.filter { $0.workload == query.name }
      #expect(results.map(\.engine).sorted() == ["lmdb", "sqlite"])
      #expect(results.allSatisfy { $0.limit != nil && $0.parameters["index"] != nil })
    }
  }
}
