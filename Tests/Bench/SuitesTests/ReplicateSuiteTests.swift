import BenchmarkKit
import Limits
import Replication
import TestSupport

@testable import Suites

struct ReplicateSuiteTests {
  /// `touchstone`, which serves the other database.
  private static let executable = builtExecutable("touchstone")

  private func replicated(
    on engines: [EngineName], only: [ReplicateWorkload]? = nil, allPairs: Bool = false
  ) throws -> ResultsFile {
    let executable = try #require(Self.executable)
    return try ran(.replicate, on: engines, samples: 1, dataset: "synthetic-travel", documents: 120) {
      $0.executable = executable
      $0.measuresAllPairs = allPairs
      $0.only = only.map { Set($0.map(\.rawValue)) }
    }
  }

  @Test func everyWorkloadRunsOverEachLink() throws {
    let file = try replicated(on: [.lmdb])
    let links = ReplicateVariant.Link.allCases.count
    expect(
      file.results.map(\.workload),
      equals: ReplicateWorkload.allCases.flatMap { [String](repeating: $0.rawValue, count: links) })
    for result in file.results {
      expect(result.metrics.seconds.median > 0, "\(result.label)")
      expect((result.metrics[.anonymousMemoryBytes]?.median ?? 0) > 0, "\(result.label)")
      let isLocal = result.parameters["link"] == "local"
      for metric in [Metric.remoteCPUSeconds, .remoteAnonymousBytes, .sentBytes, .receivedBytes, .messages] {
        expect((result.metrics[metric] == nil), equals: isLocal, "\(metric) of \(result.label)")
        if !isLocal { expect((result.metrics[metric]?.median ?? 0) > 0, "\(metric) of \(result.label)") }
      }
    }
    expect(Suite.replicate.notes(file.results).isEmpty)
    expect(Suite.replicate.tables(file.results).first?.rows.count, equals: file.results.count)

    func row(_ kind: ReplicateWorkload, _ link: ReplicateVariant.Link) throws -> WorkloadResult {
      try #require(
        file.results.first {
          $0.workload == kind.rawValue && $0.parameters["link"] == .string(link.rawValue)
        })
    }
    let push = try row(.push, .ws)
    expect(push.operations, equals: 120)
    // Bodies are compressed.
    expect((1..<1_000).contains(Int((push.metrics[.wireAmplification]?.median ?? 0) * 1_000)))
    // Each revision is a message.
    expect((push.metrics[.messages]?.median ?? 0) > 120)
    try expect((try row(.pushNothing, .ws).metrics[.messages]?.median ?? 0) < 40)
    try expect(row(.pushNothing, .ws).metrics[.wireAmplification] == nil)
    try expect(row(.pushChanged, .wss).operations, equals: 2)
    let blobs = try row(.pullBlobs, .ws)
    expect(blobs.operations, equals: 1)
    expect((blobs.metrics[.receivedBytes]?.median ?? 0) > Double(ReplicateData.blobBytes))
    let limited = file.results.filter { $0.limit != nil }
    // A run with nothing new has none, nor have changes in one process.
    expect(limited.count, equals: file.results.count - 2 * links - 2)
  }

  @Test func eachPairOfEnginesIsMeasured() throws {
    let pairs = try replicated(on: [.lmdb, .sqlite], only: [.pull])
    expect(
      Set(pairs.results.map { "\($0.engine) \($0.parameters.text)" }),
      equals: [
        "lmdb link=local, target=same", "lmdb link=ws, target=same", "lmdb link=wss, target=same",
        "lmdb link=http, target=same", "sqlite link=local, target=same", "sqlite link=ws, target=same",
        "sqlite link=wss, target=same", "sqlite link=http, target=same",
        "lmdb link=ws, target=sqlite", "sqlite link=ws, target=lmdb",
      ])
    // One of them needs a key, in both processes.
    let all = try replicated(on: [.lmdb, .sqlcipher], only: [.pushChanged], allPairs: true)
    expect(all.results.count, equals: 2 * ReplicateVariant.Link.allCases.count * 2)
    expect(all.results.count { $0.parameters["target"] == "sqlcipher" && $0.engine == "lmdb" }, equals: 4)
  }

  @Test func withoutAnExecutableOnlyOneProcessIsMeasured() throws {
    let file = try ran(.replicate, on: [.sqlite], dataset: "synthetic-travel", documents: 30)
    expect(file.results.map(\.workload), equals: ReplicateWorkload.allCases.map(\.rawValue))
    expect(file.results.allSatisfy { $0.parameters["link"] == "local" })
    expect(Suite.replicate.notes(file.results).first?.contains("ws and wss were left out"), equals: true)
  }

  @Test func aServerThatDoesNotStartIsAnError() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let engine = try ProbedEngine(try Engines.type(.lmdb), durability: .none, workDirectory: directory.path)
    // There is no database.
    let executable = try #require(Self.executable)
    for program in [executable, "/bin/false"] {
      #expect(throws: ReplicateServer.Failure.self) {
        try ReplicateServer(
          program, path: directory.path + "/nothing", engine: engine, durability: .none, isSecure: false,
          in: directory.path)
      }
    }
  }

  @Test func databasesThatDifferAfterARunAreRefused() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let type = try Engines.type(.lmdb)
    let engine = try ProbedEngine(type, durability: .none, workDirectory: directory.path)
    let settings = BenchSettings(
      engines: [type], workDirectory: directory.path, dataset: "synthetic-travel", documents: 40)
    let data = try ReplicateData(
      SuiteContext(
        settings: settings, engines: ["lmdb": engine], fixtures: Fixtures(in: directory.path), dataset: nil))
    try data.lay(.pull, engine, engine, .local, in: directory.path)
    let local = try data.open(engine, in: ReplicateData.local(directory.path))
    defer { try? local.close() }
    let other = try data.open(engine, in: ReplicateData.other(directory.path))
    defer { try? other.close() }
    #expect(throws: RunMismatch.self) { try data.check(.pull, local, other, byHTTP: false) }
    var configuration = ReplicatorConfiguration(local, .database(other))
    configuration.direction = .pull
    try Replicator(configuration).runToEnd()
    try data.check(.pull, local, other, byHTTP: false)
    try local.save("row", ["number": 1])
    #expect(throws: RunMismatch.self) { try data.check(.pull, local, other, byHTTP: false) }
  }

  @Test(arguments: [
    (bytes: 1, messages: 1, replyBytes: 0, replies: 0), (10_000_000, 3_000, 700_000, 2_000),
    (10, 100, 1_000_000, 1), (0, 0, 5, 1), (0, 0, 0, 0),
  ])
  func theLoopInCSendsAllBytesBothWays(_ size: (bytes: Int, messages: Int, replyBytes: Int, replies: Int))
    throws
  {
    let outcome = try LimitDatabase.run {
      limit_exchange(size.bytes, size.messages, size.replyBytes, size.replies, &$0)
    }
    expect(outcome.count, equals: UInt64(size.bytes + size.replyBytes))
  }
}
