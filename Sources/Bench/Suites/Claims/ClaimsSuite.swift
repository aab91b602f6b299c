import BenchmarkKit
import Datasets
import FoundationEssentials
import Storage
import Touchstone

extension Suite {
  /// The claims of the Couchbase Lite 1.x guide about ForestDB and SQLite, measured with LMDB, which takes
  /// the place of ForestDB here.
  public static let claims = Suite(
    name: "claims",
    summary:
      "Checks on LMDB what the 1.x guide claims for ForestDB compared with SQLite: 2x to 5x as fast, writers never block "
      + "readers, lower RAM footprint.",
    workloadNames: ClaimsWorkload.allCases.map(\.rawValue), usesDataset: false,
    standardEngines: { [EngineName.sqlite, .lmdb].compactMap { try? Engines.type($0) } },
    tables: ClaimsTable.tables
  ) { context in
    let data = ClaimsData(context)
    return ClaimsWorkload.allCases.flatMap { data.workloads($0) }
  }
}

/// The workloads of the suite `claims`.
enum ClaimsWorkload: String, CaseIterable {
  case insertBatch = "insert-batch"
  case insertSingle = "insert-single"
  case update
  case read
  case scan
  case changes
  case deleteBatch = "delete-batch"
  case readP50 = "read-p50"
  case readP99 = "read-p99"
  case openMany = "open-many"

  /// The workloads for the claim "2x to 5x as fast".
  static let operations: [ClaimsWorkload] = [
    .insertBatch, .insertSingle, .update, .read, .scan, .changes, .deleteBatch,
  ]

  var summary: String {
    switch self {
    case .insertBatch: "new documents, 1,000 a transaction"
    case .insertSingle: "new documents, a transaction each"
    case .update: "random documents saved anew, 100 a transaction"
    case .read: "random documents, a snapshot each"
    case .scan: "all documents in the order of their IDs, a property of each"
    case .changes: "all changes since the beginning"
    case .deleteBatch: "every document deleted, 1,000 a transaction"
    case .readP50: "the median time of a read by four threads, beside a writer or not"
    case .readP99: "of the same reads the 99th percentile"
    case .openMany: "so many databases, opened one after another, read whole by four threads, and left open"
    }
  }
}

/// The data that the runs of the suite share: sizes and databases.
final class ClaimsData: Sendable {
  static let readers = 4
  private let context: SuiteContext
  private let data: DocumentsData
  private let documents: Int
  private let singles: Int
  private let readsEach: Int
  /// The number of databases that are open at once, in the variant with several.
  let databases: Int
  private let documentsEach: Int

  init(_ context: SuiteContext) {
    self.context = context
    data = DocumentsData(context)
    documents = context.settings.documents ?? 20_000
    singles = max(20, min(2_000, documents / 10))
    readsEach = max(200, documents)
    databases = context.settings.documents.map { $0 < 1_000 ? 3 : 30 } ?? 30
    documentsEach = max(20, documents / 10)
  }

  private func filled(_ engine: ProbedEngine, _ count: Int) throws -> String {
    try data.fixture("claims \(count)", engine) { try data.saveAll($0, count) }
  }

  func workloads(_ kind: ClaimsWorkload) -> [Workload] {
    switch kind {
    case .readP50, .readP99:
      [false, true].map { hasWriter in
        workload(kind, ["writer": .boolean(hasWriter)], operations: 1) { [self] engine, trial in
          try latencyTrial(kind, engine, trial, hasWriter: hasWriter)
        }
      }
    case .openMany:
      [1, databases].map { count in
        workload(kind, ["databases": .integer(count)], operations: count) { [self] engine, trial in
          try openTrial(engine, trial, count)
        }
      }
    default:
      [
        workload(kind, [:], operations: operations(kind)) { [self] engine, trial in
          try operationTrial(kind, engine, trial)
        }
      ]
    }
  }

  private func operations(_ kind: ClaimsWorkload) -> Int {
    switch kind {
    case .insertSingle: singles
    case .update: max(100, documents / 2)
    default: documents
    }
  }

  private func workload(
    _ kind: ClaimsWorkload, _ parameters: Parameters, operations: Int,
    _ trial: @escaping @Sendable (ProbedEngine, TrialContext) throws -> Trial
  ) -> Workload {
    Workload(
      suite: "claims", name: kind.rawValue, summary: kind.summary, parameters: parameters,
      operations: operations, runsThreads: [.readP50, .readP99, .openMany].contains(kind)
    ) { [context] in try trial(try context.engine($0.engine), $0) }
  }

