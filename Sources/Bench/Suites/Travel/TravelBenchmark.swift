import BenchmarkKit
import Documents
import Limits
import Storage
import Touchstone

/// A benchmark of the travel suite. It makes the runs on an engine and those of the limit.
struct TravelBenchmark: Sendable {
  let kind: TravelWorkload
  let data: TravelData
  let context: SuiteContext
  let peer: LiteCoreLayout

  func workload() -> Workload {
    Workload(
      suite: "travel", name: kind.rawValue, summary: kind.summary, operations: operations,
      runsThreads: kind == .insertThreads,
      limit: kind == .insertThreads
        ? nil
        : .init(
          name: { engine in (try? context.engine(engine))?.limitName },
          prepare: limitTrial),
      runs: { engine in engine != LiteCoreLayout.name || LiteCoreLayout.runs(kind) }
    ) { trial in
      trial.engine == LiteCoreLayout.name ? try peer.trial(kind, trial) : try documentsTrial(trial)
    }
  }

  private var operations: Int {
    switch kind {
    case .insertBatch, .update, .syncApply, .delete, .compact: data.ids.count
    case .insertSingle, .insertThreads: data.singles.count
    case .read: data.reads.count
    case .scan: data.ids.count * TravelWorkload.scans
    case .reopen: TravelWorkload.opens
    }
  }

  // MARK: Documents

