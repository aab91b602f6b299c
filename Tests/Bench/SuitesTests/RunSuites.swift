import BenchmarkKit
import TestSupport

@testable import Suites

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
