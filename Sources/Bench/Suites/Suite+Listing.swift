import BenchmarkKit
import Datasets
import Foundation

extension Suite {
  /// The suite's workloads in order, each with a sentence that says what it does. The suite `mine` has none until it is told
  /// queries.
  package func listing() throws -> [(name: String, summary: String)] {
    // Little data says what the workloads are as well as much.
    let settings = BenchSettings(workDirectory: NSTemporaryDirectory(), documents: 100, keys: 200)
    let context = SuiteContext(
      settings: settings, engines: [:], fixtures: Fixtures(in: NSTemporaryDirectory()),
      dataset: usesDataset
        ? try LoadedDataset.load(KnownDatasets.syntheticTravel.name, documents: settings.documents) : nil)
    var found: [(name: String, summary: String)] = []
    for workload in try workloads(context) where !found.contains(where: { $0.name == workload.name }) {
      found.append((workload.name, workload.summary))
    }
    return found
  }
}
