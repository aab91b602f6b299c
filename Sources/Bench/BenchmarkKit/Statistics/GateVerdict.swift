/// The gate's verdict: a row fails when it is beyond its limit in both runs. One run alone may have been disturbed.
package struct GateVerdict {
  /// The rows of the first run that are beyond their limits in the second one too.
  package let failed: [Gate.Row]

  /// Compares a run with its repetition.
  package init(_ gate: Gate, repeated: Gate) {
    failed = gate.rows.filter { row in
      row.isBeyond && repeated.rows.contains { $0.isSame(as: row) && $0.isBeyond }
    }
  }

  /// The names of the workloads that are slower than allowed, each once.
  package var slower: [String] {
    failed.map(\.identity).reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }
}
