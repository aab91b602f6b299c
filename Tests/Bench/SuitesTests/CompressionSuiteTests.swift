import BenchmarkKit
import Storage
import TestSupport

@testable import Suites

/// The suite that measures compressions, where an engine has some.
struct CompressionSuiteTests {
  @Test func everyCompressionOfAnEngineIsMeasured() throws {
    let engines = Suite.compression.engines(BenchSettings(workDirectory: "."))
    expect(engines.allSatisfy { $0.compressions.first == "none" && $0.compressions.count > 1 })
    guard !engines.isEmpty else { return }
    let file = try ran(.compression, dataset: "synthetic-travel", documents: 400)
    for engine in engines {
      for compression in engine.compressions {
        let results = file.results.filter {
          $0.engine == engine.name && $0.parameters["compression"] == .string(compression)
        }
        expect(results.map(\.workload), equals: CompressionWorkload.allCases.map(\.rawValue))
        expect(
          results.allSatisfy { ($0.metrics[.fileBytes]?.median ?? 0) > 0 }, "\(engine.name), \(compression)")
      }
    }
    let notes = Suite.compression.notes(file.results)
    expect(notes.count, equals: engines.count)
    expect(
      zip(engines.map(\.name).sorted(), notes.sorted()).allSatisfy {
        $1.hasPrefix("\($0), files after the inserts: none ")
      }, "\(notes)")
    expect(file.results.count, equals: engines.reduce(0) { $0 + 4 * $1.compressions.count })
  }

  @Test func enginesWithoutCompressionHaveNoRows() throws {
    let file = try ran(.compression, on: [.sqlite], dataset: "synthetic-travel", documents: 100)
    expect(file.results.isEmpty)
  }
}
