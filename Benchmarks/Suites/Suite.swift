import BenchmarkKit
import Datasets
import Storage

/// A list of workloads that belong together, by the name that `bench` takes.
public struct Suite: Sendable {
  /// The name it is chosen by: `engine`.
  public let name: String
  /// What it measures, in a sentence.
  public let summary: String
  /// The names of its workloads, in their order.
  public let workloadNames: [String]
  /// Whether it needs the documents of the data set in memory.
  public let usesDataset: Bool
  /// What it measures with when it doesn't.
  public let data: String
  /// The engines it compares when none is named; nil: the standard ones.
  public let standardEngines: (@Sendable () -> [EngineType])?
  /// What is measured beside its engines, in columns of its own: what is no engine.
  public let peers: [Peer]
  /// What its results say beside their table: a sentence a line.
  public let notes: @Sendable ([WorkloadResult]) -> [String]
  /// The same as tables.
  public let tables: @Sendable ([WorkloadResult]) -> [Remarks.Table]
  /// Which of its engines a report draws as ratios.
  public let pairs: @Sendable (_ engines: [String]) -> [Remarks.Pair]
  /// Its workloads for a run. Data that all of them use is made here.
  public let workloads: @Sendable (SuiteContext) throws -> [Workload]

  /// A suite; see the properties.
  public init(
    name: String, summary: String, workloadNames: [String], usesDataset: Bool, data: String = "made data",
    standardEngines: (@Sendable () -> [EngineType])? = nil, peers: [Peer] = [],
    notes: @escaping @Sendable ([WorkloadResult]) -> [String] = { _ in [] },
    tables: @escaping @Sendable ([WorkloadResult]) -> [Remarks.Table] = { _ in [] },
    pairs: @escaping @Sendable (_ engines: [String]) -> [Remarks.Pair] = { _ in [] },
    workloads: @escaping @Sendable (SuiteContext) throws -> [Workload]
  ) {
    self.name = name
    self.summary = summary
    self.workloadNames = workloadNames
    self.usesDataset = usesDataset
    self.data = data
    self.standardEngines = standardEngines
    self.peers = peers
    self.notes = notes
    self.tables = tables
    self.pairs = pairs
    self.workloads = workloads
  }

  /// All suites, in the order in which they run when none is named.
  public static let all = [
    travel, engine, documents, query, fullText, encryption, convert, upgrade, claims, ycsb, cold, sync, scale,
    memory, harness,
  ]
}

extension Suite {
  /// Everything that a report says of its results beside their numbers.
  public func remarks(_ results: [WorkloadResult]) -> Remarks {
    var engines: [String] = []
    for result in results where !engines.contains(result.engine) { engines.append(result.engine) }
    return Remarks(
      notes(results), tables: tables(results), pairs: pairs(engines), data: usesDataset ? nil : data)
  }
}

/// How a run of suites is to be made.
public struct BenchSettings: Sendable {
  /// What is compared, the first one being what the others are compared with. Nil: each suite's own.
  public var engines: [EngineType]?
  /// The one level at which all engines run.
  public var durability: Durability
  /// Samples of each workload and engine.
  public var sampling: Sampling
  /// Where databases are made.
  public var workDirectory: String
  /// Of everything that is drawn: orders, keys, generated documents.
  public var seed: UInt64
  /// The documents, by name or path. Nil: travel-sample where it is here, else synthetic-travel.
  public var dataset: String?
  /// How many documents. Nil: all of the data set's.
  public var documents: Int?
  /// Keys of the engine suite.
  public var keys: Int
  /// Single commits of the engine suite.
  public var commits: Int
  /// Numbers of threads that the mixes of the suite `ycsb` run with.
  public var threads = [1, 2]
  /// Operations a second that its mixes A and B run at as well.
  public var rates = [2_000, 8_000]
  /// The greatest number of documents of the suite `scale`. Nil: `documents`, or 100,000.
  public var scaleDocuments: Int?
  /// What the engines' caches of pages may hold in the suites `travel` and `engine`, in bytes. Nil: 40 MiB, and 10 MiB for
  /// the peer of `travel`, as the original has it.
  public var cacheBytes: Int?
  /// A slowdown of all workloads, to try a gate.
  public var plantedDelay: PlantedDelay?
  /// Only these workloads. Nil: all of the suite.
  public var only: Set<String>?
  /// Whether every run begins with cold processor caches. Without, runs can't be compared.
  public var evictsCaches: Bool

  /// Settings with the sizes that fit two cores.
  public init(
    engines: [EngineType]? = nil, durability: Durability = .normal, samples: Int = 5,
    workDirectory: String, seed: UInt64 = 1, dataset: String? = nil, documents: Int? = nil,
    keys: Int = 100_000, commits: Int = 1_000, only: Set<String>? = nil, evictsCaches: Bool = true
  ) {
    self.engines = engines
    self.durability = durability
    self.sampling = .fixed(samples)
    self.workDirectory = workDirectory
    self.seed = seed
    self.dataset = dataset
    self.documents = documents
    self.keys = keys
    self.commits = commits
    self.only = only
    self.evictsCaches = evictsCaches
  }
}

extension Suite {
  /// Something that is no engine, and does the work of a suite as engines do.
  public struct Peer: Sendable {
    /// What stands in the place of an engine's name.
    public let name: String
    /// What it is with the settings of a run.
    public let description: @Sendable (BenchSettings) throws -> ResultsFile.EngineDescription

    /// A peer; see the properties.
    public init(
      name: String, description: @escaping @Sendable (BenchSettings) throws -> ResultsFile.EngineDescription
    ) {
      self.name = name
      self.description = description
    }
  }

  /// The names of all that a run compares: its engines, then its peers.
  public func subjects(_ settings: BenchSettings) -> [String] {
    engines(settings).map(\.name) + peers.map(\.name)
  }

  /// The engines that a run compares.
  public func engines(_ settings: BenchSettings) -> [EngineType] {
    settings.engines ?? standardEngines?() ?? BenchEngines.standard
  }
}

/// What the workloads of a run share.
public struct SuiteContext: Sendable {
  /// How the run is to be made.
  public let settings: BenchSettings
  /// What is known of each engine, by its name.
  public let engines: [String: ProbedEngine]
  /// Databases that are filled once.
  public let fixtures: Fixtures
  /// The documents, when a suite of the run uses some.
  public let dataset: LoadedDataset?

  /// The engine of that name. Throws when it isn't in the run.
  public func engine(_ name: String) throws -> ProbedEngine {
    guard let engine = engines[name] else {
      throw StorageError(.invalidArgument, "the engine \(name) is not in this run")
    }
    return engine
  }
}
