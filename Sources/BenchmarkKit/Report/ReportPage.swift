/// The web page of a report. It contains its charts and its style, and loads nothing.
struct ReportPage {
  private let report: Report
  private let pictures: [String: String]

  /// A page with the SVG of each chart, by name.
  init(_ report: Report, pictures: [String: String]) {
    self.report = report
    self.pictures = pictures
  }

  func html() -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <link rel="icon" href="data:,">
    <title>Touchstone: results</title>
    <style>
    \(ReportPage.style)
    </style>
    </head>
    <body>
    <main>
    <h1>Touchstone: results</h1>
    \(contents())
    \(report.sections.enumerated().map { section($0, $1) }.joined(separator: "\n"))
    </main>
    </body>
    </html>

    """
  }

  private static let style = """
    :root { color-scheme: light; }
    body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; }
    main { max-width: 1100px; margin: 0 auto; padding: 1rem; }
    h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
    .scroll { overflow-x: auto; }
    table { border-collapse: collapse; font-size: 0.9rem; }
    th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
    th:first-child, td:first-child { text-align: left; }
    td.best { font-weight: 600; background: #eef6ee; }
    table.words { margin: 1rem 0; } table.words th, table.words td { text-align: left; white-space: normal; }
    small, .under { color: #666; font-size: 0.85rem; }
    figure { margin: 1.5rem 0; } figcaption { margin-bottom: 0.25rem; }
    figure svg { min-width: 600px; max-width: 100%; height: auto; }
    li { margin: 0.2rem 0; }
    """

  private func contents() -> String {
    let items = report.sections.enumerated().map { index, section in
      "<li><a href=\"#section-\(index)\">\(heading(section))</a>, \(section.rows.count) workloads</li>"
    }
    return "<ul>\n\(items.joined(separator: "\n"))\n</ul>"
  }

  private func section(_ index: Int, _ section: Report.Section) -> String {
    let caption = caption(section.file, engines: section.engines, data: section.remarks.data)
    let figures = section.charts.map { chart in
      """
      <figure id="\(chart.name)">
      <figcaption>\(escaped(chart.title))</figcaption>
      <div class="scroll">\(labelled(pictures[chart.name] ?? "", chart.title))</div>
      <small>\(caption)</small>
      </figure>
      """
    }
    let notes =
      section.remarks.sentences.isEmpty
      ? ""
      : "<ul>\n" + section.remarks.sentences.map { "<li>\(escaped($0))</li>" }.joined(separator: "\n")
        + "\n</ul>"
    return """
      <section id="section-\(index)">
      <h2>\(heading(section))</h2>
      <p class="under">\(caption)</p>
      \(table(section))
      \(latencies(section))
      \(summary(section))
      \(notes)
      \(section.remarks.tables.map(table).joined(separator: "\n"))
      \(figures.joined(separator: "\n"))
      </section>
      """
  }

  /// The suite's name, and its run if several files have the suite.
  private func heading(_ section: Report.Section) -> String {
    let isAlone = report.sections.count { $0.suite == section.suite } == 1
    return escaped(isAlone ? section.suite : "\(section.suite), run of \(section.file.started)")
  }

  /// Which engine was fastest for which workloads, and by how much.
  private func summary(_ section: Report.Section) -> String {
    let durability =
      section.engines.compactMap { section.file.engines[$0]?.settings["durability"] }.first ?? "?"
    let text = ResultsSummary(section.rows.flatMap { $0 }, engines: section.engines, durability: durability)
      .text()
    return text.split(separator: "\n").map { "<p>\(escaped(String($0)))</p>" }.joined(separator: "\n")
  }

  /// The data and machine of the measurement. It appears under every chart.
  private func caption(_ file: ResultsFile, engines: [String], data: String?) -> String {
    var parts: [String] = []
    if let data {
      parts.append(data)
    } else if let dataset = file.dataset {
      parts.append("\(dataset.name), \(dataset.documents) documents")
    }
    let durabilities = engines.compactMap { file.engines[$0]?.settings["durability"] }.firstOccurrences()
    parts.append("durability \(durabilities.joined(separator: ", "))")
    parts.append(
      engines.compactMap { name in file.engines[name].map { "\(name): \($0.library)" } }.joined(
        separator: ", "))
    parts.append(
      "\(file.machine.cpu), \(file.machine.cores) cores, \(file.machine.os), \(file.machine.filesystem)")
    parts.append("\(file.touchstone), \(file.started)")
    parts += file.conditions?.notes(cores: file.machine.cores) ?? []
    return escaped(parts.joined(separator: " · "))
  }

  /// A table of workloads by engine. The fastest engine is marked if its interval doesn't overlap the next
  /// one's.
  private func table(_ section: Report.Section) -> String {
    var lines = ["<div class=\"scroll\"><table>", "<tr><th>workload</th>"]
    for engine in section.engines { lines.append("<th>\(escaped(engine))</th>") }
    lines.append("</tr>")
    for row in section.rows {
      guard let any = row.first else { continue }
      let ranked = row.sorted { $0.metrics.seconds.median < $1.metrics.seconds.median }
      let best =
        ranked.count > 1 && ranked[0].metrics.seconds.ci95[1] < ranked[1].metrics.seconds.ci95[0]
        ? ranked[0].engine : nil
      lines.append("<tr><td>\(escaped(any.label))</td>")
      for engine in section.engines {
        guard let result = row.first(where: { $0.engine == engine }) else {
          lines.append("<td>-</td>")
          continue
        }
        var text = Format.duration(result.secondsPerOperation)
        if let limit = result.limit { text += " <small>\(Format.ratio(limit.normalized))x bare C</small>" }
        lines.append("<td\(engine == best ? " class=\"best\"" : "")>\(text)</td>")
      }
      lines.append("</tr>")
    }
    lines.append("</table></div>")
    lines.append(
      "<p class=\"under\">Median time of an operation; marked where it is the least and its 95% interval overlaps no "
        + "other's.</p>")
    return lines.joined(separator: "\n")
  }

  private func table(_ table: Remarks.Table) -> String {
    func row(_ cells: [String], _ tag: String) -> String {
      "<tr>" + cells.map { "<\(tag)>\(escaped($0))</\(tag)>" }.joined() + "</tr>"
    }
    let rows = [row(table.heads, "th")] + table.rows.map { row($0, "td") }
    return "<div class=\"scroll\"><table class=\"words\">\n\(rows.joined(separator: "\n"))\n</table></div>"
  }

  /// A table of percentiles of single operations, for workloads that timed them.
  private func latencies(_ section: Report.Section) -> String {
    let found = section.rows.flatMap { $0 }.filter { result in
      Metric.latencies.allSatisfy { result.metrics[$0.metric] != nil }
    }
    guard !found.isEmpty else { return "" }
    var lines = ["<div class=\"scroll\"><table>", "<tr><th>latency</th><th>engine</th>"]
    lines += LatencyTable.names.map { "<th>\($0)</th>" } + ["</tr>"]
    var last = ""
    for result in found {
      lines.append(
        "<tr><td>\(result.label == last ? "" : escaped(result.label))</td><td>\(escaped(result.engine))</td>")
      last = result.label
      for (metric, _) in Metric.latencies {
        lines.append("<td>\(Format.duration(result.metrics[metric]?.median ?? 0))</td>")
      }
      lines.append("</tr>")
    }
    lines.append("</table></div>")
    lines.append(
      "<p class=\"under\">Percentiles of single operations, medians of the runs. At a target rate an operation's time "
        + "counts from when it should have begun.</p>")
    return lines.joined(separator: "\n")
  }

  /// Adds the title to the SVG, for screen readers.
  private func labelled(_ svg: String, _ title: String) -> String {
    guard svg.hasPrefix("<svg") else { return svg }
    return "<svg role=\"img\" aria-label=\"\(escaped(title))\"" + svg.dropFirst(4)
  }

  private func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;")
  }
}
