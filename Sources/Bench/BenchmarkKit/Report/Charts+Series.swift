#if canImport(Glibc)
  import Glibc
#endif

/// The charts of time series: the engines under each other, each in a panel of its own, all with the same axes.
extension Charts {
  /// A line of a panel: a value for each interval, nil where there is none.
  struct Line {
    let title: String
    let colour: String
    /// Whether it belongs to the axis at the right.
    var isRight = false
    /// Whether it is filled down to the axis.
    var isFilled = false
    let value: (_ series: TimeSeries, _ interval: Int) -> Double?
  }

  /// An axis of values.
  struct SeriesAxis {
    let title: String
    var isLogarithmic = false
    /// A logarithmic axis begins here.
    var least = 1.0
  }

  private static let blue = "#0072B2"
  private static let orange = "#D55E00"
  private static let yellow = "#E69F00"
  private static let grey = "#5F5F5F"

  /// The charts of a row: operations and latencies, amplification, memory. Empty if no result has a series.
  static func series(
    _ suite: String, _ row: [WorkloadResult], engines: [String], name: (String) -> String
  ) -> [Chart] {
    let found = engines.compactMap { engine in
      row.first { $0.engine == engine }?.series?.all.first.map { (engine: engine, series: $0) }
    }
    guard !found.isEmpty, let label = row.first?.label else { return [] }
    func latency(_ column: TimeSeries.Column) -> (TimeSeries, Int) -> Double? {
      { series, interval in
        guard let operations = series[.operations], operations[interval] > 0, let values = series[column]
        else {
          return nil
        }
        return values[interval] * 1_000
      }
    }
    return [
      panels(
        name("\(suite)-by-second-\(label)"),
        title:
          "\(suite) \(label): operations and latencies by the second, all engines with the same axes. Left: "
          + "more is better. Right: lower is better.", found,
        left: SeriesAxis(title: "operations/s"),
        right: SeriesAxis(title: "ms", isLogarithmic: true, least: 0.001),
        [
          Line(title: "operations", colour: "#BBD6E8", isFilled: true) { series, interval in
            series[.operations].map { $0[interval] / series.intervalSeconds }
          },
          Line(title: "median", colour: blue, isRight: true, value: latency(.latencyP50)),
          Line(title: "p99", colour: yellow, isRight: true, value: latency(.latencyP99)),
          Line(title: "longest", colour: orange, isRight: true, value: latency(.latencyMax)),
        ]),
      panels(
        name("\(suite)-amplification-\(label)"),
        title:
          "\(suite) \(label): bytes given to the disk for each byte of the data that was written, and bytes of "
          + "files for each byte of the data in them. Lower is better.", found,
        left: SeriesAxis(title: "bytes per byte", isLogarithmic: true, least: 0.5), right: nil,
        [
          Line(title: "written to the disk", colour: orange) { series, interval in
            ratio(series[.diskBytesWritten], series[.userBytes], interval)
          },
          Line(title: "stored in files", colour: blue) { series, interval in
            ratio(series[.fileBytes], series[.storedBytes], interval)
          },
        ]),
      panels(
        name("\(suite)-memory-\(label)"),
        title: "\(suite) \(label): resident memory of the process. Lower is better.", found,
        left: SeriesAxis(title: "MiB"), right: nil,
        [
          Line(title: "resident", colour: grey) { series, interval in
            series[.residentBytes].map { $0[interval] / 1_048_576 }
          },
          Line(title: "without mapped files", colour: blue) { series, interval in
            series[.anonymousBytes].map { $0[interval] / 1_048_576 }
          },
        ]),
    ].compactMap { $0 }
  }

  private static func ratio(_ above: [Double]?, _ below: [Double]?, _ interval: Int) -> Double? {
    guard let above, let below, above[interval] > 0, below[interval] > 0 else { return nil }
    return above[interval] / below[interval]
  }

  /// The distance of the marks of a linear axis up to a value: about four, at round numbers.
  private static func step(_ top: Double) -> Double {
    guard top > 0 else { return 1 }
    let power = pow(10, floor(log10(top / 4)))
    return power * ([1, 2, 5].first { top / (power * $0) <= 5 } ?? 10)
  }

