import BenchmarkKit
import Storage

extension Suite {
  /// How the time of each operation grows with the number of documents.
  public static let scale = Suite(
    name: "scale",
    summary:
      "Inserts, reads, queries, opens and compaction in databases of 10,000 documents and more, up to --scale-docs, and "
      + "how their times grow with the number of documents, as a fitted power law.",
    workloadNames: ScaleWorkload.allCases.map(\.rawValue), usesDataset: false, notes: ScaleNotes.lines
  ) { context in
    let largest = context.settings.scaleDocuments ?? context.settings.documents ?? 100_000
    let data = ScaleData(context, largest: largest)
    return ScaleWorkload.allCases.flatMap { kind in
      ScaleWorkload.sizes(upTo: largest).map {
        ScaleBenchmark(kind: kind, size: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The workloads of the suite `scale`.
enum ScaleWorkload: String, CaseIterable {
  case insert
  case read
  case queryIndex = "query-index"
  case queryScan = "query-scan"
  case reopen
  case compact

  var summary: String {
    switch self {
    case .insert: "new documents, 100 a transaction, with one value index to keep"
    case .read: "documents at random, a snapshot and one property of each"
    case .queryIndex: "a prepared query by an index that finds 100 documents, and their bodies"
    case .queryScan: "a query that looks at every document; an operation is the query"
    case .reopen: "opens the database, reads a document and closes it"
    case .compact: "after every tenth document was updated; an operation is the compaction"
    }
  }

  /// Whether an operation reads all documents. Its time then grows at least linearly.
  var isOverAll: Bool { self == .queryScan || self == .compact }

  /// The numbers of documents: 1 and 3 times the powers of ten from 10,000 (or from a tenth of `largest`, if
  /// that is less), and `largest` itself.
  static func sizes(upTo largest: Int) -> [Int] {
    var steps: [Int] = []
    var power = 1
    while power <= largest {
      steps += [power, 3 * power].filter { $0 <= largest }
      power *= 10
    }
    let first = steps.last { $0 <= max(1, min(10_000, largest / 10)) } ?? 1
    // A step close to the last one adds no information.
    return steps.filter { $0 >= first && $0 * 3 < largest * 2 } + [largest]
  }
}
