#if canImport(Glibc)
  import Glibc
#endif

/// Which engine is fastest for what: a line for each use, from the numbers of a run. It is silent where the samples don't bear
/// an answer.
package struct Advice {
  /// A use, and the workloads that stand for it.
  private struct Use {
    let name: String
    let workloads: [String: Set<String>]
  }

  private static let uses = [
    Use(name: "opening", workloads: ["travel": ["reopen"], "cold": ["reopen"], "scale": ["reopen"]]),
    Use(
      name: "reads by ID",
      workloads: ["travel": ["read"], "engine": ["readrandom"], "ycsb": ["c-read-only"], "cold": ["read"]]),
    Use(
      name: "scans",
      workloads: [
        "travel": ["scan"], "engine": ["readseq", "readrange"], "ycsb": ["e-short-ranges"], "cold": ["scan"],
      ]),
    Use(
      name: "a commit for each write", workloads: ["travel": ["insert-single"], "engine": ["commitsync"]]),
    Use(name: "commits of many threads", workloads: ["travel": ["insert-threads"]]),
    Use(
      name: "many writes in a transaction",
      workloads: [
        "travel": ["insert-batch", "update", "sync-apply", "delete"],
        "engine": ["fillbatch", "fillrandom", "overwrite", "deleterandom"],
      ]),
    Use(
      name: "reads beside writes",
      workloads: ["ycsb": ["a-update-heavy", "b-read-mostly", "d-read-latest", "f-read-modify-write"]]),
    Use(name: "queries", workloads: ["query": Set((1...10).map { "q\($0)" })]),
    Use(
      name: "full-text search",
      workloads: ["fulltext": ["word", "and", "or", "phrase", "prefix", "near", "ranked"]]),
    Use(name: "views", workloads: ["views": ["key-lookup", "range", "reduce-total", "reduce-groups"]]),
  ]

  /// The least that counts as faster.
  private static let leastLead = 1.05
  /// The fewest samples that say something.
  private static let leastSamples = 3

  /// One line for each use that has an answer: `reads by ID: lmdb, 5.41x as fast as sqlite, 5.67x as sqlcipher`.
  package private(set) var lines: [String]

  /// Compares `engines` by `results`.
  package init(_ results: [WorkloadResult], engines: [String]) {
    lines = Advice.uses.compactMap { use in
      let rows = results.filter { use.workloads[$0.suite]?.contains($0.workload) == true }.rows
        .map { row in row.filter { engines.contains($0.engine) } }
      return Advice.answer(rows, engines).map { "\(use.name): \($0)" }
    }
    lines += Advice.ownWork(results.filter { engines.contains($0.engine) }).compactMap { name, rows in
      Advice.answer(rows, engines).map { "\(name): \($0)" }
    }
  }

  /// The workloads of the suite mine, whose names are the user's: the queries, with their indexes if they have some, and the mix.
  private static func ownWork(_ results: [WorkloadResult]) -> [(name: String, rows: [[WorkloadResult]])] {
    let own = results.filter { $0.suite == "mine" }
    let indexed = own.filter { $0.parameters["index"] == .string("all") }
    let plain = own.filter { $0.parameters["index"] == .string("none") }
    // At a fixed rate all engines do as much, and only latencies differ.
    let mix = own.filter { $0.parameters["index"] == nil && $0.parameters["rate"] == nil }
    return [
      indexed.isEmpty ? ("your queries", plain.rows) : ("your queries with the indexes", indexed.rows),
      ("your mix", mix.rows),
    ]
  }

  private static func answer(_ rows: [[WorkloadResult]], _ engines: [String]) -> String? {
    // Only engines that ran every workload can be compared.
    let rows = rows.filter { $0.count > 1 }
    let able = engines.filter { engine in rows.allSatisfy { $0.contains { $0.engine == engine } } }
    guard !rows.isEmpty, able.count > 1 else { return nil }
    func samples(_ engine: String) -> [[Double]] {
      rows.compactMap { row in row.first { $0.engine == engine }?.metrics.seconds.samples }
    }
    let all = able.map { (engine: $0, samples: samples($0)) }
    guard
      all.allSatisfy({ $0.samples.allSatisfy { $0.count >= leastSamples && $0.allSatisfy { $0 > 0 } } })
    else { return nil }
    func mean(_ samples: [[Double]]) -> Double {
      SampleStatistics.geometricMean(samples.map(SampleStatistics.median))
    }
    let ranked = all.sorted { mean($0.samples) < mean($1.samples) }
    let leads = ranked.dropFirst().map { other in
      (engine: other.engine, lead: lead(of: ranked[0].samples, over: other.samples))
    }
    let level = leads.filter { $0.lead.least < leastLead }.map(\.engine)
    let slower = leads.filter { $0.lead.least >= leastLead }
    let first =
      level.isEmpty ? ranked[0].engine : "\(([ranked[0].engine] + level).joined(separator: ", ")) are level"
    guard !slower.isEmpty else { return level.isEmpty ? nil : first }
    let others = slower.enumerated().map { number, other in
      "\(Format.ratio(other.lead.ratio))x as\(number == 0 ? " fast as" : "") \(other.engine)"
    }
    return "\(first), \(others.joined(separator: ", "))"
  }

  /// How many times as fast, on the geometric mean, and the lower end of its 95% interval: the workloads' intervals are those of
  /// independent errors.
  private static func lead(of fast: [[Double]], over slow: [[Double]]) -> (ratio: Double, least: Double) {
    let found = zip(slow, fast).map { Bootstrap.ratio($0, over: $1) }
    let logarithm = found.map { log($0.ratio) }.reduce(0, +) / Double(found.count)
    let widths = found.map { log($0.ratio) - log($0.interval.lowerBound) }
    let width = widths.map { $0 * $0 }.reduce(0, +).squareRoot() / Double(found.count)
    return (exp(logarithm), exp(logarithm - width))
  }
}
