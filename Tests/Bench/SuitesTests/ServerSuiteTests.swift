import BenchmarkKit
import Limits
import TestSupport

@testable import Suites

#if POSTGRES
  import StoragePostgres

  /// Suites with databases on a server of the test's own.
  @Suite(.enabled(if: PostgresServer.absence == nil)) struct ServerSuiteTests {
    /// 8 processes with 16 databases each have some connections for each.
    private static let shared = Result { try PostgresServer(options: ["max_connections=800"]) }
    private let server: PostgresServer

    init() throws {
      Engines.register(PostgresEngines.postgres)
      server = try Self.shared.get()
    }

    private var location: String { server.location("").replacingOccurrences(of: "#", with: "") }

    private func expectNothingLeft() throws {
      try expect(server.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench%'"), equals: [])
    }

    @Test func theEngineRunsBesideTheSameWorkInC() throws {
      let file = try ran(.engine, on: [.postgres]) {
        ($0.keys, $0.commits, $0.location) = (300, 20, location)
      }
      expect(file.results.count, equals: (EngineWorkload.allCases.count + 2) * 2)
      for result in file.results {
        // The loops check that both sides see the same entries.
        expect((result.limit?.seconds.median ?? 0) > 0, "\(result.label)")
        expect(result.metrics.fileBytes.median > 0, "\(result.label)")
      }
      try expectNothingLeft()
    }

    @Test func documentsRunOnAServer() throws {
      let file = try ran(.ycsb, on: [.postgres]) {
        ($0.documents, $0.keys, $0.location) = (200, 200, location)
        ($0.threads, $0.rates) = ([1, 2], [])
        $0.only = ["load", "a-update-heavy", "c-read-only", "e-short-ranges"]
      }
      expect(!file.results.isEmpty)
      for result in file.results { expect(result.metrics.fileBytes.median > 0, "\(result.label)") }
      try expectNothingLeft()
    }

    /// The shapes that a short run measures: what the notes compare, one at a distance, and clients that are alone.
    private static let shapes = ClusterBenchmark.Shape.all.filter { shape in
      !isShort || shape.clients == 1 || shape.roundTripMicroseconds == 1_000
        || shape.databases == 16 && [1, 4].contains(shape.servers)
    }

    @Test func everyShapeOfAClusterRunsAndItsDatabasesAreRemoved() throws {
      expect(Self.shapes.count, equals: isShort ? 5 : 17)
      let executable = try #require(builtExecutable("touchstone"))
      let all = Suite.cluster
      let suite = Suite(
        name: all.name, summary: all.summary, workloadNames: all.workloadNames, usesDataset: all.usesDataset,
        data: all.data, standardSamples: all.standardSamples, runsOnServers: all.runsOnServers,
        peers: all.peers, ignoresEngines: all.ignoresEngines, notes: all.notes, tables: all.tables
      ) { context in
        let wanted = Set(Self.shapes.map(\.parameters.text))
        return try all.workloads(context).filter { wanted.contains($0.parameters.text) }
      }
      let file = try ran(suite) {
        ($0.keys, $0.commits, $0.location) = (640, 32, location)
        $0.executable = executable
        if !isLong { $0.only = ["writes"] }
      }
      let kinds = isLong ? 2 : 1
      expect(file.results.count, equals: kinds * Self.shapes.count)
      for result in file.results {
        expect(result.engine, equals: "postgres")
        expect(result.metrics.seconds.median > 0, "\(result.label)")
        // A request is a round trip at least.
        guard case .integer(let microseconds)? = result.parameters["rtt_us"] else { continue }
        let latency = result.metrics[.latencyP50]?.median ?? 0
        expect(latency >= Double(microseconds) / 1e6, "\(result.label): \(latency)")
        guard microseconds > 0 else { continue }
        expect(Int(result.metrics[.messages]?.median ?? 0) >= result.operations, "\(result.label)")
      }
      expect(all.notes(file.results).count, equals: 2 * kinds)
      try expectNothingLeft()
    }

    @Test func theProxyDelaysEveryAnswerAndLosesNothing() throws {
      let proxy = try DelayingProxy(
        to: .socket(server.directory + "/.s.PGSQL.5432"), eachWayNanoseconds: 20_000_000)
      defer { proxy.end() }
      let through = "postgres:///postgres?host=\(proxy.directory)&port=5432&user=touchstone"
      // More than a socket holds, both ways.
      let text = "SELECT length('\(String(repeating: "b", count: 2_000_000))'), repeat('a', 3000000)"
      let begin = Clock.nanoseconds()
      let outcome = try LimitDatabase.run {
        limit_postgres_execute(through, "SET client_min_messages = warning", text, &$0)
      }
      expect(outcome.count, equals: 2_000_000)
      // The start of the session, the setting, and the statement.
      expect(Clock.nanoseconds() - begin >= 3 * 40_000_000)
    }

    @Test func whatNeedsAServerOrFilesSaysSo() throws {
      let missing = try thrown(Runner.Failure.self) { try ran(.cluster) { $0.executable = "touchstone" } }
      expect(missing.map { "\($0)" }?.contains("--location") == true)
      let engine = try thrown(StorageError.self) { try ran(.engine, on: [.postgres]) }
      expect(engine?.message.contains("--location") == true)
      let files = try thrown(StorageError.self) {
        try ran(.memory, on: [.postgres]) { $0.location = location }
      }
      expect(files?.message.contains("files") == true)
    }
  }
#endif
