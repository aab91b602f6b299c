import BenchmarkKit
import Datasets
import Documents
import Storage
import Touchstone

/// A benchmark of the suite `memory`. It makes the runs on an engine.
struct MemoryBenchmark: Sendable {
  let kind: TravelWorkload
  let documents: StreamedDocuments
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "memory", name: kind.rawValue,
      summary: kind == .read ? "every document once, a snapshot and one property of each" : kind.summary,
      parameters: ["data": .string(documents.name), "documents": .integer(documents.count)],
      operations: documents.count
    ) { try prepare($0) }
  }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let saves =
      switch kind.start {
      case .empty: 0
      case .copy, .shared: 1
      case .updated: 2
      }
    let fixture = try context.filled(
      "memory \(engine.type.name) saved \(saves) times", open: { try open(engine, in: $0) }
    ) { database in
      for _ in 0..<saves { try saveAll(database) }
    }
    try Fixtures.copy(fixture, to: trial.directory)
    let peak = MemoryPeak()
    // Memory that was freed before and kept by the allocator doesn't belong to this run.
    FreedMemory.giveBack()
    return Trial(
      timing: {
        try peak.measure {
          let database = try open(engine, in: trial.directory)
          defer { try? database.close() }
          try run(database)
        }
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
      metrics: { [.anonymousMemoryBytes: Double(peak.bytes)] })
  }

  private func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try Database.open(
      "memory", in: directory,
      options: try context.databaseOptions(engine, cacheBytes: engine.options.cacheBytes))
  }

  private func saveAll(_ database: Database) throws {
    try database.inBatch {
      try documents.forEach { id, json in try database.save(id, json: json) }
    }
  }

  private func run(_ database: Database) throws {
    switch kind {
    case .insertBatch, .update: try saveAll(database)
    case .read: try read(database)
    case .scan: try scan(database)
    case .syncApply: try pull(database)
    case .delete: try database.inBatch { try documents.forEach { id, _ in try database.delete(id) } }
    case .compact: try database.compact()
    case .insertSingle, .insertThreads, .reopen: preconditionFailure("\(kind.rawValue) isn't streamed")
    }
    let left = kind == .delete ? 0 : documents.count
    try RunMismatch.check("documents after \(kind.rawValue)", try database.documentCount, left)
  }

  private func read(_ database: Database) throws {
    let key = try database.key(TravelData.property)
    var bytes = 0
    try documents.forEach { id, _ in bytes &+= try database.document(id)?[key].string?.utf8.count ?? 0 }
    withExtendedLifetime(bytes) {}
  }

  private func scan(_ database: Database) throws {
    var bytes = 0
    try database.read { snapshot in
      let key = try snapshot.key(TravelData.property)
      try snapshot.forEachDocument { document in
        bytes &+= document[key]?.utf8?.byteCount ?? 0
        return true
      }
    }
    withExtendedLifetime(bytes) {}
  }

  private func pull(_ database: Database) throws {
    var waiting: [PulledRevision] = []
    var number = 0
    try documents.forEach { id, json in
      waiting.append(TravelData.pulled(id, number, json))
      number += 1
      guard waiting.count == TravelWorkload.pulledBatch else { return }
      try database.apply(waiting)
      waiting = []
    }
    try database.apply(waiting)
  }
}

/// The documents of a run, read again for each pass.
struct StreamedDocuments: Sendable {
  /// The name of the data set or the file.
  let name: String
  /// The number of documents.
  let count: Int
  private let settings: BenchSettings

  private let suite: String

  /// Opens the data set of the settings for a suite, limited to the number of documents that they ask for.
  /// Throws `DatasetError`.
  init(_ settings: BenchSettings, for suite: String = "memory") throws {
    self.settings = settings
    self.suite = suite
    name = settings.dataset ?? KnownDatasets.standard().name
    let source = try Self.open(name, settings, suite)
    var count = 0
    while count < settings.documents ?? .max, try source.next() != nil { count += 1 }
    self.count = count
  }

  private static func open(_ name: String, _ settings: BenchSettings, _ suite: String) throws
    -> any RecordSource
  {
    if CBLite2Dataset.isNamed(name) {
      throw DatasetError(
        .invalidArgument, "the suite \(suite) needs a data set or a file of JSON lines", path: name)
    }
    return try DatasetLookup.open(name, documents: settings.documents, seed: settings.seed)
  }

  /// Calls `body` with the ID and the JSON of each document. The JSON is valid until `body` returns.
  func forEach(_ body: (_ id: String, _ json: UnsafeRawBufferPointer) throws -> Void) throws {
    let source = try Self.open(name, settings, suite)
    for number in 0..<count {
      guard let record = try source.next() else { return }
      try body(record.idString ?? "row-\(number + 1)", record.json)
    }
  }
}
