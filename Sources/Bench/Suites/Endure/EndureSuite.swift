import BenchmarkKit
import Storage
import Touchstone

extension Suite {
  /// What short runs hide: stalls, work in the background, files and memory that grow.
  public static let endure = Suite(
    name: "endure",
    summary:
      "A database grows to several times its cache, then random entries are replaced and read for a while, at full speed "
      + "and at fixed rates: throughput and latency by the second, stalls, space and write amplification, memory.",
    workloadNames: EndureWorkload.allCases.map(\.rawValue), usesDataset: false,
    data: "made entries", standardSamples: 1,
    standardEngines: { BenchEngines.every }, notes: EndureNotes.lines, tables: EndureNotes.tables
  ) { context in
    EndureWorkload.variants(context.settings.endure).map {
      EndureBenchmark(variant: $0, context: context).workload()
    }
  }
}

/// The settings of the suite `endure`.
public struct EndureSettings: Sendable {
  /// The sizes of values in bytes.
  public var valueBytes = [1_000]
  /// The shares of reads among the operations, in percent.
  public var readPercents = [0]
  /// The numbers of threads.
  public var threads = [1]
  /// The size of the data, as a multiple of the engine's cache.
  public var dataPerCache = 4
  /// The seconds for which each database is updated.
  public var seconds = 20.0
  /// The rates in operations per second. The workload `update` also runs at full speed.
  public var rates = [500]
  /// The length of an interval of the time series, in seconds.
  package var interval = 1.0
  /// The most seconds to wait until the process is quiet.
  package var quietLimit = 60.0

  /// The default settings.
  public init() {}
}

/// The workloads of the suite `endure`.
enum EndureWorkload: String, CaseIterable {
  /// New entries in random order until the database has its size.
  case grow
  /// Operations on random entries, for a fixed time.
  case update

  var summary: String {
    switch self {
    case .grow: "puts of new keys in random order, about 100 KB a transaction, until the data is there"
    case .update: "random values replaced, a transaction each, or read, for a fixed time"
    }
  }

  /// A workload with its parameters.
  struct Variant: Equatable {
    let kind: EndureWorkload
    let valueBytes: Int
    let threads: Int
    var readPercent = 0
    /// Operations per second of all threads together; nil for full speed.
    var rate: Int?
  }

  /// Every value of each parameter with every value of the others.
  static func variants(_ settings: EndureSettings) -> [Variant] {
    settings.valueBytes.flatMap { bytes in
      settings.threads.flatMap { threads in
        [Variant(kind: .grow, valueBytes: bytes, threads: threads)]
          + settings.readPercents.flatMap { reads in
            ([nil] + settings.rates.map { $0 }).map { rate in
              Variant(kind: .update, valueBytes: bytes, threads: threads, readPercent: reads, rate: rate)
            }
          }
      }
    }
  }
}
