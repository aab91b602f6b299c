import BenchmarkKit
import Storage
import Touchstone

/// A benchmark of the suite `ycsb` with its parameters. It makes the runs on an engine.
struct YCSBBenchmark: Sendable {
  let kind: YCSBWorkload
  let variant: YCSBWorkload.Variant
  let data: YCSBData
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "ycsb", name: kind.rawValue, summary: kind.summary,
      parameters: kind == .load ? [:] : variant.parameters, operations: operations,
      runsThreads: isThreaded
    ) { trial in
      kind == .load ? try loadTrial(trial) : try trafficTrial(trial)
    }
  }

  private var isThreaded: Bool { variant.threads > 1 || variant.rate != nil }

  /// The operations per thread. At a target rate, they take a third of a second or more: shorter runs have
  /// too few slow operations.
  private var perThread: Int {
    let wanted =
      variant.rate.map { max(data.operations / 4, min(data.operations, $0 / 3)) } ?? data.operations
    return max(1, wanted / variant.threads)
  }

  private var operations: Int { kind == .load ? data.documents : perThread * variant.threads }

  private func loadTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let database = try data.open(engine, in: trial.directory)
    let bytes = (0..<data.documents).reduce(0) { $0 + data.bytes($1) }
    return Trial(
      timing: { try data.load(database) }, fileBytes: { try engine.fileBytes(in: trial.directory) },
      logicalBytes: logicalBytes(engine, written: bytes, stored: bytes),
      finish: {
        try database.close()
        try engine.discard(trial.directory)
      })
  }

  private func trafficTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try data.loaded(engine, trial, writes: kind.writes)
    let database = try data.open(engine, in: directory)
    let requests = (0..<variant.threads).map { thread in
      YCSBRequest.draw(
        kind, variant.choice, count: perThread, documents: data.documents, threads: variant.threads,
        // All engines of a round run the same operations.
        seed: context.settings.seed &+ UInt64(trial.round * 64 + thread))
    }
    let written = requests.joined().reduce(0) { total, request in
      switch request.operation {
      case .update, .insert, .readModifyWrite: total + data.bytes(Int(request.number))
      case .read, .scan: total
      }
    }
    return Trial(
      run: {
        let traffic = YCSBTraffic(database, data, requests, choosesLatest: variant.choice == .latest)
        let (histogram, seconds) =
          try variant.rate.map { try traffic.run(rate: Double($0)) } ?? traffic.runAsFastAsItGoes()
        return .latencies(histogram, seconds: seconds)
      }, fileBytes: { try engine.fileBytes(in: directory) },
      // Only runs of one thread without a rate have it. Several threads may share commits.
      logicalBytes: isThreaded ? nil : logicalBytes(engine, written: written, stored: 0),
      finish: {
        try database.close()
        if kind.writes { try engine.discard(directory) }
      })
  }

  /// What amplifications are computed from. A server writes where this process doesn't see it.
  private func logicalBytes(_ engine: ProbedEngine, written: Int, stored: Int) -> Trial.LogicalBytes? {
    engine.server == nil ? .init(written: written, stored: stored) : nil
  }
}

/// The operations of all threads of a run, on one database.
struct YCSBTraffic: Sendable {
  private let database: Database
  private let data: YCSBData
  private let requests: [[YCSBRequest]]
  private let choosesLatest: Bool
  private let inserts: YCSBInserts

  init(_ database: Database, _ data: YCSBData, _ requests: [[YCSBRequest]], choosesLatest: Bool) {
    self.database = database
    self.data = data
    self.requests = requests
    self.choosesLatest = choosesLatest
    inserts = YCSBInserts(after: data.documents)
  }

  /// A closed loop: each operation starts when the previous one of its thread has ended. Returns the times of
  /// single operations and the seconds of the whole run.
  func runAsFastAsItGoes() throws -> (LatencyHistogram, seconds: Double) {
    let total = Lock(LatencyHistogram())
    let seconds = try onThreads { thread in
      let client = try YCSBClient(database, data, inserts)
      var histogram = LatencyHistogram()
      for request in requests[thread] {
        let begin = Clock.nanoseconds()
        try client.run(request, choosesLatest: choosesLatest)
        histogram.record(Clock.nanoseconds() - begin)
      }
      total.withLock { [histogram] in $0.add(histogram) }
    }
    return (total.withLock { $0 }, seconds)
  }

  /// An open loop: operations start at fixed times, `rate` per second over all threads. Returns the times of
  /// single operations from their intended start to their end, and the seconds from the first intended start
  /// to the end.
  func run(rate: Double) throws -> (LatencyHistogram, seconds: Double) {
    let total = Lock(LatencyHistogram())
    // Leaves time for all threads to start.
    let schedule = ArrivalSchedule(
      begin: Clock.nanoseconds() + 3_000_000, rate: rate, threads: requests.count)
    _ = try onThreads { thread in
      let client = try YCSBClient(database, data, inserts)
      var histogram = LatencyHistogram()
      let list = requests[thread]
      try schedule.run(list.count, thread: thread, into: &histogram) { index in
        try client.run(list[index], choosesLatest: choosesLatest)
      }
      total.withLock { [histogram] in $0.add(histogram) }
    }
    let seconds = Double(Clock.nanoseconds() - schedule.begin) / 1e9
    return (total.withLock { $0 }, seconds)
  }

  /// A single thread is the caller's own, so that instructions can be counted.
  private func onThreads(_ body: @escaping @Sendable (Int) throws -> Void) throws -> Double {
    guard requests.count == 1 else { return try ThreadGroup.run(requests.count, body) }
    let begin = Clock.nanoseconds()
    try body(0)
    return Double(Clock.nanoseconds() - begin) / 1e9
  }
}
