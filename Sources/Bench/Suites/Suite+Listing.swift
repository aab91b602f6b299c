import BenchmarkKit
import Datasets
import FoundationEssentials

extension Suite {
  /// The suite's workloads in order, each with a sentence that says what it does. The suite `mine` has none until it is told
  /// queries.
  package func listing() throws -> [(name: String, summary: String)] {
    // Little data says what the workloads are as well as much.
    let directory = FileManager.default.temporaryDirectory.path
    let settings = BenchSettings(workDirectory: directory, documents: 100, keys: 200)
    let context = SuiteContext(
      settings: settings, engines: [:], fixtures: Fixtures(in: directory),
      dataset: usesDataset
        ? try LoadedDataset.load(KnownDatasets.syntheticTravel.name, documents: settings.documents) : nil)
    var found: [(name: String, summary: String)] = []
    for workload in try workloads(context) where !found.contains(where: { $0.name == workload.name }) {
      found.append((workload.name, workload.summary))
    }
    return found
  }
}
