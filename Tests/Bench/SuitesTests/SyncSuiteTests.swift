import BenchmarkKit
import TestSupport

@testable import Suites

struct SyncSuiteTests {
  /// Each sample begins with a copy of a database. Copies of one on a server name the same schema.
  private static let copied = benchedEngines.filter { "\($0)" != "postgres" }

  @Test(arguments: copied)
  func everyWorkloadRunsAndRatiosAreToldOf(_ engine: EngineName) throws {
    let file = try ran(.sync, on: [engine], documents: 60)
    expect(Set(file.results.map(\.workload)), equals: Set(SyncWorkload.allCases.map(\.rawValue)))
    for result in file.results { expect(result.metrics.seconds.median > 0, "\(result.label)") }
    let reads = file.results.filter { $0.workload == SyncWorkload.readBesideApply.rawValue }
    expect(reads.count == 4 && reads.allSatisfy { ($0.metrics[.latencyP99]?.median ?? 0) > 0 })
    let notes = Suite.sync.notes(file.results)
    // Rates, indexes, the writer and the reader beside each other, two queries.
    expect(notes.count, equals: 6, "\(notes)")
    expect(notes.allSatisfy { $0.hasPrefix("\(engine): ") })
  }

  /// A store of all documents, and the suite's data of it.
  private func withDatabase(_ body: (Database, SyncData) throws -> Void) throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let type = try Engines.type(.lmdb)
    let settings = BenchSettings(engines: [type], workDirectory: directory.path, documents: 100)
    let engine = try ProbedEngine(type, durability: .none, workDirectory: directory.path)
    let data = SyncData(
      SuiteContext(
        settings: settings, engines: ["lmdb": engine], fixtures: Fixtures(in: directory.path), dataset: nil))
    let database = try data.open(engine, in: try data.filled(engine, indexes: 1))
    defer { try? database.close() }
    try body(database, data)
  }

  @Test func everyOutcomeOfTheMixIsInIt() throws {
    try withDatabase { database, data in
      let incoming = data.incoming(.applyMixed, batch: 200)
      expect(incoming.count, equals: 40)
      let counts = Dictionary(grouping: incoming, by: \.outcome).mapValues(\.count)
      // Deep ones change a document too.
      expect(counts, equals: [.added: 16, .changed: 12, .known: 8, .conflicted: 4])
      expect(Set(incoming.map(\.revision.id)).count, equals: incoming.count)
      expect(incoming.contains { $0.revision.history.count == SyncRevisions.deepHistory + 1 })
      try database.apply(incoming.map(\.revision))
      try data.check(database, incoming)
    }
  }

  @Test func aRunThatCameOutOtherwiseIsRefused() throws {
    try withDatabase { database, data in
      let incoming = data.incoming(.applyConflicting, batch: 200)
      // One is missing: an update of the winner's, a conflict too few.
      try database.apply(incoming.dropFirst().map(\.revision))
      #expect(throws: RunMismatch.self) { try data.check(database, incoming) }
      try database.apply(incoming[0].revision)
      try data.check(database, incoming)
      try database.purge(incoming[3].revision.id)
      #expect(throws: RunMismatch.self) { try data.check(database, incoming) }
    }
  }
}