  // MARK: Operations

  private func operationTrial(_ kind: ClaimsWorkload, _ engine: ProbedEngine, _ trial: TrialContext) throws
    -> Trial
  {
    var directory = trial.directory
    switch kind {
    case .insertBatch: break
    case .read, .scan, .changes: directory = try filled(engine, documents)
    default: try Fixtures.copy(try filled(engine, documents), to: directory)
    }
    let database = try data.open(engine, in: directory)
    return Trial(
      timing: { [self] in try run(kind, database, seed: context.settings.seed &+ UInt64(trial.round)) },
      fileBytes: { try TrialDirectory.fileBytes(in: directory) }, finish: { try database.close() })
  }

  private func run(_ kind: ClaimsWorkload, _ database: Database, seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    switch kind {
    case .insertBatch:
      try database.inBatches(of: 1_000, 0..<documents) {
        try database.save(DocumentsData.id($0), DocumentsData.body($0, version: 1))
      }
    case .insertSingle:
      for number in documents..<documents + singles {
        try database.save(DocumentsData.id(number), DocumentsData.body(number, version: 1))
      }
    case .update:
      try database.inBatches(of: 100, 0..<operations(kind)) { version in
        let number = random.below(documents)
        try database.save(DocumentsData.id(number), DocumentsData.body(number, version: 2 + version))
      }
    case .deleteBatch:
      try database.inBatches(of: 1_000, 0..<documents) { try database.delete(DocumentsData.id($0)) }
    case .read:
      let key = try database.key("name")
      for _ in 0..<documents {
        guard try database.document(DocumentsData.id(random.below(documents)))?[key].string != nil else {
          throw RunMismatch(seen: 0, expected: 1)
        }
      }
    case .scan: try RunMismatch.check(try names(database), documents)
    case .changes: try RunMismatch.check(try database.changes().count, documents)
    case .readP50, .readP99, .openMany: break
    }
  }

  /// Reads every document and returns their number.
  private func names(_ database: Database) throws -> Int {
    let key = try database.key("name")
    var found = 0
    try database.read { snapshot in
      try snapshot.enumerate { document in
        if document[key] != nil { found += 1 }
        return true
      }
    }
    return found
  }

  // MARK: Readers and memory

  private func latencyTrial(
    _ kind: ClaimsWorkload, _ engine: ProbedEngine, _ trial: TrialContext, hasWriter: Bool
  ) throws -> Trial {
    let source = try filled(engine, documents)
    return Trial(run: { [self] in
      let seconds = try data.measured.value(of: "claims \(engine.type.name) \(trial.round) \(hasWriter)") {
        if hasWriter { try Fixtures.copy(source, to: trial.directory) }
        let database = try data.open(engine, in: hasWriter ? trial.directory : source)
        defer { try? database.close() }
        return try ReadLatency.measure(
          database, documents: documents, readers: Self.readers, hasWriter: hasWriter, readsEach: readsEach,
          seed: context.settings.seed &+ UInt64(trial.round))
      }
      return .seconds(seconds[kind == .readP50 ? 0 : 1])
    })
  }

  private func openTrial(_ engine: ProbedEngine, _ trial: TrialContext, _ count: Int) throws -> Trial {
    let source = try filled(engine, documentsEach)
    for number in 0..<count {
      let directory = "\(trial.directory)/\(number)"
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
      try Fixtures.copy(source, to: directory)
    }
    let opened = Opened()
    // Otherwise, memory that earlier runs freed and the allocator kept would be reused and not be measured.
    FreedMemory.giveBack()
    return Trial(
      timing: { [self] in
        for number in 0..<count {
          let database = try data.open(engine, in: "\(trial.directory)/\(number)")
          opened.add(database)
          _ = try ThreadGroup.run(Self.readers) { [self] _ in
            try RunMismatch.check(try names(database), documentsEach)
          }
        }
        FreedMemory.giveBack()
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) }, finish: { try opened.close() })
  }

  /// The databases that are open at once.
  private final class Opened: Sendable {
    private let databases = Lock<[Database]>([])
    func add(_ database: Database) { databases.withLock { $0.append(database) } }
    func close() throws { for database in databases.withLock({ $0 }) { try database.close() } }
  }
}
