import BenchmarkKit
import Storage

extension Suite {
  /// Upgrades of Couchbase Lite 1.x databases.
  public static let upgrade = Suite(
    name: "upgrade",
    summary:
      "Databases of Couchbase Lite 1.x with the documents of a travel data set, 20% of them with an attachment: upgraded, "
      + "and compared with what was made of them.",
    workloadNames: UpgradeWorkload.allCases.map(\.rawValue), usesDataset: true
  ) { context in
    let dataset = try context.dataset(for: "upgrade")
    let data = UpgradeData(dataset, context)
    let revisions = UpgradeWorkload.memoryRevisions(documents: context.settings.documents)
    return UpgradeWorkload.allCases.flatMap { kind in
      kind.variants(revisions).map {
        UpgradeBenchmark(kind: kind, variant: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The workloads of the suite `upgrade`.
enum UpgradeWorkload: String, CaseIterable {
  case upgrade
  case verify
  case memory

  var summary: String {
    switch self {
    case .upgrade:
      "every document with its history and attachments, beside the same documents and attachments saved in one transaction"
    case .verify: "the source read again and compared with the result, beside the upgrade itself"
    case .memory:
      "small documents of five revisions, upgraded and verified, for the memory that the whole process has at its peak"
    }
  }

  /// The parameters that vary within a workload.
  struct Variant: Sendable {
    /// Revisions per document.
    var history = 1
    var isEncrypted = false
    /// The percentage of documents that have an attachment.
    var attachments = 20
    /// The total number of revisions; only in the workload `memory`.
    var revisions = 0
  }

  /// Revisions per document in the workload `memory`.
  static let memoryHistory = 5

  /// The numbers of revisions in the workload `memory`: up to a million, or as many as that number of
  /// documents has.
  static func memoryRevisions(documents: Int?) -> [Int] {
    let most = documents.map { $0 * memoryHistory } ?? .max
    let sizes = [10_000, 100_000, 1_000_000].filter { $0 <= most }
    return sizes.isEmpty ? [most] : sizes
  }

  /// Whether all documents have histories of 5 and 20 revisions. These are hundreds of megabytes, and minutes
  /// per run.
  static let isLong = EnvironmentVariable.value("TOUCHSTONE_LONG") != nil

  func variants(_ memoryRevisions: [Int]) -> [Variant] {
    switch self {
    case .upgrade, .verify:
      return [Variant(attachments: 0)]
        + [1, 5, 20].flatMap { history in
          [false, true].map { Variant(history: history, isEncrypted: $0) }
        }
    case .memory:
      return memoryRevisions.map { Variant(history: Self.memoryHistory, revisions: $0) }
    }
  }
}
