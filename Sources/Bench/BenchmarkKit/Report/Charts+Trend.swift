/// The chart of a trend: a small panel for each workload of a suite, with a line for each engine.
extension Charts {
  private static let columns = 3

  /// Each line begins at 1: the values divided by the first run's. A dot marks a change.
  static func trend(_ name: String, title: String, _ rows: [Trend.Row], _ palette: Palette) -> Chart? {
    let labels = rows.map(\.label).firstOccurrences()
    guard !labels.isEmpty else { return nil }
    let lines = (labels.count + columns - 1) / columns
    var script = ["set multiplot layout \(lines),\(columns)", "set grid y", "set format y '%gx'"]
    script.append("set xtics scale 0 format ''")
    script.append("unset key")
    for label in labels {
      let found = rows.filter { $0.label == label }
      var plots: [String] = []
      for (number, row) in found.enumerated() {
        let first = row.points.first?.value ?? 1
        func data(_ kind: String, _ indices: some Sequence<Int>) {
          let values = indices.map { "\($0 + 1) \(row.points[$0].value / first)" }
          script.append("$\(kind)\(number) << EOD\n\(values.joined(separator: "\n"))\nEOD")
        }
        data("line", row.points.indices)
        let colour = palette.colour(row.engine)
        plots.append("$line\(number) using 1:2 with lines lw 1.5 lc rgb '\(colour)' notitle")
        if !row.changes.isEmpty {
          data("change", row.changes.map(\.index))
          plots.append("$change\(number) using 1:2 with points pt 7 ps 0.6 lc rgb '\(colour)' notitle")
        }
      }
      let values = found.flatMap { row in row.points.map { $0.value / (row.points.first?.value ?? 1) } }
      // At least a tenth up and down, so that noise doesn't look like a change.
      script.append(
        "set yrange [\(min(0.9, (values.min() ?? 1) * 0.97)):\(max(1.1, (values.max() ?? 1) * 1.03))]")
      script.append("set xrange [0.5:\(Double(found.map(\.points.count).max() ?? 1) + 0.5)]")
      script.append("set title \(Gnuplot.quoted(label)) noenhanced")
      script.append("plot \(plots.joined(separator: ", "))")
    }
    script.append("unset multiplot")
    return Chart(
      name: name, title: title, width: 960, height: 40 + 190 * lines, script: script.joined(separator: "\n"))
  }
}
