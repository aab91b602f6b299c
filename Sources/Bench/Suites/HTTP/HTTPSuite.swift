import BenchmarkKit
import Storage
import StorageLMDB
import StorageSQLite

extension Suite {
  /// The HTTP API over loopback, with the listener that `touchstone serve` runs.
  public static let http = Suite(
    name: "http",
    summary:
      "Requests over loopback to a listener in this process: documents one by one, at full speed and at half of what the listener "
      + "can do, lists, changes, a view, idle feeds; beside the same listener answering fixed bytes, import and export.",
    workloadNames: HTTPRequestKind.allCases.map(\.rawValue), usesDataset: true,
    standardEngines: { [LMDBEngines.lmdb, SQLiteEngines.sqlite] }, notes: HTTPNotes.lines
  ) { context in
    let data = try HTTPData(context)
    return HTTPRequestKind.allCases.map { HTTPBenchmark(kind: $0, data: data, context: context).workload() }
  }
}

/// The workloads of the suite `http`.
enum HTTPRequestKind: String, CaseIterable {
  case fixed
  case fixedAtOnce = "fixed-at-once"
  case fixedHalfRate = "fixed-half-rate"
  case get
  case getHalfRate = "get-half-rate"
  case put
  case bulkDocs = "bulk-docs"
  case allDocs = "all-docs"
  case changes
  case view
  case idleFeeds = "idle-feeds"

  var summary: String {
    switch self {
    case .fixed: "the listener answers a document's bytes from memory, on a handler's thread"
    case .fixedAtOnce:
      "the same on the thread that serves the connection, as only handlers that never wait may"
    case .fixedHalfRate: "`fixed` at half of its rate; latencies count from when a request was due"
    case .get: "GET of random documents"
    case .getHalfRate:
      "GET of random documents, at half the rate of `fixed`; latencies count from when a request was due"
    case .put: "PUT of new documents, one at a time on each connection"
    case .bulkDocs: "POST _bulk_docs with 1,000 documents each"
    case .allDocs: "GET _all_docs?include_docs=true"
    case .changes: "GET _changes?style=all_docs"
    case .view: "GET of 100 rows of a view at random keys"
    case .idleFeeds: "opening continuous feeds that have nothing to say; the memory is that of all of them"
    }
  }
}

/// The remarks of the suite `http`.
enum HTTPNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    results.engines.flatMap { engine -> [String] in
      func row(_ kind: HTTPRequestKind) -> WorkloadResult? {
        results.first { $0.engine == engine && $0.workload == kind.rawValue }
      }
      var lines: [String] = []
      if let get = row(.get), let fixed = row(.fixed) {
        let share = fixed.secondsPerOperation / get.secondsPerOperation
        lines.append(
          "\(engine): a GET reaches \(rounded(share)) times the rate of the listener answering fixed bytes.")
      }
      let half = row(.fixedHalfRate)
      if let row = row(.getHalfRate), let high = row.metrics[.latencyP99] {
        let limit = half?.metrics[.latencyP99]
        lines.append(
          "\(engine): at half the rate of fixed bytes, 99 of 100 requests take less than \(rounded(high.median * 1_000)) ms"
            + (limit.map { "; of those for fixed bytes, \(rounded($0.median * 1_000)) ms." } ?? "."))
      }
      if let feeds = row(.idleFeeds), let memory = feeds.metrics[.anonymousMemoryBytes] {
        lines.append(
          "\(engine): an idle continuous feed takes \(rounded(memory.median / 1_024 / Double(max(1, feeds.operations)))) KiB on both ends."
        )
      }
      return lines
    }
  }

  private static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
