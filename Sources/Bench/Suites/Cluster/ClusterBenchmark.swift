import BenchmarkKit
import ChildProcesses
import Datasets
import FoundationEssentials
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// A benchmark of the suite `cluster`: clients over HTTP, several servers, one PostgreSQL.
struct ClusterBenchmark: Sendable {
  /// The name in the place of an engine's.
  static let subject = "postgres"
  /// The documents of each database.
  private static let documents = 500

  /// What a run varies.
  struct Shape: Sendable {
    /// The number of processes that serve.
    let servers: Int
    /// The number of databases.
    let databases: Int
    /// The connections of clients, each with a thread and one request under way.
    var clients = 16
    /// The time that a round trip to PostgreSQL takes longer, in microseconds.
    var roundTripMicroseconds = 0

    /// One client of one server, near and far: how many round trips a request takes.
    static let alone = [0, 5_000].map {
      Shape(servers: 1, databases: 1, clients: 1, roundTripMicroseconds: $0)
    }
    /// All numbers of servers and databases on one machine, four of each at a distance, and one client alone.
    static let all: [Shape] =
      [1, 4, 16].flatMap { databases in [1, 2, 4, 8].map { Shape(servers: $0, databases: databases) } }
      + [100, 1_000, 5_000].map { Shape(servers: 4, databases: 4, roundTripMicroseconds: $0) } + alone

    var parameters: Parameters {
      [
        "servers": .integer(servers), "databases": .integer(databases), "clients": .integer(clients),
        "rtt_us": .integer(roundTripMicroseconds),
      ]
    }
  }

  let kind: ClusterWorkload
  let shape: Shape
  let settings: BenchSettings

  func workload() -> Workload {
    Workload(
      suite: "cluster", name: kind.rawValue, summary: kind.summary, parameters: shape.parameters,
      operations: operations, runsThreads: true, runs: { $0 == Self.subject }
    ) { trial in try prepare(trial) }
  }

  /// A whole number for each client.
  private var operations: Int {
    let wanted = kind == .reads ? settings.keys / 20 : settings.commits
    return shape.clients == 1 ? min(wanted, 200) : max(1, wanted / shape.clients) * shape.clients
  }

  /// The server and the library, read from a database that is made for it.
  static func description(_ settings: BenchSettings) throws -> ResultsFile.EngineDescription {
    let location = try ClusterLocation(settings).database("bench_\(UUID().uuidString.lowercased())")
    let database = try Database.open(location, options: DatabaseOptions(creation: .createNew))
    let library = database.engineLibrary
    try database.delete()
    return .init(library: library, settings: ["durability": settings.durability.rawValue])
  }

  // MARK: A run

  private func prepare(_ trial: TrialContext) throws -> Trial {
    guard let executable = settings.executable else {
      throw StorageError(.invalidArgument, "the suite cluster needs the executable of the servers")
    }
    let cluster = Cluster(try ClusterLocation(settings))
    do {
      let prefix = "bench_\(UUID().uuidString.lowercased())_"
      for number in 0..<shape.databases { try cluster.makeDatabase(prefix + "\(number)", Self.documents) }
      if shape.roundTripMicroseconds > 0 { try cluster.addProxy(microseconds: shape.roundTripMicroseconds) }
      for _ in 0..<shape.servers { try cluster.startServer(executable, settings.durability) }
      try cluster.warm()
    } catch {
      try? cluster.end()
      throw error
    }
    let used = Lock((serve: UInt64(0), postgres: UInt64(0), roundTrips: Int?.none))
    return Trial(
      run: {
        let before = (cluster.cpuNanoseconds, ServerProcesses.cpuNanoseconds(), cluster.roundTrips)
        defer {
          used.withLock {
            $0 = (
              cluster.cpuNanoseconds &- before.0, ServerProcesses.cpuNanoseconds() &- before.1,
              cluster.roundTrips.map { $0 - (before.2 ?? 0) }
            )
          }
        }
        return try run(cluster, round: trial.round)
      },
      metrics: {
        let used = used.withLock { $0 }
        var metrics: [Metric: Double] = [
          .remoteCPUSeconds: Double(used.serve) / 1e9, .serverCPUSeconds: Double(used.postgres) / 1e9,
        ]
        metrics[.messages] = used.roundTrips.map { Double($0) }
        return metrics
      },
      finish: {
        var stored: Result<Int, any Error> = .success(0)
        if kind == .writes { stored = Result { try cluster.documentCount() } }
        try cluster.end()
        if kind == .writes {
          try RunMismatch.check(try stored.get(), shape.databases * Self.documents + operations)
        }
      })
  }