  /// A panel for each engine. Nil if no line has a value.
  static func panels(
    _ name: String, title: String, _ found: [(engine: String, series: TimeSeries)], left: SeriesAxis,
    right: SeriesAxis?, _ lines: [Line]
  ) -> Chart? {
    let values = found.map { engine in
      lines.map { line in (0..<engine.series.count).map { line.value(engine.series, $0) } }
    }
    /// The greatest value on an axis.
    func greatest(isRight: Bool) -> Double {
      values.flatMap { engine in
        zip(lines, engine).filter { $0.0.isRight == isRight }.flatMap { $0.1.compactMap { $0 } }
      }.max() ?? 0
    }
    guard max(greatest(isRight: false), greatest(isRight: true)) > 0 else { return nil }
    let end = found.map { Double($0.series.count) * $0.series.intervalSeconds }.max() ?? 1
    func range(_ axis: SeriesAxis, isRight: Bool) -> String {
      let top = greatest(isRight: isRight)
      return axis.isLogarithmic
        ? "[\(axis.least):\(max(top, axis.least * 10) * 2)]" : "[0:\(top > 0 ? top * 1.1 : 1)]"
    }
    var script = ["set multiplot layout \(found.count),1", "set xrange [0:\(end)]", "set grid x y"]
    script.append("set yrange \(range(left, isRight: false))")
    script.append("set ylabel \(Gnuplot.quoted(left.title)) noenhanced")
    script.append(
      left.isLogarithmic ? "set logscale y\nset ytics 10" : "set ytics \(step(greatest(isRight: false)))")
    script.append("set format y '%.0s%c'")
    script.append("set lmargin 9")
    if let right {
      script.append("set y2range \(range(right, isRight: true))")
      script.append("set y2label \(Gnuplot.quoted(right.title)) noenhanced")
      script.append(
        right.isLogarithmic ? "set logscale y2\nset format y2 '10^{%L}'" : "set format y2 '%.0s%c'")
      script.append("set y2tics")
      script.append("set border 11")
      script.append("set rmargin 9")
    }
    script.append("set key noenhanced outside top right horizontal")
    for (number, engine) in found.enumerated() {
      let seconds = engine.series.intervalSeconds
      let rows = (0..<engine.series.count).map { interval in
        // An interval is drawn at its middle.
        (["\((Double(interval) + 0.5) * seconds)"]
          + values[number].map { line in line[interval].map { "\($0)" } ?? "NaN" }).joined(separator: " ")
      }
      script.append("$data\(number) << EOD\n\(rows.joined(separator: "\n"))\nEOD")
      script.append("unset arrow\nunset label")
      for phase in engine.series.phases where phase.first > 0 && phase.first < engine.series.count {
        let time = Double(phase.first) * seconds
        script.append("set arrow from \(time), graph 0 to \(time), graph 1 nohead lc rgb '#888888' dt 2")
        script.append(
          "set label \(Gnuplot.quoted(phase.name)) at \(time), graph 0.93 offset 0.5,0 noenhanced tc rgb '#595959'"
        )
      }
      script.append("set title \(Gnuplot.quoted(engine.engine)) noenhanced offset 0,-0.5")
      if number == found.count - 1 { script.append("set xlabel 'seconds'") }
      let plots = lines.enumerated().map { index, line in
        let style = line.isFilled ? "with boxes fs solid 1 noborder" : "with lines lw 1.5"
        let axes = line.isRight ? " axes x1y2" : ""
        return
          "$data\(number) using 1:\(index + 2)\(axes) \(style) lc rgb '\(line.colour)' "
          + (number == 0 ? "title \(Gnuplot.quoted(line.title))" : "notitle")
      }
      script.append("plot \(plots.joined(separator: ", \\\n  "))")
    }
    script.append("unset multiplot")
    return Chart(
      name: name, title: title, width: 900, height: 40 + found.count * 200,
      script: script.joined(separator: "\n"))
  }
}
