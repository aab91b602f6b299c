/// The charts of a report, as gnuplot scripts.
enum Charts {
  /// A chart: its title and its script.
  struct Chart {
    /// Its file name, without a suffix.
    let name: String
    /// A sentence that describes it.
    let title: String
    let width: Int
    let height: Int
    let script: String
  }

  /// A bar chart of one metric: workloads side by side, one colour per engine, with the 95% interval of the
  /// median.
  ///
  /// `scale` converts the values, for example seconds per run to nanoseconds per operation. The axis is
  /// logarithmic because workloads differ by orders of magnitude.
  static func bars(
    _ name: String, title: String, axis: String, _ rows: [[WorkloadResult]], engines: [String],
    _ palette: Palette, _ value: (WorkloadResult) -> Distribution?, scale: (WorkloadResult) -> Double
  ) -> Chart? {
    var lines: [String] = []
    // gnuplot fails on a series without any bar.
    var hasValues = engines.map { _ in false }
    for row in rows {
      guard let any = row.first else { continue }
      var cells = [Gnuplot.quoted(any.label).replacing(" (", with: "\\n(")]
      for (index, engine) in engines.enumerated() {
        let result = row.first { $0.engine == engine }
        guard let result, let found = value(result), found.median > 0 else {
          cells += ["NaN", "NaN", "NaN"]
          continue
        }
        hasValues[index] = true
        let factor = scale(result)
        cells += [found.median, found.ci95[0], found.ci95[1]].map { "\($0 * factor)" }
      }
      // gnuplot fails on a row without any value.
      if cells.dropFirst().contains(where: { $0 != "NaN" }) { lines.append(cells.joined(separator: " ")) }
    }
    let drawn = engines.indices.filter { hasValues[$0] }
    // One bar compares nothing.
    guard lines.count * drawn.count > 1 else { return nil }
    let plots = drawn.map { index in
      let column = 2 + index * 3
      return "$data using \(column):\(column + 1):\(column + 2)\(index == drawn[0] ? ":xtic(1)" : "") "
        + "title \(Gnuplot.quoted(engines[index])) lc rgb '\(palette.colour(engines[index]))'"
    }
    let script = """
      $data << EOD
      \(lines.joined(separator: "\n"))
      EOD
      set style data histograms
      set style histogram errorbars gap 1 lw 1
      set style fill solid 0.9
      set boxwidth 0.9
      set logscale y
      set format y '%.0s%c'
      set ylabel \(Gnuplot.quoted(axis)) noenhanced
      set xtics rotate by 40 right noenhanced
      set key noenhanced outside top center
      plot \(plots.joined(separator: ", \\\n  "))
      """
    return Chart(
      name: name, title: title, width: max(640, 130 + lines.count * 70), height: 460, script: script)
  }

  /// A bar chart of the ratios of two engines' times: workloads side by side, one colour per pair, with the
  /// 95% interval from samples of the same rounds.
  static func ratios(
    _ name: String, title: String, _ rows: [[WorkloadResult]], pairs: [Remarks.Pair],
    _ palette: Palette
  ) -> Chart? {
    var lines: [String] = []
    for row in rows {
      guard let any = row.first else { continue }
      var cells = [Gnuplot.quoted(any.label).replacing(" (", with: "\\n(")]
      for pair in pairs {
        guard let above = row.first(where: { $0.engine == pair.engine })?.metrics.seconds,
          let below = row.first(where: { $0.engine == pair.base })?.metrics.seconds, below.median > 0
        else {
          cells += ["NaN", "NaN", "NaN"]
          continue
        }
        let found = Statistics.ratio(above.samples, over: below.samples)
        cells += [found.ratio, found.interval.lowerBound, found.interval.upperBound].map { "\($0)" }
      }
      if cells.dropFirst().contains(where: { $0 != "NaN" }) { lines.append(cells.joined(separator: " ")) }
    }
    guard lines.count * pairs.count > 1 else { return nil }
    let plots = pairs.enumerated().map { index, pair in
      let column = 2 + index * 3
      return "$data using \(column):\(column + 1):\(column + 2)\(index == 0 ? ":xtic(1)" : "") "
        + "title \(Gnuplot.quoted("\(pair.engine) over \(pair.base)")) "
        + "lc rgb '\(palette.colour(pair.engine))'"
    }
    let script = """
      $data << EOD
      \(lines.joined(separator: "\n"))
      EOD
      set style data histograms
      set style histogram errorbars gap 1 lw 1
      set style fill solid 0.9
      set boxwidth 0.9
      set yrange [0:*]
      set ylabel 'times' noenhanced
      set xtics rotate by 40 right noenhanced
      set key noenhanced outside top center
      plot \(plots.joined(separator: ", \\\n  ")), \
        1 with lines lw 1 dt 2 lc rgb '#444444' notitle
      """
    return Chart(
      name: name, title: title, width: max(640, 130 + lines.count * 70), height: 420, script: script)
  }

