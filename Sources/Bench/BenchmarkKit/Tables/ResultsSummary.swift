/// A run in a few sentences: which engine was fastest for which workloads, by how much, and how far from the
/// limits.
package struct ResultsSummary {
  private let results: [WorkloadResult]
  private let engines: [String]
  private let durability: String

  /// A summary of `results`. The other engines are compared with the first of `engines`.
  package init(_ results: [WorkloadResult], engines: [String], durability: String) {
    self.results = results
    self.engines = engines
    self.durability = durability
  }

  /// The sentences, one per line.
  package func text() -> String {
    results.map(\.suite).firstOccurrences().flatMap { sentences(suite: $0) }.joined(separator: "\n")
  }

  private func sentences(suite: String) -> [String] {
    let rows = results.filter { $0.suite == suite }.rows
    var sentences: [String] = []
    let workloads = "\(rows.count) \(rows.count == 1 ? "workload" : "workloads")"
    if engines.count > 1 {
      sentences.append(
        "Suite \(suite) at durability \(durability), \(workloads): \(winners(rows)).")
      for engine in engines.dropFirst() {
        if let sentence = comparison(engine, rows) { sentences.append(sentence) }
      }
    } else {
      sentences.append("Suite \(suite) at durability \(durability), \(workloads).")
    }
    for engine in engines {
      if let sentence = limits(engine, rows) { sentences.append(sentence) }
    }
    return sentences
  }

  /// How many workloads each engine wins by its median. The best two are level if their confidence intervals
  /// overlap.
  private func winners(_ rows: [[WorkloadResult]]) -> String {
    let (wins, level) = rows.wins
    var parts = engines.compactMap { engine in wins[engine].map { "\(engine) was fastest in \($0)" } }
    if level > 0 { parts.append("there was no clear winner in \(level)") }
    return parts.joined(separator: ", ")
  }

  /// How much faster or slower an engine is than the first one: overall, at best and at worst.
  private func comparison(_ engine: String, _ rows: [[WorkloadResult]]) -> String? {
    let ratios = rows.compactMap { row -> (label: String, ratio: Double)? in
      guard let first = row.first(where: { $0.engine == engines[0] }),
        let other = row.first(where: { $0.engine == engine }), other.metrics.seconds.median > 0,
        first.metrics.seconds.median > 0
      else { return nil }
      return (first.label, first.metrics.seconds.median / other.metrics.seconds.median)
    }
    guard let best = ratios.max(by: { $0.ratio < $1.ratio }),
      let worst = ratios.min(by: { $0.ratio < $1.ratio })
    else { return nil }
    guard ratios.count > 1 else {
      return "\(engine) was \(speed(best.ratio)) than \(engines[0]) in \(best.label)."
    }
    let mean = SampleStatistics.geometricMean(ratios.map(\.ratio))
    return
      "\(engine) was \(speed(mean)) than \(engines[0]) overall (geometric mean), from \(speed(worst.ratio)) "
      + "in \(worst.label) to \(speed(best.ratio)) in \(best.label)."
  }

  private func speed(_ ratio: Double) -> String {
    ratio >= 1 ? "\(Format.ratio(ratio))x faster" : "\(Format.ratio(1 / ratio))x slower"
  }

  private func limits(_ engine: String, _ rows: [[WorkloadResult]]) -> String? {
    let found = rows.compactMap { row in row.first { $0.engine == engine && $0.limit != nil } }
    let ratios = found.compactMap { $0.limit?.normalized }
    guard let worst = found.max(by: { ($0.limit?.normalized ?? 0) < ($1.limit?.normalized ?? 0) }),
      let most = worst.limit?.normalized
    else { return nil }
    return
      "\(engine) took \(Format.ratio(SampleStatistics.median(ratios)))x its limits' time (median), at most "
      + "\(Format.ratio(most))x (\(worst.label))."
  }

  /// Notes on how the samples were taken, one sentence each: warm-ups that were left out, and far outliers.
  /// Outliers count like all other samples.
  package static func samplingNotes(_ results: [WorkloadResult]) -> [String] {
    var notes: [String] = []
    let warm = results.filter { ($0.warmups ?? 0) > 0 }
    if !warm.isEmpty {
      notes.append(
        "The first rounds of \(Set(warm.map { "\($0.suite) \($0.label)" }).count) workloads were discarded as warm-up "
          + "and repeated.")
    }
    let far = results.filter { !SampleStatistics.outliers($0.metrics.seconds.samples).isEmpty }
    if !far.isEmpty {
      let count = far.reduce(0) { $0 + SampleStatistics.outliers($1.metrics.seconds.samples).count }
      notes.append(
        "\(count) samples are outliers and are kept: \(far.prefix(6).map(\.identity).joined(separator: ", "))"
          + (far.count > 6 ? ", and \(far.count - 6) more rows." : "."))
    }
    return notes
  }
}
