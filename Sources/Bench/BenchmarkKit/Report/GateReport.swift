import FoundationEssentials

/// What a gate found, as text for people and in the formats of continuous integration.
package struct GateReport: Sendable {
  private let verdict: GateVerdict
  /// Whether more samples of the baseline are taken too, so that a longer run always helps.
  private let isBaselineSampled: Bool

  package init(_ verdict: GateVerdict, isBaselineSampled: Bool) {
    self.verdict = verdict
    self.isBaselineSampled = isBaselineSampled
  }

  // MARK: For people

  /// What should be known besides: results that weren't judged, and rows that vary too much.
  package var warnings: [String] {
    verdict.notJudged.map { "not judged: \($0)" }
      + verdict.rows(.inconclusive).map { row in
        "warning: \(row.identity) varies too much: a slowdown by \(row.measure.rawValue) of less than "
          + "\(text(row.visible)) isn't detected; \(advice(row))"
      }
  }

  private func advice(_ row: Gate.Row) -> String {
    row.canBeSharper || isBaselineSampled
      ? "use a longer --time-limit to take more samples"
      : "the samples of the baseline vary, so make it again with more samples"
  }

  /// A table of all rows, and a line for each row beyond its limit.
  package var text: String {
    var lines = summaries
    var table = TextTable(["ratio", "would show", "by", "workload"])
    for row in verdict.rows.map(\.row) {
      table.add(text(row.ratio), text(row.visible), row.measure.rawValue, row.identity)
    }
    lines.append(table.text)
    for row in verdict.rows where [.failed, .notConfirmed].contains(row.outcome) {
      lines.append(
        "\(row.outcome == .failed ? "FAILED" : "not confirmed"): \(row.row.identity): \(finding(row))")
    }
    switch verdict.outcome {
    case .passed, .notConfirmed: lines.append("passed")
    case .inconclusive:
      lines.append(verdict.rows.isEmpty ? "nothing was judged" : "passed, as far as the samples show")
    case .failed: break
    }
    return lines.joined(separator: "\n")
  }

  private var summaries: [String] {
    [Gate.Measure.instructions, .processor, .wall].compactMap { measure in
      let rows = verdict.rows.map(\.row).filter { $0.measure == measure }
      guard let worst = rows.max(by: { $0.ratio < $1.ratio }) else { return nil }
      let allowed = Set(rows.map(\.allowed)).sorted().map(text).joined(separator: ", ")
      return "\(measure.rawValue): \(rows.count) judged, allowed \(allowed), median "
        + "\(text(SampleStatistics.median(rows.map(\.ratio)))), worst \(text(worst.ratio)) (\(worst.identity))"
    }
  }

  private func finding(_ row: GateVerdict.Row) -> String {
    let judged = row.row
    return "\(judged.measure.rawValue) \(text(judged.ratio)) (95%: \(text(judged.interval.lowerBound)) to "
      + "\(text(judged.interval.upperBound))), again \(row.again.map(text) ?? "-")"
  }

  private func text(_ ratio: Double) -> String {
    ratio.isFinite ? "\((ratio * 1_000).rounded() / 1_000)x" : "∞"
  }

  // MARK: For programs

  /// GitHub's Markdown, for the summary of a job (`$GITHUB_STEP_SUMMARY`).
  package var markdown: String {
    let title: String =
      switch verdict.outcome {
      case .failed: "❌ \(verdict.slower.count) slower than allowed"
      case .inconclusive: "⚠️ Some slowdowns couldn't be seen"
      case .passed, .notConfirmed: "✅ No slowdown"
      }
    var lines = ["## Touchstone gate: \(title)", ""]
    lines += summaries.map { "- " + Self.markdown($0) }
    let beyond = verdict.rows.filter { $0.outcome != .passed }
    lines += table(of: beyond)
    let passed = verdict.rows.filter { $0.outcome == .passed }
    if !passed.isEmpty {
      lines += ["", "<details><summary>\(passed.count) passed</summary>", ""]
      lines += table(of: passed).drop { $0.isEmpty } + ["", "</details>"]
    }
    if !verdict.notJudged.isEmpty {
      lines += ["", "<details><summary>\(verdict.notJudged.count) not judged</summary>", ""]
      lines += verdict.notJudged.map { "- " + Self.markdown($0) } + ["", "</details>"]
    }
    return lines.joined(separator: "\n")
  }

  private func table(of rows: [GateVerdict.Row]) -> [String] {
    guard !rows.isEmpty else { return [] }
    return [
      "", "| outcome | workload | by | ratio | 95% interval | allowed | again | would show |",
      "|---|---|---|---:|---|---:|---:|---:|",
    ]
      + rows.map { row in
        let judged = row.row
        return "| "
          + [
            row.outcome.rawValue, Self.markdown(judged.identity), judged.measure.rawValue, text(judged.ratio),
            "\(text(judged.interval.lowerBound)) to \(text(judged.interval.upperBound))",
            text(judged.allowed),
            row.again.map(text) ?? "", text(judged.visible),
          ].joined(separator: " | ") + " |"
      }
  }

  /// Text in a cell of a table, with nothing that Markdown takes for its own.
  private static func markdown(_ text: String) -> String {
    text.reduce(into: "") { result, character in
      if "\\`*_{}[]<>#|~&".contains(character) { result.append("\\") }
      result.append(character.isNewline ? " " : character)
    }
  }

  /// GitHub's workflow commands, a line each. `file` is the results file that the run is compared with.
  package func github(file: String?) -> String {
    func command(_ kind: String, _ title: String, _ message: String) -> String {
      let properties = [
        file.map { "file=" + Self.escapedProperty($0) }, "title=" + Self.escapedProperty(title),
      ]
      return "::\(kind) \(properties.compactMap { $0 }.joined(separator: ","))::\(Self.escapedData(message))"
    }
    var lines = verdict.rows.compactMap { row -> String? in
      switch row.outcome {
      case .passed: nil
      case .failed: command("error", "slower than allowed", "\(row.row.identity): \(finding(row))")
      case .notConfirmed: command("notice", "not confirmed", "\(row.row.identity): \(finding(row))")
      case .inconclusive:
        command(
          "warning", "couldn't see",
          "\(row.row.identity): a slowdown of less than \(text(row.row.visible)) isn't detected; \(advice(row.row))"
        )
      }
    }
    lines += verdict.notJudged.map { command("notice", "not judged", $0) }
    if verdict.rows.isEmpty { lines.append(command("warning", "couldn't see", "nothing was judged")) }
    return lines.joined(separator: "\n")
  }

  private static func escapedData(_ text: String) -> String {
    text.replacing("%", with: "%25").replacing("\r", with: "%0D").replacing("\n", with: "%0A")
  }

  private static func escapedProperty(_ text: String) -> String {
    escapedData(text).replacing(":", with: "%3A").replacing(",", with: "%2C")
  }

  /// JUnit's XML: a suite of tests for each suite, a test for each workload, engine and measure.
  package var junit: String {
    var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<testsuites name=\"touchstone gate\">"]
    for suite in verdict.rows.map(\.row.suite).firstOccurrences() {
      let rows = verdict.rows.filter { $0.row.suite == suite }
      let failed = rows.count { $0.outcome == .failed }
      let skipped = rows.count { $0.outcome == .inconclusive }
      lines.append(
        "  <testsuite name=\"\(HTML.escaped(suite))\" tests=\"\(rows.count)\" failures=\"\(failed)\" errors=\"0\" "
          + "skipped=\"\(skipped)\">")
      for row in rows {
        let name = "\(row.row.identity), by \(row.row.measure.rawValue)"
        let head =
          "    <testcase classname=\"touchstone.\(HTML.escaped(suite))\" name=\"\(HTML.escaped(name))\""
        switch row.outcome {
        case .passed: lines.append(head + "/>")
        case .failed:
          lines.append(head + "><failure message=\"\(HTML.escaped(finding(row)))\"/></testcase>")
        case .notConfirmed:
          lines.append(
            head + "><system-out>not confirmed: \(HTML.escaped(finding(row)))</system-out></testcase>")
        case .inconclusive:
          let message = "a slowdown of less than \(text(row.row.visible)) isn't detected"
          lines.append(head + "><skipped message=\"\(HTML.escaped(message))\"/></testcase>")
        }
      }
      lines.append("  </testsuite>")
    }
    return (lines + ["</testsuites>"]).joined(separator: "\n")
  }

  /// One JSON object.
  package func json() throws -> String {
    struct Row: Encodable {
      let identity, measure: String
      let ratio: Double
      let ci95: [Double]
      let allowed: Double
      let visible, again: Double?
      let outcome: GateVerdict.Outcome
      let failed: Bool
    }
    struct Object: Encodable {
      let outcome: GateVerdict.Outcome
      let passed, inconclusive: Bool
      let rows: [Row]
      let notJudged: [String]
    }
    let rows = verdict.rows.map { row in
      let judged = row.row
      return Row(
        identity: judged.identity, measure: judged.measure.rawValue, ratio: judged.ratio,
        ci95: [judged.interval.lowerBound, judged.interval.upperBound], allowed: judged.allowed,
        visible: judged.visible.isFinite ? judged.visible : nil, again: row.again, outcome: row.outcome,
        failed: row.outcome == .failed)
    }
    let outcome = verdict.outcome
    let object = Object(
      outcome: outcome, passed: outcome != .failed, inconclusive: outcome == .inconclusive, rows: rows,
      notJudged: verdict.notJudged)
    return String(decoding: try JSONEncoder.readable.encode(object), as: UTF8.self)
  }
}
