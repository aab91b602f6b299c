import BenchmarkKit
import Datasets
import HTTP
import Server
import Storage
import Touchstone
import TouchstoneServer

/// A benchmark of the suite `http`. It makes the runs on an engine.
struct HTTPBenchmark: Sendable {
  /// Connections that ask at the same time, on two threads. Each has one request under way.
  private static let connections = 16
  private static let feeds = 5_000

  let kind: HTTPRequestKind
  let data: HTTPData
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "http", name: kind.rawValue, summary: kind.summary, operations: operations, runsThreads: true,
      limit: limit
    ) { try prepare($0) }
  }

  private var operations: Int {
    switch kind {
    case .fixed, .fixedAtOnce, .get: data.requests
    // About five seconds: in one second, a single pause of the machine of 10 ms is the 99th percentile.
    case .fixedHalfRate, .getHalfRate: data.requests * 5
    case .put, .view: max(1, data.requests / 4)
    case .bulkDocs, .allDocs, .changes: data.dataset.count
    case .idleFeeds: Self.feeds
    }
  }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    switch kind {
    case .fixed: return try fixedTrial(atOnce: false)
    case .fixedAtOnce: return try fixedTrial(atOnce: true)
    case .fixedHalfRate: return try fixedTrial(atOnce: false, rate: halfRate())
    case .put, .bulkDocs: return try trialOf(data.empty(engine, in: trial.directory), trial)
    default: return try trialOf(data.filled(engine, in: trial.directory), trial)
    }
  }

  // MARK: Runs

  private func trialOf(_ database: Database, _ trial: TrialContext) throws -> Trial {
    var configuration = SyncListenerConfiguration(databases: [HTTPData.name: database])
    configuration.servesHTTP = true
    if kind == .idleFeeds { _ = HTTPServer.allowOpenFiles(Self.feeds * 2 + 1_024) }
    let listener = SyncListener(configuration)
    do { try listener.start() } catch {
      try? database.close()
      throw error
    }
    let memory = Lock(0)
    return Trial(
      run: { try run(port: listener.port ?? 0, trial, memory) },
      fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
      metrics: { kind == .idleFeeds ? [.anonymousMemoryBytes: Double(memory.withLock { $0 })] : [:] },
      finish: {
        listener.stop(graceSeconds: 0)
        if kind == .put || kind == .bulkDocs {
          try RunMismatch.check("documents stored", try database.documentCount, operations)
        }
        try database.close()
      })
  }

  private func run(port: Int, _ trial: TrialContext, _ memory: Lock<Int>) throws -> Trial.Duration {
    var random = SeededRandom(seed: context.settings.seed &+ UInt64(trial.round))
    let count = operations
    switch kind {
    case .get:
      let requests = (0..<count).map { _ in
        HTTPLoadClient.request("GET", data.target(random.below(data.dataset.count)))
      }
      return try closedLoop(port: port, requests, expecting: 200)
    case .getHalfRate:
      let requests = (0..<count).map { _ in
        HTTPLoadClient.request("GET", data.target(random.below(data.dataset.count)))
      }
      return try openLoop(port: port, requests, rate: try halfRate(), expecting: 200)
    case .put:
      let requests = (0..<count).map { HTTPLoadClient.request("PUT", data.target($0), body: data.body($0)) }
      return try closedLoop(port: port, requests, expecting: 201)
    case .bulkDocs:
      let target = "/\(HTTPData.name)/_bulk_docs"
      let requests = data.bulks().map { HTTPLoadClient.request("POST", target, body: $0) }
      let client = try HTTPLoadClient(port: port)
      let begin = Clock.nanoseconds()
      for request in requests { try client.ask(request, expecting: 201) }
      return .seconds(Double(Clock.nanoseconds() - begin) / 1e9)
    case .allDocs: return try one(port: port, "_all_docs?include_docs=true")
    case .changes: return try one(port: port, "_changes?style=all_docs")
    case .view:
      let view = "\(HTTPData.design)/_view/names"
      // The first request builds it.
      try HTTPLoadClient(port: port).ask(
        HTTPLoadClient.request("GET", "/\(HTTPData.name)/\(view)?limit=1"), expecting: 200)
      let requests = (0..<count).map { _ in
        let letter = UnicodeScalar(UInt8(0x41 + random.below(26)))
        return HTTPLoadClient.request("GET", "/\(HTTPData.name)/\(view)?limit=100&startkey=%22\(letter)%22")
      }
      return try closedLoop(port: port, requests, expecting: 200)
    case .idleFeeds: return try idleFeeds(port: port, memory)
    case .fixed, .fixedAtOnce, .fixedHalfRate: return .whole
    }
  }

  private func one(port: Int, _ path: String) throws -> Trial.Duration {
    let client = try HTTPLoadClient(port: port)
    let begin = Clock.nanoseconds()
    let bytes = try client.ask(HTTPLoadClient.request("GET", "/\(HTTPData.name)/\(path)"), expecting: 200)
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    guard bytes > data.dataset.count * 20 else {
      throw RunMismatch(seen: bytes, expected: data.dataset.count * 20)
    }
    return .seconds(seconds)
  }

  /// All connections ask as soon as they have their answers.
  private func closedLoop(port: Int, _ requests: [[UInt8]], expecting status: Int) throws -> Trial.Duration {
    let total = Lock(LatencyHistogram())
    let threads = 2
    let seconds = try ThreadGroup.run(threads) { thread in
      let mine = stride(from: thread, to: requests.count, by: threads).map { requests[$0] }
      let clients = try (0..<max(1, min(Self.connections / threads, mine.count))).map { _ in
        try HTTPLoadClient(port: port)
      }
      var histogram = LatencyHistogram()
      var sent = [UInt64](repeating: 0, count: clients.count)
      var next = 0
      for (place, client) in clients.enumerated() where next < mine.count {
        sent[place] = Clock.nanoseconds()
        try client.send(mine[next])
        next += 1
      }
      for answered in 0..<mine.count {
        let place = answered % clients.count
        _ = try clients[place].receive(expecting: status)
        let now = Clock.nanoseconds()
        histogram.record(now - sent[place])
        guard next < mine.count else { continue }
        sent[place] = now
        try clients[place].send(mine[next])
        next += 1
      }
      total.withLock { [histogram] in $0.add(histogram) }
    }
    return .latencies(total.withLock { $0 }, seconds: seconds)
  }

  /// Requests are due at fixed times. One waits for a free connection, as in a client with a pool of them.
  private func openLoop(port: Int, _ requests: [[UInt8]], rate: Double, expecting status: Int) throws
    -> Trial.Duration
  {
    let total = Lock(LatencyHistogram())
    let threads = 2
    let seconds = try ThreadGroup.run(
      threads,
      preparing: { thread in
        let mine = stride(from: thread, to: requests.count, by: threads).map { requests[$0] }
        let loop = try HTTPOpenLoop(port: port, connections: Self.connections / threads, status: status)
        return (thread, mine, loop)
      }
    ) { prepared, begin in
      var (thread, mine, loop) = prepared
      let schedule = ArrivalSchedule(begin: begin, rate: rate, threads: threads)
      try loop.run(mine) { schedule.start($0, thread: thread) }
      total.withLock { [histogram = loop.histogram] in $0.add(histogram) }
    }
    return .latencies(total.withLock { $0 }, seconds: seconds)
  }

  private func idleFeeds(port: Int, _ memory: Lock<Int>) throws -> Trial.Duration {
    let request = HTTPLoadClient.request(
      "GET", "/\(HTTPData.name)/_changes?feed=continuous&since=now&heartbeat=60000")
    FreedMemory.giveBack()
    let before = ProcessUsage.anonymousMemory() ?? 0
    let begin = Clock.nanoseconds()
    var sockets: [IdleFeed] = []
    for number in 0..<operations {
      sockets.append(try IdleFeed(port: port, source: 2 + number / 1_000, request))
    }
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    memory.withLock { $0 = max(0, (ProcessUsage.anonymousMemory() ?? 0) - before) }
    withExtendedLifetime(sockets) {}
    return .seconds(seconds)
  }

  // MARK: The limits

  private var limit: Workload.Limit? {
    switch kind {
    case .bulkDocs:
      Workload.Limit(name: { _ in "import of the same documents, \(HTTPData.batch) a transaction" }) {
        trial in
        let database = try data.empty(try context.engine(trial.engine), in: trial.directory)
        return Trial(
          timing: {
            for first in stride(from: 0, to: data.dataset.count, by: HTTPData.batch) {
              try database.inBatch {
                for number in first..<min(first + HTTPData.batch, data.dataset.count) {
                  try database.save(data.dataset.idText(number), json: data.dataset.json(number))
                }
              }
            }
          }, finish: { try database.close() })
      }
    case .allDocs:
      Workload.Limit(name: { _ in "export of the same documents as JSON lines, to /dev/null" }) { trial in
        let database = try data.filled(try context.engine(trial.engine), in: trial.directory)
        return Trial(
          timing: {
            let writer = try ByteWriter(path: "/dev/null")
            var line: [UInt8] = []
            try database.enumerate { document in
              line.removeAll(keepingCapacity: true)
              line += Array("{\"_id\":".utf8)
              line += Array("\"\(document.id)\"".utf8)
              let brace = line.count
              try document.writeJSON(into: &line)
              line[brace] = UInt8(ascii: ",")
              try line.withUnsafeBytes { try writer.writeLine($0) }
              return true
            }
            try writer.finish()
          }, finish: { try database.close() })
      }
    default: nil
    }
  }

  /// Half the rate of the listener with fixed bytes. It is measured once a run of the suite.
  private func halfRate() throws -> Double {
    if let rate = data.fixedRate.withLock({ $0 }) { return rate / 2 }
    let fixed = try fixedTrial(atOnce: false)
    let begin = Clock.nanoseconds()
    _ = try fixed.run()
    let rate = Double(data.requests) / (Double(Clock.nanoseconds() - begin) / 1e9)
    try fixed.finish()
    data.fixedRate.withLock { $0 = rate }
    return rate / 2
  }

  /// With `rate`, requests are due at that rate; else they come as soon as the connections are free.
  private func fixedTrial(atOnce: Bool, rate: Double? = nil) throws -> Trial {
    let answer = HTTPAnswer(
      status: 200, headers: [.init("Content-Type", "application/json"), .init("ETag", "\"1-a\"")],
      body: .bytes(data.body(0)))
    let server = HTTPServer(
      HTTPServerConfiguration(), handler: FixedHandler(answer: answer, isAtOnce: atOnce))
    try server.start()
    let requests = (0..<(rate == nil ? data.requests : operations)).map {
      HTTPLoadClient.request("GET", data.target($0 % data.dataset.count))
    }
    return Trial(
      run: {
        let port = Int(server.port ?? 0)
        if let rate { return try openLoop(port: port, requests, rate: rate, expecting: 200) }
        return try closedLoop(port: port, requests, expecting: 200)
      },
      finish: { server.stop(graceSeconds: 0) })
  }
}

/// Answers everything with the same bytes.
private struct FixedHandler: HTTPHandler {
  let answer: HTTPAnswer
  let isAtOnce: Bool
  func answerAtOnce(_ request: HTTPRequest) -> HTTPAnswer? { isAtOnce ? answer : nil }
  func handle(_ request: HTTPRequest, _ responder: HTTPResponder) { responder.answer(answer) }
}

/// A connection with a feed that has begun.
private final class IdleFeed {
  private let client: HTTPLoadClient

  init(port: Int, source: Int, _ request: [UInt8]) throws {
    client = try HTTPLoadClient(port: port, source: source, bufferBytes: 1_024)
    try client.send(request)
    let head = try client.readHead()
    guard head.status == 200 else {
      throw HTTPLoadClient.Failure(description: "a feed with status \(head.status)")
    }
  }
}
