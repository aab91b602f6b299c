/// The web page of a report: who wins, in one table and one picture, then a folded part for each suite. It
/// contains its charts and its style, and loads nothing.
struct ReportPage {
  private let report: Report
  private let pictures: [String: String]
  private let palette: Palette

  /// A page with the SVG of each chart, by name.
  init(_ report: Report, pictures: [String: String]) {
    self.report = report
    self.pictures = pictures
    palette = report.palette
  }

  func html() -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <link rel="icon" href="data:,">
    <title>Touchstone: benchmark results</title>
    <style>
    \(ReportPage.style)
    </style>
    </head>
    <body>
    \(palette.definitions)
    <main>
    <h1>Touchstone: benchmark results</h1>
    \(introduction())
    \(advice())
    \(overview())
    \(trend())
    <h2>Suites</h2>
    <p class="under">Open a suite for its workloads, its conditions and its charts.</p>
    \(report.sections.enumerated().map { section($0, $1) }.joined(separator: "\n"))
    </main>
    </body>
    </html>

    """
  }

  private static let style = """
    :root { color-scheme: light; }
    * { box-sizing: border-box; }
    body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; }
    main { max-width: 1080px; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
    h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 0.5rem; }
    h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem; } h3 { font-size: 1rem; margin: 2rem 0 0.25rem; }
    a { color: #0b5394; }
    p { margin: 0.5rem 0; max-width: 75ch; }
    small, .under { color: #595959; font-size: 0.875rem; }
    table { border-collapse: collapse; font-size: 0.9375rem; margin: 0.75rem 0; width: 100%; }
    th, td { padding: 0.35rem 0.6rem; text-align: right; border-bottom: 1px solid #e3e3e3; vertical-align: top;
      font-variant-numeric: tabular-nums; }
    thead th { border-bottom: 2px solid #767676; vertical-align: bottom; }
    th:first-child, .words td, .words th { text-align: left; }
    tbody th { font-weight: 400; overflow-wrap: anywhere; }
    .best { font-weight: 700; background: #e4f2e7; }
    .overview tbody tr:first-child > * { font-weight: 700; border-bottom: 2px solid #767676; }
    .overview :is(th, td):nth-child(2) { text-align: left; }
    .definitions { position: absolute; width: 0; height: 0; }
    .legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; font-size: 0.9375rem; }
    .legend svg { vertical-align: -1px; overflow: visible; }
    .dots { display: grid; grid-template-columns: minmax(8rem, 17rem) 1fr; margin: 0.5rem 0; }
    .dots .name { font-size: 0.875rem; line-height: 1.35; padding: 0.15rem 0.5rem 0.15rem 0; border-top: 1px solid #e3e3e3;
      overflow-wrap: anywhere; align-content: center; }
    .dots svg { display: block; overflow: visible; border-top: 1px solid #e3e3e3; } .dots svg.scale { border: 0; }
    .dots text { font-size: 12px; fill: #404040; text-anchor: middle; }
    .dots .grid { stroke: #e3e3e3; } .dots .one { stroke: #404040; stroke-width: 1.5; }
    .dots g line { stroke-width: 2; stroke-opacity: 0.6; }
    use { stroke: #fff; stroke-width: 1; }
    details { border-top: 1px solid #b5b5b5; }
    details details { border: 0; margin-top: 1rem; }
    main > details:last-child { border-bottom: 1px solid #b5b5b5; }
    summary { cursor: pointer; padding: 0.6rem 0; } summary b { font-size: 1.1rem; }
    .body { padding: 0 0 2rem; scroll-margin-top: 4rem; }
    .scroll { overflow-x: auto; }
    figure { margin: 1.5rem 0; } figcaption { margin-bottom: 0.25rem; }
    figure svg { min-width: 560px; max-width: 100%; height: auto; }
    li { margin: 0.2rem 0; max-width: 85ch; }
    @media (max-width: 700px) {
      main { padding: 0.5rem 0.9rem 3rem; }
      thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
      tr, tbody th, td { display: block; border: 0; }
      table, tbody { display: block; }
      tr { padding: 0.5rem 0; border-bottom: 1px solid #c9c9c9; }
      tbody th, .overview tbody th { padding: 0; text-align: left; font-weight: 600; border: 0; }
      td, .words td, .overview td:nth-child(2) { display: flex; justify-content: space-between; gap: 1rem; padding: 0.1rem 0.3rem;
        text-align: right; border: 0; }
      td::before { content: attr(data-label); color: #595959; font-weight: 400; text-align: left; flex: none; max-width: 45%; }
      .overview tbody tr:first-child > * { border-bottom: 0; }
      .overview td, .overview td:nth-child(2) { display: inline-flex; gap: 0.4rem; margin-right: 0.6rem; text-align: left; }
      .overview td:nth-child(2) { display: flex; justify-content: flex-start; }
      .overview td::before { max-width: none; }
      td.none, .overview td.none { display: none; }
      .dots { display: block; } .dots .name { display: block; padding-top: 0.35rem; } .dots .name + svg { border: 0; }
    }
    @media print { details { break-inside: avoid; } }
    """

  // MARK: Who wins

  private func introduction() -> String {
    let machines = report.files.map { file in
      "\(file.machine.cpu), \(file.machine.cores) cores, \(file.machine.os), \(file.machine.filesystem)"
    }.firstOccurrences()
    let versions = report.files.map(\.touchstone).firstOccurrences()
    let days = report.files.map { String($0.started.prefix(10)) }.sorted()
    let range = days.first == days.last ? days.first ?? "" : "\(days.first ?? "") to \(days.last ?? "")"
    let libraries = palette.engines.compactMap { engine in
      report.files.compactMap { $0.engines[engine]?.library }.first.map { "\(engine): \($0)" }
    }
    return """
      <p>All times are medians of an operation. <strong>Lower is better</strong>, for times, ratios, sizes and memory.</p>
      <p class="under">\(HTML.escaped(machines.joined(separator: "; "))) · Touchstone \(HTML.escaped(versions.joined(separator: ", ")))
      · \(HTML.escaped(range))<br>
      \(HTML.escaped(libraries.joined(separator: " · ")))</p>
      """
  }

  private func advice() -> String {
    guard !report.advice.lines.isEmpty else { return "" }
    let items = report.advice.lines.map { "<li>\(HTML.escaped($0))</li>" }.joined(separator: "\n")
    return """
      <h2>Which engine for what</h2>
      <ul>
      \(items)
      </ul>
      <p class="under">Geometric means of the workloads of each use. Engines are level if the 95% interval reaches below
      1.05×. A use whose samples say nothing is left out.</p>
      """
  }

  private func overview() -> String {
    let compared = report.sections.enumerated().filter { $0.element.standing.engines.count > 1 }
    guard !compared.isEmpty else { return "" }
    let usual = compared.map(\.element.standing).filter { $0.base == Standing.usualBase }
    let engines = palette.engines
    var rows: [[HTML.Cell]] = []
    if usual.count > 1 {
      let all = Standing(joining: usual)
      rows.append(cells(HTML.escaped("all that ran on \(all.base)"), all, engines))
    }
    rows += compared.map { cells(link($0, $1), $1.standing, engines) }
    let others = compared.filter { $0.element.standing.base != Standing.usualBase }
    let note = others.map { "\(heading($0.element)) is relative to \($0.element.standing.base)" }
    let base = usual.first?.base ?? compared[0].element.standing.base
    let relation =
      "Time relative to \(base)" + (usual.isEmpty || note.isEmpty ? "" : " (\(note.joined(separator: "; ")))")
    let title = "\(relation), a mark for each engine and workload, with its 95% interval"
    let plot = DotPlot(
      rows: compared.filter { !$0.element.standing.rows.isEmpty }.map { index, section in
        let points = section.standing.rows.flatMap(\.points)
        return .init(
          name: link(index, section),
          lanes: section.standing.engines.map { engine in points.filter { $0.engine == engine } }.filter {
            !$0.isEmpty
          })
      }, palette: palette, title: title)
    let drawn = palette.engines.filter { engine in
      compared.contains { $0.element.standing.rows.contains { $0.points.contains { $0.engine == engine } } }
    }
    return """
      <h2>Who wins</h2>
      <div class="overview">
      \(HTML.table(["suite", "fastest"] + engines, rows))
      </div>
      <p class="under">\(HTML.escaped(relation)): the geometric mean over the workloads of the suite that both engines ran.
      0.50× is half the time. The least of a row is marked. “Fastest” counts workloads whose median is the least and whose
      95% interval overlaps no other engine's; the others are level.</p>
      <h2>Every workload</h2>
      <p class="under">\(HTML.escaped(title)). Left of 1× is faster. Point at a mark to read its workload.</p>
      \(palette.legend(drawn))
      \(plot.html())
      """
  }

  private func cells(_ name: String, _ standing: Standing, _ engines: [String]) -> [HTML.Cell] {
    let means = standing.engines.map { (engine: $0, mean: $0 == standing.base ? 1 : standing.mean($0)) }
    let least = means.compactMap(\.mean).min()
    let values = engines.map { engine -> HTML.Cell in
      guard let mean = means.first(where: { $0.engine == engine })?.mean else { return .none }
      return HTML.Cell("\(Format.ratio(mean))×", isBest: mean == least)
    }
    return [HTML.Cell(html: name), HTML.Cell(standing.winners)] + values
  }

  private func link(_ index: Int, _ section: Report.Section) -> String {
    "<a href=\"#section-\(index)\">\(HTML.escaped(heading(section)))</a>"
  }

  /// The suite's name, and its run if several files have the suite.
  private func heading(_ section: Report.Section) -> String {
    let isAlone = report.sections.count { $0.suite == section.suite } == 1
    return isAlone ? section.suite : "\(section.suite), run of \(section.file.started)"
  }

  // MARK: From run to run

  private func trend() -> String {
    guard !report.trend.rows.isEmpty else { return "" }
    let changes = report.trend.rows.flatMap { row in
      row.changes.map { change in
        [
          HTML.Cell(row.identity), HTML.Cell("\(Format.ratio(change.ratio))×"),
          HTML.Cell(row.points[change.index].build), HTML.Cell(row.measure.rawValue),
        ]
      }
    }
    let figures = report.trendCharts.map { chart in
      """
      <figure><figcaption>\(HTML.escaped(chart.title))</figcaption>
      <div class="scroll">\(labelled(pictures[chart.name] ?? "", chart.title))</div></figure>
      """
    }
    return """
      <h2>From run to run</h2>
      \(changes.isEmpty ? "<p>No workload changed by more than the runs vary.</p>" : HTML.table(["workload", "change", "from", "by"], changes, isWords: true))
      \(palette.legend(palette.engines.filter { engine in report.trend.rows.contains { $0.engine == engine } }))
      \(figures.joined(separator: "\n"))
      """
  }

  // MARK: Suites

  private func section(_ index: Int, _ section: Report.Section) -> String {
    let caption = HTML.escaped(caption(section.file, section))
    let winners = section.standing.winners
    let summary =
      "<b>\(HTML.escaped(heading(section)))</b> <span class=\"under\">"
      + HTML.escaped(
        "\(section.rows.count) workloads" + (winners.isEmpty ? "" : "; fastest: \(winners)"))
      + "</span>"
    let sentences = self.summary(section) + section.remarks.sentences
    let notes = sentences.map { "<li>\(HTML.escaped($0))</li>" }.joined(separator: "\n")
    let figures = section.charts.map { chart in
      """
      <figure id="\(chart.name)">
      <figcaption>\(HTML.escaped(chart.title))</figcaption>
      <div class="scroll">\(labelled(pictures[chart.name] ?? "", chart.title))</div>
      <small>\(caption)</small>
      </figure>
      """
    }
    let body = [
      "<p class=\"under\">\(caption)</p>",
      table(section), plot(section), latencies(section),
      "<h3>Remarks</h3>\n<ul>\n\(notes)\n</ul>",
      section.remarks.tables.map(table).joined(separator: "\n"),
      figures.isEmpty
        ? ""
        : HTML.folded(
          "\(figures.count) charts: times, sizes, memory", figures.joined(separator: "\n")),
    ]
    return HTML.folded(
      summary, anchor: "section-\(index)", body.filter { !$0.isEmpty }.joined(separator: "\n"))
  }

  /// Which engine was fastest for which workloads, and by how much.
  private func summary(_ section: Report.Section) -> [String] {
    let durability =
      section.engines.compactMap { section.file.engines[$0]?.settings["durability"] }.first ?? "?"
    return ResultsSummary(
      section.rows.flatMap { $0 }, engines: section.engines, durability: durability
    ).text().split(separator: "\n").map(String.init)
  }

  /// The data and machine of the measurement. It appears under every chart.
  private func caption(_ file: ResultsFile, _ section: Report.Section) -> String {
    var parts: [String] = []
    if let data = section.remarks.data {
      parts.append(data)
    } else if let dataset = file.dataset {
      parts.append("\(dataset.name), \(dataset.documents) documents")
    }
    let durabilities = section.engines.compactMap { file.engines[$0]?.settings["durability"] }
      .firstOccurrences()
    parts.append("durability \(durabilities.joined(separator: ", "))")
    parts.append(
      section.engines.compactMap { name in file.engines[name].map { "\(name): \($0.library)" } }.joined(
        separator: ", "))
    parts.append(
      "\(file.machine.cpu), \(file.machine.cores) cores, \(file.machine.os), \(file.machine.filesystem)")
    parts.append("\(file.touchstone), \(file.started)")
    parts += file.conditions?.notes(cores: file.machine.cores) ?? []
    return parts.joined(separator: " · ")
  }

  /// A table of workloads by engine. The fastest engine is marked.
  private func table(_ section: Report.Section) -> String {
    let rows = section.rows.map { row in
      let fastest = row.fastest
      let cells = section.engines.map { engine -> HTML.Cell in
        guard let result = row.first(where: { $0.engine == engine }) else { return .none }
        var html = HTML.escaped(Format.duration(result.secondsPerOperation))
        if let limit = result.limit {
          html += " <small>\(Format.ratio(limit.normalized))× limit</small>"
        }
        return HTML.Cell(html: html, isBest: engine == fastest)
      }
      return [HTML.Cell(row.first?.label ?? "")] + cells
    }
    let hasLimits = section.rows.contains { $0.contains { $0.limit != nil } }
    return """
      <h3>Time of an operation</h3>
      <p class="under">Median. Marked: the least, if its 95% interval overlaps no other's.\
      \(hasLimits ? " “× limit”: relative to the same work without Touchstone." : "")</p>
      \(HTML.table(["workload"] + section.engines, rows))
      """
  }

  /// The times of the workloads relative to one engine.
  private func plot(_ section: Report.Section) -> String {
    let standing = section.standing
    guard !standing.rows.isEmpty else { return "" }
    let title = "Time relative to \(standing.base), with its 95% interval"
    let left = standing.workloads - standing.rows.count
    let note =
      left > 0 ? " \(left) workloads that ran on one engine or not on \(standing.base) are left out." : ""
    let plot = DotPlot(
      rows: standing.rows.map { .init(name: HTML.escaped($0.label), lanes: [$0.points]) },
      palette: palette, title: "\(section.suite): \(title)")
    let drawn = standing.engines.filter { engine in
      standing.rows.contains { $0.points.contains { $0.engine == engine } }
    }
    return """
      <h3>\(HTML.escaped(title))</h3>
      <p class="under">Left of 1× is faster.\(HTML.escaped(note))</p>
      \(palette.legend(drawn))
      \(plot.html())
      """
  }

  private func table(_ table: Remarks.Table) -> String {
    HTML.table(table.heads, table.rows.map { $0.map { HTML.Cell($0) } }, isWords: true)
  }

  /// A table of percentiles of single operations, for workloads that timed them.
  private func latencies(_ section: Report.Section) -> String {
    let found = section.rows.flatMap { $0 }.filter { result in
      Metric.latencies.allSatisfy { result.metrics[$0.metric] != nil }
    }
    guard !found.isEmpty else { return "" }
    let rows = found.map { result in
      [HTML.Cell(result.label), HTML.Cell(result.engine)]
        + Metric.latencies.map { HTML.Cell(Format.duration(result.metrics[$0.metric]?.median ?? 0)) }
    }
    return """
      <h3>Latency of single operations</h3>
      <p class="under">Medians of the percentiles of each run. At a target rate an operation's time counts from when it
      should have begun.</p>
      \(HTML.table(["workload", "engine"] + LatencyTable.names, rows))
      """
  }

  /// Adds the title to the SVG, for screen readers.
  private func labelled(_ svg: String, _ title: String) -> String {
    guard svg.hasPrefix("<svg") else { return svg }
    return "<svg role=\"img\" aria-label=\"\(HTML.escaped(title))\"" + svg.dropFirst(4)
  }
}
