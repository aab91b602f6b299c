import BenchmarkKit
import Storage

extension Suite {
  /// Documents on each engine, compared with a bare C loop that moves the same bytes.
  public static let travel = Suite(
    name: "travel",
    summary:
      "Inserts, reads, updates, scans, syncs and deletes documents of a travel data set, compared with a loop in bare C "
      + "that parses the same JSON and moves the same records.",
    workloadNames: TravelWorkload.allCases.map(\.rawValue), usesDataset: true,
    peers: [Peer(name: LiteCoreLayout.name, description: LiteCoreLayout.description)],
    notes: TravelNotes.lines, tables: TravelNotes.tables
  ) { context in
    let dataset = try context.dataset(for: "travel")
    let data = try TravelData(dataset, context)
    let peer = LiteCoreLayout(data, context)
    return TravelWorkload.allCases.map {
      TravelBenchmark(kind: $0, data: data, context: context, peer: peer).workload()
    }
  }
}

/// The workloads of the travel suite.
enum TravelWorkload: String, CaseIterable {
  case insertBatch = "insert-batch"
  case insertSingle = "insert-single"
  case insertThreads = "insert-threads"
  case read
  case update
  case scan
  case syncApply = "sync-apply"
  case delete
  case compact
  case reopen

  static let pulledBatch = 200
  static let threads = 16
  static let scans = 10
  static let opens = 20
  static let timedReads = 16

  var summary: String {
    switch self {
    case .insertBatch: "all documents in one transaction"
    case .insertSingle: "2,000 documents, a transaction each"
    case .insertThreads: "the same by 16 threads, whose commits share a sync when they wait for one"
    case .read: "documents at random, a snapshot and one property of each"
    case .update: "every document once, in one transaction"
    case .scan: "one property of every document, in the engine's order"
    case .syncApply: "every document as a pulled revision with a history of two, 200 a transaction"
    case .delete: "every document, in one transaction"
    case .compact: "drops replaced bodies and gives space back, after every document was updated"
    case .reopen: "opens the database, reads a document and closes it"
    }
  }

  /// Documents per transaction of the bare loop; 0 means all in one.
  var batch: Int {
    switch self {
    case .insertSingle: 1
    case .syncApply: TravelWorkload.pulledBatch
    default: 0
    }
  }

  enum Start {
    /// An empty database.
    case empty
    /// A copy of a database with all documents.
    case copy
    /// A database with all documents that isn't changed.
    case shared
    /// A copy of a database in which every document was updated once.
    case updated
  }

  var start: Start {
    switch self {
    case .insertBatch, .insertSingle, .insertThreads, .syncApply: .empty
    case .update, .delete: .copy
    case .read, .scan, .reopen: .shared
    case .compact: .updated
    }
  }
}
