import BenchmarkKit

/// The remarks of the suite `travel`.
enum TravelNotes {
  /// With fewer documents, a wait for the disk is a large part of the time of a transaction.
  static let fewDocuments = 5_000

  /// Operations per second, and the 99th percentile where single operations were timed.
  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    let engines = results.engines
    let rows = results.rows.map { row in
      [row[0].workload]
        + engines.map { engine in
          guard let metrics = row.first(where: { $0.engine == engine })?.metrics else { return "-" }
          let p99 = metrics[.latencyP99].map { ", p99 \(Format.duration($0.median))" } ?? ""
          return Format.count(metrics.opsPerSecond.median) + p99
        }
    }
    return rows.isEmpty ? [] : [Remarks.Table(heads: ["operations/s"] + engines, rows: rows)]
  }

  static func lines(_ results: [WorkloadResult]) -> [String] {
    let rows = results.filter { $0.workload == TravelWorkload.insertBatch.rawValue }
    guard let documents = rows.first?.operations, documents < fewDocuments,
      rows.contains(where: { $0.engine == LiteCoreLayout.name }), rows.count > 1
    else { return [] }
    return [
      "insert-batch has only \(documents) documents, so a wait for the disk counts: the engines wait once, for the commit or "
        + "for the header of a new log. peer waits for nothing, because its log was begun when its tables were made."
    ]
  }
}
