import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// What each compression of an engine's library costs, and what it saves.
  public static let compression = Suite(
    name: "compression",
    summary:
      "The documents of the data set with each compression that an engine's library has: their size in files, and the time to "
      + "write and to read them, with a cache that is smaller than the data.",
    workloadNames: CompressionWorkload.allCases.map(\.rawValue), usesDataset: true,
    standardEngines: { BenchEngines.every.filter { !$0.compressions.isEmpty } }, notes: sizes
  ) { context in
    let data = try CompressionData(context)
    return data.compressions.flatMap { compression in
      CompressionWorkload.allCases.map { data.workload($0, compression) }
    }
  }
}

/// What the files of each engine take after the inserts, in a line for each.
private func sizes(_ results: [WorkloadResult]) -> [String] {
  let inserts = results.filter { $0.workload == CompressionWorkload.insert.rawValue }
  return results.engines.map { engine in
    let sizes = inserts.filter { $0.engine == engine }.compactMap { result in
      result.metrics[.fileBytes].map {
        "\(result.parameters["compression"] ?? "") \(Format.decimals($0.median / 1e6, 1)) MB"
      }
    }
    return "\(engine), files after the inserts: \(sizes.joined(separator: ", "))"
  }
}

/// The workloads of the suite `compression`.
enum CompressionWorkload: String, CaseIterable {
  case insert, update, read, scan

  var summary: String {
    switch self {
    case .insert: "all documents, 1,000 a transaction"
    case .update: "random documents saved anew, 100 a transaction"
    case .read: "random documents, a snapshot each"
    case .scan: "all documents in the order of the engine, a property of each"
    }
  }
}

/// The data that the runs of the suite share: documents and databases.
private final class CompressionData: Sendable {
  private static let name = "compression"
  private static let cacheBytes = 8 << 20

  private let context: SuiteContext
  private let dataset: LoadedDataset
  private let random: Int
  /// The compressions of all engines of the run, by the names that their libraries have for them.
  let compressions: [String]

  init(_ context: SuiteContext) throws {
    self.context = context
    dataset = try context.dataset(for: Self.name)
    random = max(1, dataset.count / 3)
    var found: [String] = []
    for engine in context.engines.values.sorted(by: { $0.type.name < $1.type.name }) {
      found += engine.type.compressions.filter { !found.contains($0) }
    }
    compressions = found
  }

  func workload(_ kind: CompressionWorkload, _ compression: String) -> Workload {
    Workload(
      suite: Self.name, name: kind.rawValue, summary: kind.summary,
      parameters: ["compression": .string(compression)],
      operations: kind == .update || kind == .read ? random : dataset.count,
      runs: { [context] in context.engines[$0]?.type.compressions.contains(compression) ?? false },
      prepare: { [self] trial in try prepare(kind, compression, trial) })
  }

  private func prepare(
    _ kind: CompressionWorkload, _ compression: String, _ trial: TrialContext
  ) throws -> Trial {
    let engine = try context.engine(trial.engine)
    var directory = trial.directory
    switch kind {
    case .insert: break
    case .update: try Fixtures.copy(try filled(engine, compression), to: directory)
    case .read, .scan: directory = try filled(engine, compression)
    }
    let database = try open(engine, directory, compression)
    return try database.closingOnFailure {
      var numbers = SeededRandom(seed: context.settings.seed &+ UInt64(trial.round))
      let order = (0..<random).map { _ in numbers.below(dataset.count) }
      return Trial(
        timing: { [self] in
          switch kind {
          case .insert: try insert(into: database)
          case .update:
            try database.inBatches(of: 100, order) {
              try database.save(dataset.idText($0), json: dataset.json($0))
            }
          case .read: try read(database, order)
          case .scan: try scan(database)
          }
        },
        fileBytes: {
          // What is in memory or in the log goes to the files that compress.
          try database.close()
          return try TrialDirectory.fileBytes(in: directory)
        },
        finish: { try database.close() })
    }
  }

  private func open(_ engine: ProbedEngine, _ directory: String, _ compression: String) throws -> Database {
    var options = try context.databaseOptions(
      engine, cacheBytes: context.settings.cacheBytes ?? Self.cacheBytes)
    options.compression = compression
    return try Database.open(Self.name, in: directory, options: options)
  }

  private func filled(_ engine: ProbedEngine, _ compression: String) throws -> String {
    try context.filled(
      "\(Self.name) \(engine.type.name) \(compression)", open: { try open(engine, $0, compression) },
      fill: insert)
  }

  private func insert(into database: Database) throws {
    try database.inBatches(of: 1_000, 0..<dataset.count) {
      try database.save(dataset.idText($0), json: dataset.json($0))
    }
  }

  private func read(_ database: Database, _ order: [Int]) throws {
    let key = try database.key(Self.property)
    var found = 0
    for number in order {
      guard let document = try database.document(dataset.idText(number)) else { continue }
      found += document[key].string?.isEmpty ?? false ? 0 : 1
    }
    try RunMismatch.check(found, order.count)
  }

  private func scan(_ database: Database) throws {
    var found = 0
    try database.read { snapshot in
      let key = try snapshot.key(Self.property)
      try snapshot.forEachDocument { document in
        found += document[key]?.utf8?.isEmpty ?? false ? 0 : 1
        return true
      }
    }
    try RunMismatch.check(found, dataset.count)
  }

  /// The property that is looked at. Documents of other data sets may lack it.
  private static let property = "type"
}