  private func documentsTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try data.directory(engine, kind.start, trial)
    let fileBytes = { try TrialDirectory.fileBytes(in: directory) }
    if kind == .reopen {
      return Trial(run: { .latencies(try reopen(engine, directory)) }, fileBytes: fileBytes)
    }
    let database = try data.open(engine, in: directory)
    if kind == .insertThreads {
      return Trial(
        run: { try insertByThreads(database) }, fileBytes: fileBytes, finish: { try database.close() })
    }
    let bytes = kind == .insertBatch ? data.bytes : 0
    return Trial(
      run: { try run(database) }, fileBytes: fileBytes, logicalBytes: .init(written: bytes, stored: bytes),
      finish: { try database.close() })
  }

  private func run(_ database: Database) throws -> Trial.Duration {
    switch kind {
    case .insertBatch, .update: try data.saveAll(database)
    case .insertSingle:
      var latencies = LatencyHistogram()
      for number in data.singles {
        let start = Clock.nanoseconds()
        try database.save(data.ids[number], json: data.dataset.json(number))
        latencies.record(Clock.nanoseconds() - start)
      }
      return .latencies(latencies)
    case .read: return .latencies(try read(database))
    case .scan: try scan(database)
    case .syncApply:
      for start in stride(from: 0, to: data.pulled.count, by: TravelWorkload.pulledBatch) {
        let end = min(start + TravelWorkload.pulledBatch, data.pulled.count)
        try RunMismatch.check(try database.apply(data.pulled[start..<end]), end - start)
      }
    case .delete: try database.inBatch { for id in data.ids { try database.delete(id) } }
    case .compact: try database.compact()
    case .insertThreads, .reopen: break
    }
    return .whole
  }

  private func insertByThreads(_ database: Database) throws -> Trial.Duration {
    let (data, threads) = (data, TravelWorkload.threads)
    let total = Lock(LatencyHistogram())
    let seconds = try ThreadGroup.run(threads) { thread in
      var latencies = LatencyHistogram()
      for index in stride(from: thread, to: data.singles.count, by: threads) {
        let number = data.singles[index]
        let start = Clock.nanoseconds()
        try database.save(data.ids[number], json: data.dataset.json(number))
        latencies.record(Clock.nanoseconds() - start)
      }
      total.withLock { [latencies] in $0.add(latencies) }
    }
    try RunMismatch.check(try database.documentCount, data.singles.count)
    return .latencies(total.withLock { $0 }, seconds: seconds)
  }

  /// Reads documents, and times one in `TravelWorkload.timedReads` by itself: the clock takes 50 ns.
  private func read(_ database: Database) throws -> LatencyHistogram {
    let key = try database.key(TravelData.property)
    var latencies = LatencyHistogram()
    var found = 0
    var bytes = 0
    for (index, number) in data.reads.enumerated() {
      let isTimed = index % TravelWorkload.timedReads == 0
      let start = isTimed ? Clock.nanoseconds() : 0
      guard let document = try database.document(data.ids[number]) else { continue }
      found += 1
      bytes &+= document[key].string?.utf8.count ?? 0
      if isTimed { latencies.record(Clock.nanoseconds() - start) }
    }
    try RunMismatch.check(found, data.reads.count)
    withExtendedLifetime(bytes) {}
    return latencies
  }

  private func scan(_ database: Database) throws {
    var found = 0
    var bytes = 0
    for _ in 0..<TravelWorkload.scans {
      try database.read { snapshot in
        let key = try snapshot.key(TravelData.property)
        try snapshot.forEachDocument { document in
          found += 1
          bytes &+= document[key]?.utf8?.byteCount ?? 0
          return true
        }
      }
    }
    try RunMismatch.check(found, operations)
    withExtendedLifetime(bytes) {}
  }

  private func reopen(_ engine: ProbedEngine, _ directory: String) throws -> LatencyHistogram {
    var latencies = LatencyHistogram()
    for _ in 0..<TravelWorkload.opens {
      let start = Clock.nanoseconds()
      let database = try data.open(engine, in: directory)
      let found = Result { try database.document(data.ids[0]) }
      try database.close()
      latencies.record(Clock.nanoseconds() - start)
      try RunMismatch.check(try found.get() == nil ? 0 : 1, 1)
    }
    return latencies
  }

  // MARK: The limit

  private func limitTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let layout = try data.layout(engine, try data.directory(engine, kind.start, trial))
    let keys = LimitKeys(data, kind == .reopen ? [0] : kind == .read ? data.reads : [])
    if kind == .reopen {
      return Trial(run: {
        let outcome = try LimitDatabase.reopen(
          layout.engine, path: layout.file, table: layout.tables[0], record: keys.records,
          times: TravelWorkload.opens)
        return .seconds(outcome.seconds)
      })
    }
    if kind == .compact {
      // The table to be emptied comes first.
      let bodies = layout.tables.filter { $0.name == "bodies" }
      let database = try LimitDatabase(layout.engine, path: layout.file, tables: bodies)
      return Trial(
        run: { .seconds(try database.compact(layout.file).seconds) },
        finish: { withExtendedLifetime(database) {} })
    }
    let database = try LimitDatabase(layout.engine, path: layout.file, tables: layout.tables)
    return Trial(
      run: { .seconds(try runLimit(database, keys)) }, finish: { withExtendedLifetime(database) {} })
  }

  private func runLimit(_ database: LimitDatabase, _ keys: LimitKeys) throws -> Double {
    func replay(_ replay: TravelReplay) throws -> Double {
      try replay.steps.withUnsafeBufferPointer { steps in
        try replay.operations.withUnsafeBufferPointer { operations in
          try database.replay(steps, operations, batch: kind.batch).seconds
        }
      }
    }
    switch kind {
    case .insertBatch: return try replay(data.replays.insert)
    case .insertSingle: return try replay(data.replays.insertSingle)
    case .update: return try replay(data.replays.update)
    case .syncApply: return try replay(data.replays.pull)
    case .delete: return try replay(data.replays.delete)
    case .read:
      let outcome = try database.get(keys.records, snapshotEach: true, copyInto: keys.buffer)
      try RunMismatch.check(Int(outcome.count), data.reads.count)
      return outcome.seconds
    case .scan:
      var seconds = 0.0
      for _ in 0..<TravelWorkload.scans {
        let outcome = try database.scan(.stored)
        try RunMismatch.check(Int(outcome.count), data.ids.count)
        seconds += outcome.seconds
      }
      return seconds
    case .insertThreads, .compact, .reopen: preconditionFailure("\(kind.rawValue) has no replay")
    }
  }

  /// The keys that a limit reads, and the buffer for their values.
  private final class LimitKeys {
    let records: Records
    let buffer: UnsafeMutableRawBufferPointer
    // The keys are in the data set, which `data` keeps.
    private let data: TravelData

    init(_ data: TravelData, _ numbers: [Int]) {
      self.data = data
      let records = UnsafeMutableBufferPointer<limit_record>.allocate(capacity: numbers.count)
      for (index, number) in numbers.enumerated() {
        let id = data.dataset.id(number)
        records.initializeElement(
          at: index,
          to: limit_record(key: limit_bytes(bytes: id.baseAddress, count: id.count), value: limit_bytes()))
      }
      self.records = Records(records)
      buffer = .allocate(byteCount: 1 << 20, alignment: 16)
    }

    deinit {
      records.deallocate()
      buffer.deallocate()
    }
  }
}
