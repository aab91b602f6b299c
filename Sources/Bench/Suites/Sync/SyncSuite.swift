import BenchmarkKit
import Storage

extension Suite {
  /// The database work of sync: incoming revisions are applied in transactions of several sizes, also during
  /// reads, and queries follow.
  public static let sync = Suite(
    name: "sync",
    summary:
      "Applies pulled revisions: new, updating, known, conflicting and deep ones, 1 to 2,000 per transaction, with 0, 1 and "
      + "4 value indexes. Also reads meanwhile, and the first query afterwards.",
    workloadNames: SyncWorkload.allCases.map(\.rawValue), usesDataset: false, notes: SyncNotes.lines
  ) { context in
    let data = SyncData(context)
    return SyncWorkload.allCases.flatMap { kind in
      kind.variants.map { SyncBenchmark(kind: kind, variant: $0, data: data, context: context).workload() }
    }
  }
}

/// The workloads of the suite `sync`.
enum SyncWorkload: String, CaseIterable {
  case applyNew = "apply-new"
  case applyUpdate = "apply-update"
  case applyKnown = "apply-known"
  case applyConflicting = "apply-conflicting"
  case applyDeep = "apply-deep"
  case applyMixed = "apply-mixed"
  case applyBesideReader = "apply-beside-reader"
  case readBesideApply = "read-beside-apply"
  case replicatePush = "replicate-push"
  case replicatePull = "replicate-pull"
  case firstQuery = "first-query"
  case secondQuery = "second-query"
  case openedQuery = "opened-query"

  /// The workloads that one run measures, in the order of the queries.
  static let queries: [SyncWorkload] = [.firstQuery, .secondQuery, .openedQuery]

  var summary: String {
    switch self {
    case .applyNew: "documents that aren't here, at their second revision"
    case .applyUpdate: "a revision on top of what is here"
    case .applyKnown: "revisions that are here already"
    case .applyConflicting: "a revision beside what is here; every other one wins"
    case .applyDeep: "a revision \(SyncRevisions.deepHistory) generations after what is here"
    case .applyMixed: "two fifths new, a fifth updates, a fifth known, a tenth each conflicting and deep"
    case .applyBesideReader: "the mixed revisions, while a thread reads documents; the writer's time"
    case .readBesideApply:
      "documents at random, a snapshot each, while a thread applies updates, so many a transaction; 0: nobody does"
    case .replicatePush: "the new documents of another database of the process, pushed by it"
    case .replicatePull: "the new documents of another database of the process, pulled from it"
    case .firstQuery: "prepares and asks a query right after a large apply"
    case .secondQuery: "prepares and asks it once more, for another city"
    case .openedQuery: "the same, the first after the database was closed and opened again"
    }
  }

  /// The parameters that vary within a workload.
  struct Variant: Sendable {
    /// Revisions per transaction; 0 means that none are applied.
    var batch = 200
    var indexes = 0
    var isIndexed = false
    var parameters: Parameters = [:]
  }

  static let batches = [1, 20, 200, 2_000]

  var variants: [Variant] {
    func each(_ batches: [Int]) -> [Variant] {
      batches.map { Variant(batch: $0, parameters: ["batch": .integer($0)]) }
    }
    switch self {
    case .applyNew: return each(SyncWorkload.batches)
    case .applyUpdate, .applyKnown, .applyConflicting, .applyDeep: return each([1, 200])
    case .applyMixed:
      return [0, 1, 4].flatMap { indexes in
        SyncWorkload.batches.map { batch in
          Variant(
            batch: batch, indexes: indexes,
            parameters: ["batch": .integer(batch), "indexes": .integer(indexes)])
        }
      }
    case .applyBesideReader: return each([20, 200, 2_000])
    case .replicatePush, .replicatePull: return [Variant()]
    case .readBesideApply: return each([0, 20, 200, 2_000])
    case .firstQuery, .secondQuery, .openedQuery:
      return [false, true].map { isIndexed in
        Variant(
          indexes: isIndexed ? 1 : 0, isIndexed: isIndexed,
          parameters: ["index": isIndexed ? "value" : "none"])
      }
    }
  }
}
