/// How the engines of a suite compare: the times of their workloads relative to one engine.
struct Standing {
  /// The time of a workload on an engine, relative to the base engine.
  struct Point {
    let engine: String
    let label: String
    let ratio: Double
    /// Its 95% interval, from samples of the same rounds.
    let interval: ClosedRange<Double>
  }

  /// The engine that the others are compared with: `sqlite` if it ran, otherwise the first.
  let base: String
  /// All engines, in the order of the results.
  let engines: [String]
  /// The points of each workload that ran on the base engine and another one.
  let rows: [(label: String, points: [Point])]
  /// The number of workloads.
  let workloads: Int
  /// The number of workloads in which an engine was fastest, and the interval of its median apart from the next.
  let wins: [String: Int]
  /// The number of workloads in which the best two were level.
  let level: Int

  /// Compares the results of workloads, one row each.
  init(_ rows: [[WorkloadResult]], engines: [String]) {
    let base = engines.first { $0 == Standing.usualBase } ?? engines.first ?? ""
    self.base = base
    self.engines = engines
    workloads = rows.count
    self.rows = rows.compactMap { row in
      guard let first = row.first(where: { $0.engine == base }), first.metrics.seconds.median > 0 else {
        return nil
      }
      let points = row.filter { $0.engine != base && $0.metrics.seconds.median > 0 }.map { result in
        let found = Bootstrap.ratio(result.metrics.seconds.samples, over: first.metrics.seconds.samples)
        return Point(
          engine: result.engine, label: first.label, ratio: found.ratio, interval: found.interval)
      }
      return points.isEmpty ? nil : (first.label, points)
    }
    (wins, level) = rows.wins
  }

  /// Joins standings with the same base.
  init(joining all: [Standing]) {
    base = all.first?.base ?? ""
    engines = all.flatMap(\.engines).firstOccurrences()
    rows = all.flatMap(\.rows)
    workloads = all.reduce(0) { $0 + $1.workloads }
    wins = all.reduce(into: [:]) { $0.merge($1.wins, uniquingKeysWith: +) }
    level = all.reduce(0) { $0 + $1.level }
  }

  /// The engine that others are compared with wherever it ran.
  static let usualBase = "sqlite"

  /// The geometric mean of an engine's times relative to the base. Nil if there are none.
  func mean(_ engine: String) -> Double? {
    let ratios = rows.flatMap(\.points).filter { $0.engine == engine }.map(\.ratio)
    return ratios.isEmpty ? nil : SampleStatistics.geometricMean(ratios)
  }

  /// How many workloads each engine won: `lmdb in 7, sqlite in 1, level in 2`. Empty for one engine.
  var winners: String {
    guard engines.count > 1 else { return "" }
    var parts = engines.filter { wins[$0] != nil }.sorted { (wins[$0] ?? 0) > (wins[$1] ?? 0) }.map {
      "\($0) in \(wins[$0] ?? 0)"
    }
    if level > 0 { parts.append("level in \(level)") }
    return parts.joined(separator: ", ")
  }
}

extension [[WorkloadResult]] {
  /// How many workloads each engine wins, and in how many the best two are level.
  var wins: (byEngine: [String: Int], level: Int) {
    let compared = filter { $0.count > 1 }
    let fastest = compared.compactMap(\.fastest)
    return (Dictionary(fastest.map { ($0, 1) }, uniquingKeysWith: +), compared.count - fastest.count)
  }
}

extension [WorkloadResult] {
  /// The engine with the shortest median, if the 95% interval of the median overlaps no other's.
  var fastest: String? {
    let ranked = sorted { $0.metrics.seconds.median < $1.metrics.seconds.median }
    guard ranked.count > 1 else { return nil }
    let ends = ranked[0].metrics.seconds.ci95[1]
    return ranked.dropFirst().allSatisfy { ends < $0.metrics.seconds.ci95[0] } ? ranked[0].engine : nil
  }
}
