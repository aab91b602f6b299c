#if canImport(Glibc)
  import Glibc
#endif

/// The pictures of a report, each as a script for gnuplot.
enum Charts {
  /// A picture: what it shows, and how it is drawn.
  struct Chart {
    /// Its name as a file, without a suffix.
    let name: String
    /// What it shows, in a sentence.
    let title: String
    let width: Int
    let height: Int
    let script: String
  }

  /// Bars of one metric, an engine a colour, workloads side by side, with the 95% interval of the median.
  ///
  /// `value` scales what is drawn: seconds a run to nanoseconds an operation. The axis is logarithmic, since
  /// workloads differ by orders of magnitude.
  static func bars(
    _ name: String, title: String, axis: String, _ rows: [[WorkloadResult]], engines: [String],
    _ value: (WorkloadResult) -> Distribution?, scale: (WorkloadResult) -> Double
  ) -> Chart? {
    var lines: [String] = []
    for row in rows {
      guard let any = row.first else { continue }
      var cells = [Gnuplot.quoted(any.label).replacing(" (", with: "\\n(")]
      for engine in engines {
        let result = row.first { $0.engine == engine }
        guard let result, let found = value(result), found.median > 0 else {
          cells += ["NaN", "NaN", "NaN"]
          continue
        }
        let factor = scale(result)
        cells += [found.median, found.ci95[0], found.ci95[1]].map { "\($0 * factor)" }
      }
      // gnuplot needs something to draw in a row.
      if cells.dropFirst().contains(where: { $0 != "NaN" }) { lines.append(cells.joined(separator: " ")) }
    }
    guard !lines.isEmpty else { return nil }
    let plots = engines.enumerated().map { index, engine in
      let column = 2 + index * 3
      return "$data using \(column):\(column + 1):\(column + 2)\(index == 0 ? ":xtic(1)" : "") "
        + "title \(Gnuplot.quoted(engine)) lc rgb '\(Gnuplot.colours[index % Gnuplot.colours.count])'"
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

  /// Percentiles of single operations, a line an engine: how long the slowest of a hundred, of a thousand take.
  static func latencies(_ name: String, title: String, _ row: [WorkloadResult], engines: [String]) -> Chart? {
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
          + "lc rgb '\(Gnuplot.colours[index % Gnuplot.colours.count])'")
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

  /// How the time of an operation grows with a whole-number parameter, both axes logarithmic, and the exponent of the
  /// power that fits best.
  static func growth(
    _ name: String, title: String, parameter: String, _ curves: [(engine: String, index: Int, fit: PowerFit)]
  ) -> Chart {
    var blocks: [String] = []
    var plots: [String] = []
    for (number, curve) in curves.enumerated() {
      let points = curve.fit.points.map { "\($0.size) \($0.value * 1e9)" }.joined(separator: "\n")
      blocks.append("$data\(number) << EOD\n\(points)\nEOD")
      let colour = Gnuplot.colours[curve.index % Gnuplot.colours.count]
      let label = "\(curve.engine): grows as the \(Format.decimals(curve.fit.exponent, 2)) power"
      plots.append("$data\(number) with points pt 7 ps 0.8 lc rgb '\(colour)' notitle")
      plots.append(
        "\(curve.fit.factor * 1e9) * x**\(curve.fit.exponent) lw 2 lc rgb '\(colour)' "
          + "title \(Gnuplot.quoted(label))")
    }
    let script = """
      \(blocks.joined(separator: "\n"))
      set logscale xy
      set format x '%.0s%c'
      set format y '%.0s%c'
      set xlabel \(Gnuplot.quoted(parameter)) noenhanced
      set ylabel 'nanoseconds an operation'
      set key noenhanced outside top center vertical
      plot \(plots.joined(separator: ", \\\n  "))
      """
    return Chart(name: name, title: title, width: 640, height: 420, script: script)
  }
}

/// The power of a size that values follow best: value = factor · size^exponent, by least squares of the logarithms.
public struct PowerFit: Sendable {
  /// What was fitted, by ascending size.
  public let points: [(size: Double, value: Double)]
  /// 1 when the value grows like the size, 0 when it doesn't grow.
  public let exponent: Double
  /// The value at size 1.
  public let factor: Double

  /// A fit of at least two sizes; nil otherwise, or when a number isn't positive.
  public init?(_ points: [(size: Double, value: Double)]) {
    guard points.allSatisfy({ $0.size > 0 && $0.value > 0 }) else { return nil }
    let xs = points.map { log($0.size) }
    let ys = points.map { log($0.value) }
    let count = Double(points.count)
    let meanX = xs.reduce(0, +) / count
    let meanY = ys.reduce(0, +) / count
    let squares = xs.reduce(0) { $0 + ($1 - meanX) * ($1 - meanX) }
    guard squares > 0 else { return nil }
    exponent = zip(xs, ys).reduce(0) { $0 + ($1.0 - meanX) * ($1.1 - meanY) } / squares
    factor = exp(meanY - exponent * meanX)
    self.points = points.sorted { $0.size < $1.size }
  }
}
