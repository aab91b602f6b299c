import BenchmarkKit
import Storage

extension Suite {
  /// Operations other than plain saving and reading: conflicts, histories, blobs, purges, upkeep.
  public static let documents = Suite(
    name: "documents",
    summary:
      "Blobs, conflicts, deep histories, purges, expirations, compaction, readers during writes, and counting.",
    workloadNames: DocumentsWorkload.allCases.map(\.rawValue), usesDataset: false
  ) { context in
    let data = DocumentsData(context)
    return DocumentsWorkload.allCases.flatMap { kind in
      kind.variants(data.sizes).map {
        DocumentsBenchmark(kind: kind, variant: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The workloads of the suite `documents`.
enum DocumentsWorkload: String, CaseIterable {
  case blobWrite = "blob-write"
  case blobRead = "blob-read"
  case conflictStorm = "conflict-storm"
  case conflictResolve = "conflict-resolve"
  case history
  case purge
  case setExpiration = "set-expiration"
  case expire
  case rewrite
  case compact
  case readP50 = "read-p50"
  case readP99 = "read-p99"
  case count

  static let branches = 50
  static let rewrites = 5
  static let counts = 1_000
  /// Updates per transaction, and transactions per window.
  static let historyBatch = 50
  static let windowBatches = 2

  var summary: String {
    switch self {
    case .blobWrite: "one transaction for each blob and the document that names it"
    case .blobRead: "reads of documents and their whole blobs"
    case .conflictStorm: "documents that get 50 branches each by sync, 1,000 revisions a transaction"
    case .conflictResolve: "all branches but the winner deleted, one transaction for each document"
    case .history: "updates around the nth of one document, 50 a transaction"
    case .purge: "every document with its history, in one transaction"
    case .setExpiration: "sets an expiration time for every document, in one transaction"
    case .expire: "purges of expired documents, 1,000 a transaction"
    case .rewrite: "five updates of every document; the file that compact starts with"
    case .compact: "drops replaced bodies and gives space back"
    case .readP50: "median time of a read in its own snapshot, by several threads, with or without a writer"
    case .readP99: "the 99th percentile of the same reads"
    case .count: "counts the live documents; half of all are tombstones"
    }
  }

  /// The parameters that vary within a workload.
  struct Variant: Sendable {
    var bytes = 0
    var depth = 20
    var update = 0
    var readers = 0
    var hasWriter = false
    var documents = 0
    var parameters: Parameters = [:]
  }

  func variants(_ sizes: DocumentsData.Sizes) -> [Variant] {
    switch self {
    case .blobWrite, .blobRead:
      return sizes.blobs.map { Variant(bytes: $0.bytes, parameters: ["bytes": .integer($0.bytes)]) }
    case .history:
      return [20, 1_000].flatMap { depth in
        sizes.windows(depth: depth).map { update in
          Variant(
            depth: depth, update: update, parameters: ["depth": .integer(depth), "update": .integer(update)])
        }
      }
    case .readP50, .readP99:
      return [1, 4, 16].flatMap { readers in
        [false, true].map { hasWriter in
          Variant(
            readers: readers, hasWriter: hasWriter,
            parameters: ["readers": .integer(readers), "writer": .boolean(hasWriter)])
        }
      }
    case .count:
      return [sizes.counted / 100, sizes.counted].map {
        Variant(documents: $0, parameters: ["documents": .integer($0)])
      }
    case .conflictStorm, .conflictResolve, .purge, .setExpiration, .expire, .rewrite, .compact:
      return [Variant()]
    }
  }
}
