import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// A named list of related workloads for `bench`.
public struct Suite: Sendable {
  /// The name that selects the suite: `engine`.
  public let name: String
  /// A sentence that says what it measures.
  public let summary: String
  /// The names of its workloads, in order.
  public let workloadNames: [String]
  /// Whether it needs the documents of the data set in memory.
  public let usesDataset: Bool
  /// The data that it uses if it doesn't use the data set.
  public private(set) var data = "made data"
  /// The number of samples if none is given.
  public private(set) var standardSamples = 5
  /// The engines that it compares if none is named; nil for the standard ones.
  package private(set) var standardEngines: (@Sendable () -> [EngineType])?
  /// Whether it also runs on engines whose databases are on a server.
  public private(set) var runsOnServers = false
  /// Other subjects that it measures beside the engines, each in its own column.
  package private(set) var peers: [Peer] = []
  /// Whether it measures its peers only, whatever engines are named.
  package private(set) var ignoresEngines = false
  /// Returns remarks on its results, one sentence per line.
  package private(set) var notes: @Sendable ([WorkloadResult]) -> [String] = { _ in [] }
  /// Returns tables with remarks on its results.
  package private(set) var tables: @Sendable ([WorkloadResult]) -> [Remarks.Table] = { _ in [] }
  /// Returns the pairs of engines whose ratios a report charts.
  package private(set) var pairs: @Sendable (_ engines: [String]) -> [Remarks.Pair] = { _ in [] }
  /// Returns its workloads for a run. Data that all of them share is made here.
  package let workloads: @Sendable (SuiteContext) throws -> [Workload]

  /// All suites, in the order in which they run if none is named.
  public static let all = [
    travel, engine, documents, query, views, fullText, encryption, compression, convert, upgrade, claims,
    ycsb, endure,
    cold,
    sync, replicate, http, cluster, scale, memory, harness, mine,
  ]
}

extension Suite {
  /// The remarks of a report on these results.
  package func remarks(_ results: [WorkloadResult]) -> Remarks {
    Remarks(
      notes(results), tables: tables(results), pairs: pairs(results.engines), data: usesDataset ? nil : data)
  }
}

/// The settings of a run of suites.
public struct BenchSettings: Sendable {
  /// The engines to compare. The others are compared with the first. Nil: the engines of each suite.
  public var engines: [EngineType]?
  /// The durability of all engines.
  public var durability: Durability
  /// The number of samples of each workload and engine.
  public var sampling: Sampling
  /// The directory in which databases are made.
  public var workDirectory: String
  /// The seed for everything random: orders, keys, generated documents.
  public var seed: UInt64
  /// The data set, by name or path. Nil: travel-sample if it is on this machine, otherwise synthetic-travel.
  public var dataset: String?
  /// The number of documents. Nil: all documents of the data set.
  public var documents: Int?
  /// The number of keys in the engine suite.
  public var keys: Int
  /// The number of single commits in the engine suite.
  public var commits: Int
  /// The numbers of threads for the suite `ycsb`.
  public var threads = [1, 2]
  /// The target rates of the suite `ycsb`, in operations per second. Its workloads A and B also run at these.
  public var rates = [2_000, 8_000]
  /// The settings of the suite `endure`.
  public var endure = EndureSettings()
  /// The settings of the suite `mine`.
  package var mine = MineSettings()
  /// The property of the data set's lines with the ID of a document. Nil: `_id`, and lines may lack it.
  public var idProperty: String?
  /// The largest number of documents in the suite `scale`. Nil: `documents`, or 100,000.
  public var scaleDocuments: Int?
  /// The size of the engines' page caches in the suites `travel` and `engine`, in bytes. Nil: 40 MiB, and 10
  /// MiB for the peer of `travel`, as in Couchbase Lite.
  public var cacheBytes: Int?
  /// The path of the executable `touchstone`, which serves the other database in the suite `replicate`, and the databases in the
  /// suite `cluster`. Nil: no other process takes part.
  public var executable: String?
  /// The server for databases of engines without files, and of the suite `cluster`: a location without a name of a database,
  /// `postgres://host/db`. Its password isn't written anywhere.
  public var location: String?
  /// Whether the suite `replicate` runs all workloads on each pair of different engines.
  public var measuresAllPairs = false
  /// A slowdown of all workloads, to test a gate.
  package var plantedDelay: PlantedDelay?
  /// The workloads to run. Nil: all of the suite.
  public var only: Set<String>?
  /// Whether every run starts with cold processor caches. Otherwise runs aren't comparable.
  public var evictsCaches: Bool

  /// Makes settings. The default sizes suit two cores.
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
  /// A subject that isn't an engine but does the same work as the engines of a suite.
  package struct Peer: Sendable {
    /// Its name, which takes the place of an engine's name.
    package let name: String
    /// Returns its description for the settings of a run.
    package let description: @Sendable (BenchSettings) throws -> ResultsFile.EngineDescription
  }

  /// The names of everything that a run compares: its engines, then its peers.
  package func subjects(_ settings: BenchSettings) -> [String] {
    engines(settings).map(\.name) + peers.map(\.name)
  }

  /// The engines that a run compares.
  package func engines(_ settings: BenchSettings) -> [EngineType] {
    ignoresEngines ? [] : settings.engines ?? standardEngines?() ?? BenchEngines.standard
  }
}

/// The data that the workloads of a run share.
package struct SuiteContext: Sendable {
  /// The settings of the run.
  package let settings: BenchSettings
  /// The engines of the run, by name.
  package let engines: [String: ProbedEngine]
  /// Databases that are filled once.
  package let fixtures: Fixtures
  /// The documents, if a suite of the run uses them.
  package let dataset: LoadedDataset?

  /// Returns the engine of that name. Throws if it isn't in the run.
  package func engine(_ name: String) throws -> ProbedEngine {
    guard let engine = engines[name] else {
      throw StorageError(.invalidArgument, "the engine \(name) isn't part of this run")
    }
    return engine
  }

  /// Returns the documents of the data set for a suite that can't run without them.
  func dataset(for suite: String) throws -> LoadedDataset {
    guard let dataset else {
      throw StorageError(.invalidArgument, "the suite \(suite) needs a data set")
    }
    return dataset
  }

  /// Opens a database of the engine with the settings of the run.
  func open(_ name: String, _ engine: ProbedEngine, in directory: String) throws -> Database {
    let options = try databaseOptions(engine)
    guard let server = engine.server else { return try Database.open(name, in: directory, options: options) }
    return try Database.open(server.location(of: directory), options: options)
  }

  /// The options of a suite's databases on an engine. They aren't compacted in the background.
  func databaseOptions(
    _ engine: ProbedEngine, cacheBytes: Int = EngineOptions.defaultCacheBytes, depth: Int? = nil
  ) throws -> DatabaseOptions {
    DatabaseOptions(
      engine: EngineName(rawValue: engine.type.name), durability: settings.durability,
      key: try engine.options.key.map { try UserKey.raw($0) }, maximumTreeDepth: depth, compaction: .off,
      cacheBytes: cacheBytes)
  }
}
