import FoundationEssentials
import System

/// Results as charts and tables for people: one self-contained web page, and each chart as a file.
package struct Report {
  /// A part of the page: one suite of one results file.
  struct Section {
    let file: ResultsFile
    let suite: String
    let rows: [[WorkloadResult]]
    let engines: [String]
    let charts: [Charts.Chart]
    let remarks: Remarks
    let standing: Standing
  }

  let sections: [Section]
  /// How the workloads that several files have changed from run to run.
  let trend: Trend
  let trendCharts: [Charts.Chart]
  /// Which engine is for what.
  let advice: Advice
  /// The colours and marks of all engines.
  let palette: Palette
  let files: [ResultsFile]

  /// A report on these files. `peers` are names in results that aren't those of engines. `remarks` returns the remarks on the
  /// results of a suite.
  package init(
    _ files: [ResultsFile], peers: Set<String> = [],
    remarks: (_ suite: String, _ results: [WorkloadResult]) -> Remarks = { _, _ in Remarks() }
  ) {
    self.files = files
    let palette = Palette(engines: Report.engines(files))
    self.palette = palette
    var taken: Set<String> = []
    // The last run of each suite.
    let suites = files.flatMap { $0.results.map(\.suite) }.firstOccurrences()
    let last = suites.flatMap { suite in
      files.last { $0.results.contains { $0.suite == suite } }?.results.filter { $0.suite == suite } ?? []
    }
    advice = Advice(last, engines: palette.engines.filter { !peers.contains($0) })
    let trend = Trend(files)
    self.trend = trend
    trendCharts = trend.rows.map(\.suite).firstOccurrences().compactMap { suite in
      Charts.trend(
        Report.name("trend-\(suite)", &taken),
        title: "\(suite): how many times the first run's, run by run. Lower is better. A dot is a change.",
        trend.rows.filter { $0.suite == suite }, palette)
    }
    sections = files.flatMap { file in
      file.results.map(\.suite).firstOccurrences().map { suite in
        let results = file.results.filter { $0.suite == suite }
        let engines = results.engines
        let rows = results.rows
        let remarks = remarks(suite, results)
        return Section(
          file: file, suite: suite, rows: rows, engines: engines,
          charts: Report.charts(suite, rows, engines, palette, remarks.pairs, &taken), remarks: remarks,
          standing: Standing(rows, engines: engines))
      }
    }
  }

  /// The engines of all files: those that are compared with others most often come first.
  private static func engines(_ files: [ResultsFile]) -> [String] {
    let results = files.flatMap(\.results)
    let counts = Dictionary(results.map { ($0.engine, 1) }, uniquingKeysWith: +)
    let engines = results.engines
    return engines.filter { $0 == Standing.usualBase }
      + engines.filter { $0 != Standing.usualBase }.sorted { (counts[$0] ?? 0) > (counts[$1] ?? 0) }
  }

  /// Writes `index.html`, the charts and the exports (`results.csv`, `results.md`, `benchmark.json`) into a
  /// directory, and makes the directory if needed. Returns the names of the files.
  ///
  /// Throws `Gnuplot.Failure` if a chart can't be drawn.
  @discardableResult
  package func write(to directory: String) throws -> [String] {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let gnuplot = try Gnuplot()
    var names: [String] = []
    func write(_ name: String, _ data: Data) throws {
      try AtomicFile.write(data, to: "\(directory)/\(name)", permissions: 0o644)
      names.append(name)
    }
    var pictures: [String: String] = [:]
    for chart in trendCharts + sections.flatMap(\.charts) {
      let svg = try gnuplot.svg(width: chart.width, height: chart.height, chart.script)
      pictures[chart.name] = svg
      try write("\(chart.name).svg", Data(svg.utf8))
    }
    try write("index.html", Data(ReportPage(self, pictures: pictures).html().utf8))
    let export = ResultsExport(files)
    try write("results.csv", Data(export.csv().utf8))
    try write("results.md", Data(export.markdown().utf8))
    try write("benchmark.json", export.smallerIsBetter())
    return names
  }

  /// A file name for a chart that no other chart has.
  private static func name(_ text: String, _ taken: inout Set<String>) -> String {
    let plain = String(text.lowercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    var candidate = plain
    var number = 2
    while !taken.insert(candidate).inserted {
      candidate = "\(plain)-\(number)"
      number += 1
    }
    return candidate
  }

  private static func charts(
    _ suite: String, _ rows: [[WorkloadResult]], _ engines: [String], _ palette: Palette,
    _ pairs: [Remarks.Pair], _ taken: inout Set<String>
  ) -> [Charts.Chart] {
    func name(_ text: String) -> String { self.name(text, &taken) }
    var charts: [Charts.Chart?] = []
    for (part, group) in groups(rows).enumerated() {
      charts.append(
        Charts.bars(
          name(part == 0 ? "\(suite)-time" : "\(suite)-time-\(part + 1)"),
          title: "\(suite): time of an operation, median with its 95% interval. Lower is better.",
          axis: "nanoseconds an operation", group, engines: engines, palette, { $0.metrics.seconds },
          scale: { 1e9 / Double(max(1, $0.operations)) }))
    }
    for (part, group) in groups(rows).enumerated() where !pairs.isEmpty {
      charts.append(
        Charts.ratios(
          name(part == 0 ? "\(suite)-cost" : "\(suite)-cost-\(part + 1)"),
          title: "\(suite): how many times longer an operation takes, with the 95% interval. 1: as long.",
          group, pairs: pairs, palette))
    }
    for row in rows where row.contains(where: { $0.metrics[.latencyP99] != nil }) {
      let label = row.first?.label ?? ""
      charts.append(
        Charts.latencies(
          name("\(suite)-latency-\(label)"), title: "\(suite) \(label): how long single operations take.",
          row, engines: engines, palette))
    }
    for row in rows {
      charts += Charts.series(suite, row, engines: engines, name: name)
    }
    for growth in Growth.all(in: rows.flatMap { $0 }) {
      charts.append(
        Charts.growth(
          name("\(suite)-growth-\(growth.label)"),
          title:
            "\(suite) \(growth.label): how the time of an operation grows with \(growth.parameter). Dashed: the "
            + "fitted power.",
          growth, palette))
    }
    for (metric, title) in [
      (Metric.writeAmplification, "bytes written for each byte of the data"),
      (.spaceAmplification, "bytes stored for each byte of the data"),
    ] {
      charts.append(
        Charts.bars(
          name("\(suite)-\(metric.rawValue)"), title: "\(suite): \(title). Lower is better.", axis: "bytes",
          rows,
          engines: engines, palette, { $0.metrics[metric] }, scale: { _ in 1 }))
    }
    // File sizes and memory are charted once per suite, for the first group of workloads.
    if let first = groups(rows).first {
      charts.append(
        Charts.bars(
          name("\(suite)-file-size"), title: "\(suite): size of the files after the run. Lower is better.",
          axis: "bytes",
          first,
          engines: engines, palette, { $0.metrics.fileBytes }, scale: { _ in 1 }))
      charts.append(
        Charts.bars(
          name("\(suite)-memory"),
          title: "\(suite): greatest resident memory during the run. Lower is better.",
          axis: "bytes", first, engines: engines, palette, { $0.metrics.peakMemoryBytes }, scale: { _ in 1 }))
    }
    return charts.compactMap { $0 }
  }

  /// Splits workloads into groups of at most fourteen per chart, so that their names are readable.
  private static func groups(_ rows: [[WorkloadResult]]) -> [[[WorkloadResult]]] {
    guard rows.count > 14 else { return rows.isEmpty ? [] : [rows] }
    let count = (rows.count + 13) / 14
    let size = (rows.count + count - 1) / count
    return stride(from: 0, to: rows.count, by: size).map { Array(rows[$0..<min($0 + size, rows.count)]) }
  }
}