  /// A line chart of the percentiles of single operations, one line per engine.
  static func latencies(
    _ name: String, title: String, _ row: [WorkloadResult], engines: [String], _ palette: Palette
  ) -> Chart? {
    var blocks: [String] = []
    var plots: [String] = []
    for (index, engine) in engines.enumerated() {
      guard let result = row.first(where: { $0.engine == engine }) else { continue }
      let points = Metric.latencies.compactMap { metric, quantile -> String? in
        guard let found = result.metrics[metric] else { return nil }
        let label = quantile == 1 ? "max" : "p" + Format.shortest(quantile * 100)
        return "\(Gnuplot.quoted(label)) \(found.median * 1e9) \(found.ci95[0] * 1e9) \(found.ci95[1] * 1e9)"
      }
      guard points.count == Metric.latencies.count else { continue }
      blocks.append("$data\(index) << EOD\n\(points.joined(separator: "\n"))\nEOD")
      plots.append(
        "$data\(index) using 0:2:3:4:xtic(1) with yerrorlines title \(Gnuplot.quoted(engine)) lw 2 pt 7 ps 0.6 "
          + "lc rgb '\(palette.colour(engine))'")
    }
    guard !plots.isEmpty else { return nil }
    let script = """
      \(blocks.joined(separator: "\n"))
      set logscale y
      set format y '%.0s%c'
      set ylabel 'nanoseconds'
      set xrange [-0.3:4.3]
      set key noenhanced outside top center
      plot \(plots.joined(separator: ", \\\n  "))
      """
    return Chart(name: name, title: title, width: 640, height: 380, script: script)
  }

  /// If a point differs from the fit by more than this factor, the chart says so.
  private static let greatDeviation = 1.5

  /// A chart of how the time of an operation grows with an integer parameter. Both axes are logarithmic. It
  /// shows medians with their 95% intervals, and the fitted power with the interval of its exponent.
  static func growth(_ name: String, title: String, _ growth: Growth, _ palette: Palette) -> Chart {
    var blocks: [String] = []
    var plots: [String] = []
    for (number, curve) in growth.curves.enumerated() {
      let points = zip(curve.fit.points, curve.results).map { point, result in
        let scale = 1e9 / Double(max(1, result.operations))
        let interval = result.metrics.seconds.ci95.map { $0 * scale }
        return "\(point.size) \(point.value * 1e9) \(interval[0]) \(interval[1])"
      }
      blocks.append("$data\(number) << EOD\n\(points.joined(separator: "\n"))\nEOD")
      let colour = palette.colour(curve.engine)
      plots.append(
        "$data\(number) using 1:2:3:4 with yerrorbars pt 7 ps 0.7 lw 1.5 lc rgb '\(colour)' notitle")
      let range = curve.fit.interval.map { " (95%: \(Growth.text($0)))" } ?? ""
      let deviation = curve.fit.greatestDeviation
      let off = deviation > greatDeviation ? ", points up to \(Format.ratio(deviation))x off" : ""
      let label =
        "\(curve.engine): grows as the \(Format.decimals(curve.fit.exponent, 2)) power\(range)\(off)"
      plots.append(
        "\(curve.fit.factor * 1e9) * x**(\(curve.fit.exponent)) lw 1.5 dt 2 lc rgb '\(colour)' "
          + "title \(Gnuplot.quoted(label))")
    }
    let sizes = growth.curves.flatMap { $0.fit.points.map(\.size) }
    let script = """
      \(blocks.joined(separator: "\n"))
      set logscale xy
      set xrange [\((sizes.min() ?? 1) * 0.7):\((sizes.max() ?? 1) * 1.4)]
      set format x '%.0s%c'
      set format y '%.0s%c'
      set xlabel \(Gnuplot.quoted(growth.parameter)) noenhanced
      set ylabel 'nanoseconds an operation'
      set key noenhanced outside top center vertical
      plot \(plots.joined(separator: ", \\\n  "))
      """
    return Chart(name: name, title: title, width: 640, height: 420, script: script)
  }
}
