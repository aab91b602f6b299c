import BenchmarkKit

/// The targets of the suite, and the results.
enum UpgradeTargets {
  /// One line per result.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    results.compactMap { row -> String? in
      switch UpgradeWorkload(rawValue: row.workload) {
      case .upgrade: upgrade(row, results)
      case .verify: verify(row)
      case .memory: memory(row, results)
      case nil: nil
      }
    }
  }

  private static func name(_ row: WorkloadResult) -> String {
    guard case .integer(let history)? = row.parameters["history"] else { return row.engine }
    let isEncrypted = row.parameters["encrypted"] == .boolean(true)
    let attachments = integer(row, "attachments")
    return
      "\(row.engine), histories of \(history), \(attachments)% attachments\(isEncrypted ? ", encrypted" : "")"
  }

  private static func integer(_ row: WorkloadResult, _ parameter: String) -> Int {
    guard case .integer(let value)? = row.parameters[parameter] else { return 0 }
    return value
  }

  private static func upgrade(_ row: WorkloadResult, _ results: [WorkloadResult]) -> String {
    let seconds = row.metrics.seconds.median
    let documents = Double(row.operations) / seconds
    let megabytes = Double(integer(row, "json_bytes")) / 1e6 / seconds
    let history = integer(row, "history")
    var text =
      "\(name(row)): \(Int(documents)) documents, \(Int(documents) * history) revisions and \(rounded(megabytes)) MB of JSON "
      + "a second"
    guard let limit = row.limit, limit.normalized > 0 else { return text }
    let hasAttachments = integer(row, "attachments") > 0
    text += ", \(rounded(1 / limit.normalized))x the documents of insert-batch"
    if hasAttachments { text += " with the same attachments" }
    guard row.engine == "lmdb", history == 1, row.parameters["encrypted"] == .boolean(false) else {
      return text
    }
    text += verdict(1 / limit.normalized >= 0.5, "at least 0.5x")
    // Most of the time goes into attachment files, so the rate is also compared with documents without
    // attachments.
    let bare = results.first {
      $0.engine == row.engine && $0.workload == row.workload && integer($0, "attachments") == 0
    }
    if hasAttachments, let bare, let seconds = bare.limit?.seconds.median {
      let ratio = documents / (Double(bare.operations) / seconds)
      text += ", \(rounded(ratio))x of insert-batch without any" + verdict(ratio >= 0.5, "at least 0.5x")
    }
    return text
  }

  private static func verify(_ row: WorkloadResult) -> String? {
    guard let limit = row.limit else { return nil }
    return "\(name(row)): verifying takes \(rounded(limit.normalized))x the time of the upgrade"
      + verdict(limit.normalized <= 1, "at most 1x")
  }

  private static func memory(_ row: WorkloadResult, _ results: [WorkloadResult]) -> String? {
    guard let peak = row.metrics[.peakMemoryBytes]?.median else { return nil }
    let revisions = integer(row, "revisions")
    var text =
      "\(row.engine), \(revisions) revisions upgraded and verified: the process had \(mebibytes(peak)) MiB at "
      + "its peak, with the data set that the suite has loaded"
      + verdict(peak < 200 * 1_048_576, "less than 200 MiB")
    let others = results.filter { $0.workload == row.workload && $0.engine == row.engine }
    guard let least = others.min(by: { integer($0, "revisions") < integer($1, "revisions") }),
      integer(least, "revisions") < revisions, let start = least.metrics[.peakMemoryBytes]?.median
    else { return text }
    // Memory should be flat: caches grow to their limit and then no more.
    let growth = peak - start
    text +=
      ", \(mebibytes(abs(growth))) MiB \(growth < 0 ? "less" : "more") than with \(integer(least, "revisions")): "
      + "\(Int(max(0, growth)) / (revisions - integer(least, "revisions"))) bytes a revision"
    return text
  }

  private static func mebibytes(_ bytes: Double) -> String { "\(Int((bytes / 1_048_576).rounded()))" }

  private static func verdict(_ isReached: Bool, _ target: String) -> String {
    " (to reach: \(target); \(isReached ? "reached" : "NOT reached"))"
  }

  private static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
