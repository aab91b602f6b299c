/// The gate's verdict: a row fails when it is beyond its limit in both runs. One run alone may have been disturbed.
package struct GateVerdict: Sendable {
  /// What the gate says of a row, and of the whole run.
  package enum Outcome: String, Codable, Sendable {
    case passed
    /// It is beyond its limit in the run and in the repetition.
    case failed
    /// It was beyond its limit in the run and not in the repetition.
    case notConfirmed = "not confirmed"
    /// Its samples vary too much to show a slowdown that should be seen.
    case inconclusive
  }

  /// A row with its outcome.
  package struct Row: Sendable {
    package let row: Gate.Row
    package let outcome: Outcome
    /// The ratio of the repetition, for rows that were run again.
    package let again: Double?
  }

  /// All rows, in the order of the run.
  package let rows: [Row]
  /// The results that weren't judged, one line each with the reason.
  package let notJudged: [String]

  /// Compares a run with its repetition.
  package init(_ gate: Gate, repeated: Gate) {
    notJudged = gate.notJudged
    rows = gate.rows.map { row in
      guard row.isBeyond else {
        return Row(row: row, outcome: row.isBlurred ? .inconclusive : .passed, again: nil)
      }
      let second = repeated.rows.first { $0.isSame(as: row) }
      return Row(
        row: row, outcome: second?.isBeyond == true ? .failed : .notConfirmed, again: second?.ratio)
    }
  }

  /// The rows with an outcome.
  package func rows(_ outcome: Outcome) -> [Gate.Row] { rows.filter { $0.outcome == outcome }.map(\.row) }

  /// The outcome of the whole run: `failed` if a row has failed; otherwise `inconclusive` if a row is, or if nothing was judged.
  package var outcome: Outcome {
    if !rows(.failed).isEmpty { return .failed }
    return rows.isEmpty || !rows(.inconclusive).isEmpty ? .inconclusive : .passed
  }

  /// The names of the workloads that are slower than allowed, each once.
  package var slower: [String] {
    rows(.failed).map(\.identity).reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }
}
