import BenchmarkKit
import TestSupport

@testable import Suites

/// The engines on which suites above the engines run: all in the long run, otherwise one of each kind.
let benchedEngines = isShort ? someEngines : Engines.names

/// Runs suites with few samples. The results have to follow the schema.
func ran(
  _ suites: Suite..., on engines: [EngineName]? = nil, samples: Int = 1, dataset: String? = nil,
  documents: Int? = nil, _ change: (inout BenchSettings) -> Void = { _ in }
) throws -> ResultsFile {
  var settings = BenchSettings(
    engines: try engines?.map { try Engines.type($0) }, samples: samples,
    workDirectory: NSTemporaryDirectory(),
    dataset: dataset, documents: documents, evictsCaches: false)
  change(&settings)
  let file = try BenchRun(settings, version: "0.1.0+test").run(suites)
  try expect(ResultsSchema.faults(in: try file.encoded()), equals: [])
  return file
}
