/// A table for a terminal of values other than times, which some workloads have: one row per workload and one
/// column per engine.
package struct ValueTable {
  private let title: String
  private let results: [WorkloadResult]
  private let engines: [String]
  private let value: (WorkloadResult) -> String?

  private init(
    _ title: String, _ results: [WorkloadResult], engines: [String],
    _ value: @escaping (WorkloadResult) -> String?
  ) {
    self.title = title
    self.results = results.filter { value($0) != nil }
    self.engines = engines
    self.value = value
  }

  /// The bytes written and stored for each byte of data.
  package static func amplifications(_ results: [WorkloadResult], engines: [String]) -> ValueTable {
    ValueTable("bytes per byte of data", results, engines: engines) { result in
      let written = result.metrics[.writeAmplification].map { "\(Format.ratio($0.median)) written" }
      let stored = result.metrics[.spaceAmplification].map { "\(Format.ratio($0.median)) stored" }
      let parts = [written, stored].compactMap { $0 }
      return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
  }

  /// Allocations per operation.
  package static func allocations(_ results: [WorkloadResult], engines: [String]) -> ValueTable {
    ValueTable("allocations per operation", results, engines: engines) { result in
      result.metrics[.allocations].map { Format.ratio($0.median / Double(max(1, result.operations))) }
    }
  }

  /// Whether there is nothing to show.
  package var isEmpty: Bool { results.isEmpty }

  /// The lines of the table.
  package func text() -> String {
    TextTable(title, results, engines: engines) { engine, row in
      row.first { $0.engine == engine }.flatMap(value) ?? "-"
    }.text
  }
}
