import BenchmarkKit
import Foundation
import Storage

extension Suite {
  /// What it takes to make a database from one of Couchbase Lite 1.x.
  public static let upgrade = Suite(
    name: "upgrade",
    summary:
      "Databases of Couchbase Lite 1.x with the documents of a travel data set, 20% of them with an attachment: upgraded, "
      + "and compared with what was made of them.",
    workloadNames: UpgradeWorkload.allCases.map(\.rawValue), usesDataset: true, notes: UpgradeTargets.lines
  ) { context in
    guard let dataset = context.dataset else {
      throw StorageError(.invalidArgument, "the upgrade suite needs a data set")
    }
    let data = UpgradeData(dataset, context)
    return UpgradeWorkload.allCases.flatMap { kind in
      kind.variants.map { UpgradeRow(kind, $0, data, context).workload() }
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
    case .memory: "small documents of five revisions, for the memory that the whole process has at its peak"
    }
  }

  /// What varies within a workload.
  struct Variant: Sendable {
    /// Revisions of a document.
    var history = 1
    var isEncrypted = false
    /// Of a hundred documents, how many have an attachment.
    var attachments = 20
    /// Of all documents together; only where memory is looked at.
    var revisions = 0
  }

  /// Whether sizes are as large as they are ever asked for: minutes a run.
  static let isLong = ProcessInfo.processInfo.environment["TOUCHSTONE_LONG"] != nil

  var variants: [Variant] {
    switch self {
    case .upgrade, .verify:
      return [Variant(attachments: 0)]
        + [1, 5, 20].flatMap { history in
          [false, true].map { Variant(history: history, isEncrypted: $0) }
        }
    case .memory:
      return ([10_000, 100_000] + (Self.isLong ? [1_000_000] : [])).map { Variant(history: 5, revisions: $0) }
    }
  }
}
