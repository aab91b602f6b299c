/// How many bytes were written and are stored for each byte of the data, for a terminal: workloads that say how much
/// their data are as rows, an engine a column.
public struct AmplificationTable {
  private let results: [WorkloadResult]
  private let engines: [String]

  /// A table of those of `results` that have amplifications, with a column for each of `engines`.
  public init(_ results: [WorkloadResult], engines: [String]) {
    self.results = results.filter { AmplificationTable.text(of: $0) != nil }
    self.engines = engines
  }

  /// Whether there is nothing to show.
  public var isEmpty: Bool { results.isEmpty }

  /// The lines of the table.
  public func text() -> String {
    var labels: [String] = []
    for result in results where !labels.contains(result.label) { labels.append(result.label) }
    var cells = [["bytes for each byte of the data", ""] + engines]
    for label in labels {
      let row = results.filter { $0.label == label }
      let texts = engines.map { engine in
        row.first { $0.engine == engine }.flatMap(AmplificationTable.text) ?? "-"
      }
      cells.append([row[0].workload, row[0].parameters.text] + texts)
    }
    return TextColumns.aligned(cells).joined(separator: "\n")
  }

  /// `2.58 written, 2.01 stored`; nil without either.
  static func text(of result: WorkloadResult) -> String? {
    let written = result.metrics[.writeAmplification].map { "\(Format.ratio($0.median)) written" }
    let stored = result.metrics[.spaceAmplification].map { "\(Format.ratio($0.median)) stored" }
    let parts = [written, stored].compactMap { $0 }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}
