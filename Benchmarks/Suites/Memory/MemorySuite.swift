import BenchmarkKit
import Storage

extension Suite {
  /// How much memory of its own a process needs for the work of the suite `travel`, when it doesn't hold the documents.
  public static let memory = Suite(
    name: "memory",
    summary:
      "The most anonymous memory that the process has while documents are inserted, read, updated, scanned, synced, "
      + "deleted and compacted. They are streamed: nothing but the database holds them.",
    workloadNames: MemoryWorkload.allCases.map(\.rawValue), usesDataset: false,
    data: "the data set, streamed",
    notes: MemoryNotes.lines, tables: MemoryNotes.tables
  ) { context in
    let documents = try StreamedDocuments(context.settings)
    return MemoryWorkload.allCases.map { MemoryRow($0, documents, context).workload() }
  }
}

/// The workloads of the suite `memory`, as those of `travel` of the same names.
enum MemoryWorkload: String, CaseIterable {
  case insertBatch = "insert-batch"
  case read
  case update
  case scan
  case syncApply = "sync-apply"
  case delete
  case compact

  static let pulledBatch = 200

  var summary: String {
    switch self {
    case .insertBatch: "all documents in one transaction"
    case .read: "every document once, a snapshot and one property of each"
    case .update: "every document once, in one transaction"
    case .scan: "one property of every document, in the engine's order"
    case .syncApply: "every document as a pulled revision with a history of two, 200 a transaction"
    case .delete: "every document, in one transaction"
    case .compact: "drops replaced bodies and gives space back, after every document was updated"
    }
  }

  var start: Start {
    switch self {
    case .insertBatch, .syncApply: .empty
    case .read, .update, .scan, .delete: .loaded
    case .compact: .updated
    }
  }

  /// What a run begins with: a database of its own.
  enum Start: String {
    case empty
    case loaded
    /// Every document was updated once.
    case updated
  }
}

/// What the suite says below its table.
enum MemoryNotes {
  /// The peak of Couchbase Lite's C++ core over such a run, which nothing here should need more than, in bytes.
  private static let bound = 81 << 20

  static func lines(_ results: [WorkloadResult]) -> [String] {
    engines(results).compactMap { engine in
      let rows = results.filter { $0.engine == engine }
      let peaks = rows.compactMap { row in
        row.metrics[.anonymousMemoryBytes].map { (row.workload, $0.median) }
      }
      guard let (workload, bytes) = peaks.max(by: { $0.1 < $1.1 }) else { return nil }
      let verdict = bytes <= Double(bound) ? "at most 81 MiB, as wanted" : "more than the 81 MiB wanted"
      return
        "\(engine): the process had \(mebibytes(bytes)) MiB of its own at its peak, in \(workload): \(verdict)."
    }
  }

  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    let engines = engines(results)
    let rows = MemoryWorkload.allCases.map(\.rawValue).compactMap { workload -> [String]? in
      let cells = engines.map { engine in
        results.first { $0.workload == workload && $0.engine == engine }?.metrics[.anonymousMemoryBytes]
          .map { mebibytes($0.median) } ?? "-"
      }
      return cells.allSatisfy { $0 == "-" } ? nil : [workload] + cells
    }
    return rows.isEmpty ? [] : [Remarks.Table(heads: ["anonymous memory, MiB"] + engines, rows: rows)]
  }

  private static func engines(_ results: [WorkloadResult]) -> [String] {
    var engines: [String] = []
    for result in results where !engines.contains(result.engine) { engines.append(result.engine) }
    return engines
  }

  private static func mebibytes(_ bytes: Double) -> String {
    "\((bytes / 1_048_576 * 10).rounded() / 10)"
  }
}
