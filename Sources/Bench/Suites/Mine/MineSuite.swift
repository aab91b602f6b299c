import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// One's own documents, queries and mix of operations.
  public static let mine = Suite(
    name: "mine",
    summary:
      "Your documents, queries and mix of operations: each query with and without its indexes, with its plan; the mix "
      + "for a while, with throughput and latency second by second. It needs --dataset, and --queries or --mix.",
    workloadNames: [MineData.mixName], usesDataset: true, standardSamples: 3, notes: MineNotes.lines,
    tables: MineNotes.tables
  ) { context in
    let settings = context.settings.mine
    guard !settings.queries.isEmpty || settings.mix != nil else { return [] }
    let data = try MineData(context.dataset(for: "mine"), context)
    var workloads = settings.queries.flatMap { query in
      // Without indexes there is nothing to compare with.
      (settings.indexes.isEmpty ? [false] : [false, true]).map { data.workload(query, indexed: $0) }
    }
    // Instructions are counted for fixed work only.
    if let mix = settings.mix, settings.executions == nil {
      workloads += settings.threads.map { data.workload(mix, threads: $0) }
    }
    return workloads
  }
}

/// The data that the workloads of a run share.
final class MineData: Sendable {
  static let mixName = "mix"
  private static let databaseName = "mine"

  let dataset: LoadedDataset
  private let context: SuiteContext
  /// The number of rows of each query in the first run. All other runs must find the same number.
  private let expected = Lock<[String: Int]>([:])

  private var settings: MineSettings { context.settings.mine }

  init(_ dataset: LoadedDataset, _ context: SuiteContext) throws {
    self.dataset = dataset
    self.context = context
  }

  func open(_ engine: ProbedEngine, _ directory: String) throws -> Database {
    try context.open(Self.databaseName, engine, in: directory)
  }

  /// The directory of a database with all documents and all indexes.
  func filled(_ engine: ProbedEngine) throws -> String {
    try context.filled("mine \(engine.type.name)", open: { try open(engine, $0) }) { database in
      try dataset.save(in: database)
      for index in settings.indexes { try index.make(in: database) }
    }
  }

  // MARK: Queries

  func workload(_ query: NamedQuery, indexed: Bool) -> Workload {
    Workload(
      suite: "mine", name: query.name, summary: query.text,
      parameters: ["index": .string(indexed ? "all" : "none")],
      // A run lasts a fixed time: its seconds are those of an operation.
      operations: 1
    ) { [self] trial in
      let engine = try context.engine(trial.engine)
      let database = try open(engine, filled(engine))
      return try database.closingOnFailure { [self] in
        let prepared = try database.query(query.text, options: .init(usesIndexes: indexed))
        let plan = try prepared.explain(query.parameters).lines
        // Rows that were never read are read from the disk.
        try check(query, prepared.run(query.parameters).count)
        let run = QueryRun(prepared, query, settings) { [self] in try check(query, $0) }
        return Trial(
          run: { try run.run() }, fileBytes: { try TrialDirectory.fileBytes(in: self.filled(engine)) },
          metrics: { run.metrics }, plan: { plan }, finish: { try database.close() })
      }
    }
  }

  /// Throws unless this is the number of rows of the run before, on any engine.
  private func check(_ query: NamedQuery, _ rows: Int) throws {
    try RunMismatch.check(
      "the number of rows of \(query.name)", rows, expected.value(of: query.name) { rows })
  }

  // MARK: The mix

  func workload(_ mix: OperationMix, threads: Int) -> Workload {
    var parameters: Parameters = [
      "threads": .integer(threads), "operations": .string(mix.text),
      "seconds": Int(exactly: settings.seconds).map { .integer($0) } ?? .string("\(settings.seconds)"),
    ]
    if let rate = settings.rate { parameters["rate"] = .integer(rate) }
    return Workload(
      suite: "mine", name: Self.mixName, summary: "a mix of operations for a fixed time: \(mix.text)",
      parameters: parameters, operations: 1, runsThreads: true
    ) { [self] trial in
      let engine = try context.engine(trial.engine)
      var directory = try filled(engine)
      if mix.writes {
        try Fixtures.copy(directory, to: trial.directory)
        directory = trial.directory
      }
      let database = try open(engine, directory)
      return try database.closingOnFailure { [self, directory] in
        FreedMemory.giveBack()
        let run = MixRun(
          mix, settings, dataset, database, threads: threads, directory: directory,
          activity: EngineActivity(database.engine, engine.type, path: database.engineFile),
          seed: context.settings.seed &+ UInt64(trial.round))
        return Trial(
          run: { try run.run() }, fileBytes: { try TrialDirectory.fileBytes(in: directory) },
          metrics: { run.metrics }, series: { run.series }, finish: { try database.close() })
      }
    }
  }
}

/// Runs a query again and again.
final class QueryRun {
  private(set) var metrics: [Metric: Double] = [:]
  private let query: Query
  private let named: NamedQuery
  private let settings: MineSettings
  private let check: (Int) throws -> Void

  init(_ query: Query, _ named: NamedQuery, _ settings: MineSettings, check: @escaping (Int) throws -> Void) {
    self.query = query
    self.named = named
    self.settings = settings
    self.check = check
  }

  /// Runs the query as often as the settings say. The time is that of a run, and so are the numbers of `metrics`.
  func run() throws -> Trial.Duration {
    var histogram = LatencyHistogram()
    let cpu = Clock.cpuNanoseconds()
    let begin = Clock.nanoseconds()
    let deadline = begin + UInt64(settings.querySeconds * 1e9)
    var end = begin
    var sum = 0
    repeat {
      let start = end
      let results = try query.run(named.parameters)
      sum &+= results.sum
      end = Clock.nanoseconds()
      histogram.record(end - start)
      try check(results.count)
    } while settings.executions.map { histogram.count < $0 } ?? (end < deadline)
    withExtendedLifetime(sum) {}
    metrics[.cpuSeconds] = Double(Clock.cpuNanoseconds() - cpu) / 1e9 / Double(histogram.count)
    return .latencies(histogram, seconds: Double(end - begin) / 1e9 / Double(histogram.count))
  }
}
