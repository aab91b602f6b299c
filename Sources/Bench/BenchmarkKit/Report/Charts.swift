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
    let table = rows.map { row in
      engines.map { engine -> [Double]? in
        guard let result = row.first(where: { $0.engine == engine }), let found = value(result),
          found.median > 0
        else { return nil }
        return [found.median, found.ci95[0], found.ci95[1]].map { $0 * scale(result) }
      }
    }
    let drawn = engines.indices.filter { column in table.contains { $0[column] != nil } }
    return histogram(
      name, title: title, rows, table,
      columns: drawn.map { ($0, engines[$0], palette.colour(engines[$0])) }, height: 460,
      axis: """
        set logscale y
        set format y '%.0s%c'
        set ylabel \(Gnuplot.quoted(axis)) noenhanced
        """)
  }

  /// A bar chart of the ratios of two engines' times: workloads side by side, one colour per pair, with the
  /// 95% interval from samples of the same rounds.
  static func ratios(
    _ name: String, title: String, _ rows: [[WorkloadResult]], pairs: [Remarks.Pair],
    _ palette: Palette
  ) -> Chart? {
    let table = rows.map { row in
      pairs.map { pair -> [Double]? in
        guard let above = row.first(where: { $0.engine == pair.engine })?.metrics.seconds,
          let below = row.first(where: { $0.engine == pair.base })?.metrics.seconds, below.median > 0
        else { return nil }
        let found = Bootstrap.ratio(above.samples, over: below.samples)
        return [found.ratio, found.interval.lowerBound, found.interval.upperBound]
      }
    }
    return histogram(
      name, title: title, rows, table,
      columns: pairs.enumerated().map { ($0, "\($1.engine) over \($1.base)", palette.colour($1.engine)) },
      height: 420,
      axis: """
        set yrange [0:*]
        set ylabel 'times' noenhanced
        """, lines: ["1 with lines lw 1 dt 2 lc rgb '#444444' notitle"])
  }

  /// Draws a group of bars with intervals for each row that has values. `table` has a value, the lower and the upper
  /// end of each bar, or nil for no bar. Returns nil if there is only one bar.
  private static func histogram(
    _ name: String, title: String, _ rows: [[WorkloadResult]], _ table: [[[Double]?]],
    columns: [(index: Int, title: String, colour: String)], height: Int, axis: String, lines: [String] = []
  ) -> Chart? {
    let data = zip(rows, table).compactMap { row, cells -> String? in
      guard let any = row.first, cells.contains(where: { $0 != nil }) else { return nil }
      let numbers = cells.flatMap { cell in cell?.map { "\($0)" } ?? ["NaN", "NaN", "NaN"] }
      return ([Gnuplot.quoted(any.label).replacing(" (", with: "\\n(")] + numbers).joined(separator: " ")
    }
    guard data.count * columns.count > 1 else { return nil }
    let plots = columns.map { index, title, colour in
      let column = 2 + index * 3
      return
        "$data using \(column):\(column + 1):\(column + 2)\(index == columns[0].index ? ":xtic(1)" : "") "
        + "title \(Gnuplot.quoted(title)) lc rgb '\(colour)'"
    }
    let script = """
      $data << EOD
      \(data.joined(separator: "\n"))
      EOD
      set style data histograms
      set style histogram errorbars gap 1 lw 1
      set style fill solid 0.9
      set boxwidth 0.9
      \(axis)
      set xtics rotate by 40 right noenhanced
      set key noenhanced outside top center
      plot \((plots + lines).joined(separator: ", \\\n  "))
      """
    return Chart(
      name: name, title: title, width: max(640, 130 + data.count * 70), height: height, script: script)
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
        let label = LatencyTable.name(quantile)
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
