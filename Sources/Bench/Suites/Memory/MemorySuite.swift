import BenchmarkKit
import Storage

extension Suite {
  /// The anonymous memory that the work of the suite `travel` needs when the documents are streamed.
  public static let memory = Suite(
    name: "memory",
    summary:
      "The peak of the process's anonymous memory while documents are inserted, read, updated, scanned, synced, deleted "
      + "and compacted. The documents are streamed, so only the database holds them.",
    workloadNames: TravelWorkload.streamed.map(\.rawValue), usesDataset: false,
    data: "the data set, streamed",
    notes: MemoryNotes.lines, tables: MemoryNotes.tables
  ) { context in
    let documents = try StreamedDocuments(context.settings)
    return TravelWorkload.streamed.map {
      MemoryBenchmark(kind: $0, documents: documents, context: context).workload()
    }
  }
}

extension TravelWorkload {
  /// The workloads of the suite `memory`.
  static let streamed: [TravelWorkload] = [
    .insertBatch, .read, .update, .scan, .syncApply, .delete, .compact,
  ]
}

/// The remarks of the suite.
enum MemoryNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    results.engines.compactMap { engine in
      let rows = results.filter { $0.engine == engine }
      let peaks = rows.compactMap { row in
        row.metrics[.anonymousMemoryBytes].map { (row.workload, $0.median) }
      }
      guard let (workload, bytes) = peaks.max(by: { $0.1 < $1.1 }) else { return nil }
      return "\(engine): the process had \(mebibytes(bytes)) MiB of its own at its peak, in \(workload)."
    }
  }

  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    let engines = results.engines
    let rows = TravelWorkload.streamed.map(\.rawValue).compactMap { workload -> [String]? in
      let cells = engines.map { engine in
        results.first { $0.workload == workload && $0.engine == engine }?.metrics[.anonymousMemoryBytes]
          .map { mebibytes($0.median) } ?? "-"
      }
      return cells.allSatisfy { $0 == "-" } ? nil : [workload] + cells
    }
    return rows.isEmpty ? [] : [Remarks.Table(heads: ["anonymous memory, MiB"] + engines, rows: rows)]
  }

  private static func mebibytes(_ bytes: Double) -> String {
    "\((bytes / 1_048_576 * 10).rounded() / 10)"
  }
}
