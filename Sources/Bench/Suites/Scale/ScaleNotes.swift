import BenchmarkKit

/// The remarks of the suite `scale`: how the time of each operation grows.
enum ScaleNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    let sentences = Growth.all(in: results).filter { $0.parameter == "documents" }.map { $0.sentence() }
    guard !sentences.isEmpty else { return [] }
    let over = ScaleWorkload.allCases.filter(\.isOverAll).map(\.rawValue).joined(separator: " and ")
    return sentences + sizes(results) + [
      "An exponent of 0 is a time that doesn't grow, 1 one that grows like the number of documents. \(over) have all "
        + "documents to look at, so 1 is what to expect of them; 0 is the best of the others. Intervals are of the "
        + "samples' noise; the factor in brackets says how far the times lie off the fitted power."
    ]
  }

  /// File bytes per document, at the smallest and the largest size.
  private static func sizes(_ results: [WorkloadResult]) -> [String] {
    let rows = results.filter { $0.workload == ScaleWorkload.read.rawValue }
    let texts = rows.engines.compactMap { engine -> String? in
      let points = rows.filter { $0.engine == engine }.compactMap { row -> (Int, Double)? in
        guard case .integer(let documents)? = row.parameters["documents"] else { return nil }
        return (documents, row.metrics.fileBytes.median / Double(documents))
      }.sorted { $0.0 < $1.0 }
      guard let first = points.first, let last = points.last, first.0 < last.0 else { return nil }
      return "\(engine) \(Int(first.1.rounded())) to \(Int(last.1.rounded()))"
    }
    return texts.isEmpty
      ? [] : ["Bytes of file a document, least to greatest size: \(texts.joined(separator: ", "))."]
  }
}