  private func run(_ cluster: Cluster, round: Int) throws -> Trial.Duration {
    let total = Lock(LatencyHistogram())
    let clients = shape.clients
    let each = operations / clients
    let (kind, seed) = (kind, settings.seed)
    let (names, ports) = (cluster.names, cluster.ports)
    let seconds = try ThreadGroup.run(
      clients,
      preparing: { number in
        // Each client uses one server, and all databases.
        let client = try HTTPLoadClient(port: ports[number % ports.count])
        var random = SeededRandom(seed: seed &+ UInt64(round * clients + number))
        let requests = (0..<each).map { index -> [UInt8] in
          let name = names[(index + number) % names.count]
          switch kind {
          case .reads:
            return HTTPLoadClient.request("GET", "/\(name)/doc\(random.below(Self.documents))")
          case .writes:
            return HTTPLoadClient.request(
              "PUT", "/\(name)/new\(number)-\(index)", body: Cluster.body(number * each + index))
          }
        }
        return (client, requests)
      }
    ) { prepared, _ in
      var histogram = LatencyHistogram()
      for request in prepared.1 {
        let begin = Clock.nanoseconds()
        try prepared.0.ask(request, expecting: kind == .reads ? 200 : 201)
        histogram.record(Clock.nanoseconds() - begin)
      }
      total.withLock { [histogram] in $0.add(histogram) }
    }
    return .latencies(total.withLock { $0 }, seconds: seconds)
  }
}

/// The databases and servers of one run.
private final class Cluster: Sendable {
  private struct State {
    var names: [String] = []
    var servers: [ChildProcess] = []
    var ports: [Int] = []
    var proxy: DelayingProxy?
  }

  private let location: ClusterLocation
  private let state = Lock(State())
  private static let longestWait = 120.0

  init(_ location: ClusterLocation) { self.location = location }

  var names: [String] { state.withLock { $0.names } }
  var ports: [Int] { state.withLock { $0.ports } }

  /// The body of a document.
  static func body(_ number: Int) -> [UInt8] {
    let text = String(repeating: "document \(number) ", count: 16)
    return Array(#"{"number":\#(number),"kind":"bench","text":"\#(text)"}"#.utf8)
  }

  func makeDatabase(_ name: String, _ documents: Int) throws {
    let database = try Database.open(
      location.database(name), options: DatabaseOptions(creation: .createNew, durability: .none))
    state.withLock { $0.names.append(name) }
    try database.inBatch {
      for number in 0..<documents {
        try Self.body(number).withUnsafeBytes { _ = try database.save("doc\(number)", json: $0) }
      }
    }
    try database.close()
  }

  func addProxy(microseconds: Int) throws {
    let proxy = try DelayingProxy(
      to: location.upstream, eachWayNanoseconds: UInt64(microseconds) * 500)
    state.withLock { $0.proxy = proxy }
  }

  func startServer(_ executable: String, _ durability: Durability) throws {
    let place = try location.argument(state.withLock { $0.proxy })
    var launch = ProgramLaunch(
      executable, ["serve", place, "--listen", "127.0.0.1:0", "--durability", durability.rawValue])
    launch.environment.merge(location.environment) { $1 }
    let process = try ChildProcess(launch)
    state.withLock { $0.servers.append(process) }
    try process.waitForOutput(seconds: Self.longestWait)
    guard let line = process.wholeLines.first,
      let port = line.split(separator: ":").last.flatMap({ Int($0.split(separator: "/")[0]) })
    else {
      throw StorageError(.ioError, "\(executable) serve doesn't start: \(process.errorText)")
    }
    state.withLock { $0.ports.append(port) }
  }

  /// Each server opens each database.
  func warm() throws {
    for port in ports {
      let client = try HTTPLoadClient(port: port)
      for name in names { try client.ask(HTTPLoadClient.request("GET", "/\(name)/doc0"), expecting: 200) }
    }
  }

  /// The processor time of the servers, in nanoseconds.
  var cpuNanoseconds: UInt64 {
    state.withLock { $0.servers }.reduce(0) { $0 &+ (Clock.cpuNanoseconds(of: $1.identifier) ?? 0) }
  }

  /// The round trips through the proxy so far; nil without one.
  var roundTrips: Int? { state.withLock { $0.proxy }?.roundTrips }

  func documentCount() throws -> Int {
    try names.reduce(0) { count, name in
      let database = try Database.open(
        location.database(name), options: DatabaseOptions(creation: .openExisting, isReadOnly: true))
      defer { try? database.close() }
      return count + Int(try database.documentCount)
    }
  }

  /// Ends the servers and removes the databases.
  func end() throws {
    let ended = state.withLock { state in
      defer { state = State() }
      return state
    }
    for server in ended.servers { server.kill(SIGTERM) }
    for server in ended.servers { _ = try server.wait(seconds: Self.longestWait) }
    ended.proxy?.end()
    for name in ended.names { try Database.delete(location.database(name)) }
  }
}
