import BenchmarkKit
import Storage

extension Suite {
  /// The storage engines alone, compared with the same loops in bare C on the same library, with the same
  /// settings and transactions.
  public static let engine = Suite(
    name: "engine",
    summary:
      "Puts, gets and scans of the storage engines alone, with db_bench's names: 24-byte keys, values of 150 "
      + "and 1,000 bytes.",
    workloadNames: EngineWorkload.allCases.map(\.rawValue), usesDataset: false, runsOnServers: true
  ) { context in
    [150, 1_000].flatMap { valueBytes in
      let data = KeyValueData(
        count: context.settings.keys, valueBytes: valueBytes, rangeLength: EngineWorkload.rangeLength,
        seed: context.settings.seed)
      return EngineWorkload.allCases.flatMap { workload in
        workload.threads.map {
          EngineBenchmark(kind: workload, data: data, context: context, threads: $0).workload()
        }
      }
    }
  }
}

/// The workloads of the engine suite. A workload with a name of db_bench does the same as there.
enum EngineWorkload: String, CaseIterable {
  /// Puts in key order, in one transaction.
  case fillseq
  /// Puts in random order, in one transaction.
  case fillrandom
  /// Puts in random order, 1,000 per transaction.
  case fillbatch
  /// Puts of existing keys in random order, 1,000 per transaction.
  case overwrite
  /// Gets in random order, in one snapshot.
  case readrandom
  /// Gets of missing keys, in one snapshot.
  case readmissing
  /// A scan in ascending order of keys.
  case readseq
  /// A scan in descending order of keys.
  case readreverse
  /// Scans of 100 entries from random keys on, in one snapshot. An operation is one entry.
  case readrange
  /// Deletes in random order, 1,000 per transaction.
  case deleterandom
  /// Gets in random order, each in a new snapshot, while another thread overwrites with 100 puts per
  /// transaction.
  case readwhilewriting
  /// Opens the database, gets one entry and closes it.
  case open
  /// Puts of new keys, one per transaction, by 1, 4 and 16 threads.
  case commitsync

  static let rangeLength = 100
  static let opens = 50
  static let writerBatch = 100

  var summary: String {
    switch self {
    case .fillseq: "puts in key order, in one transaction"
    case .fillrandom: "puts in random order, in one transaction"
    case .fillbatch: "puts in random order, 1,000 a transaction"
    case .overwrite: "puts over what is there, in random order, 1,000 a transaction"
    case .readrandom: "gets in random order, in one snapshot"
    case .readmissing: "gets of keys that aren't there, in one snapshot"
    case .readseq: "a scan in key order"
    case .readreverse: "a scan against key order"
    case .readrange: "scans of 100 entries from random keys on; an operation is an entry"
    case .deleterandom: "deletes in random order, 1,000 a transaction"
    case .readwhilewriting: "gets, a snapshot each, while another thread overwrites, 100 puts a transaction"
    case .open: "opens the database, gets one entry and closes it"
    case .commitsync: "puts of new keys, a transaction each"
    }
  }

  /// The numbers of threads to run with; nil if that isn't a parameter.
  var threads: [Int?] { self == .commitsync ? [1, 4, 16] : [nil] }

  /// Puts or deletes per transaction; 0 means all in one.
  var batch: Int {
    switch self {
    case .fillbatch, .overwrite, .deleterandom: 1_000
    default: 0
    }
  }

  enum Start {
    /// A database with an empty keyspace.
    case empty
    /// A copy of a filled database.
    case copy
    /// A filled database that isn't changed.
    case shared
  }

  var start: Start {
    switch self {
    case .fillseq, .fillrandom, .fillbatch, .commitsync: .empty
    case .overwrite, .deleterandom, .readwhilewriting: .copy
    case .readrandom, .readmissing, .readseq, .readreverse, .readrange, .open: .shared
    }
  }
}
