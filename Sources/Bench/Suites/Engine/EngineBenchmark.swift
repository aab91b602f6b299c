import BenchmarkKit
import Limits
import Storage
import Synchronization

/// A benchmark of the engine suite with its parameters. It makes the runs on an engine and those of the limit.
struct EngineBenchmark: Sendable {
  private static let keyspaceName = "bench"
  private static let shape = KeyspaceShape.documents

  let kind: EngineWorkload
  let data: KeyValueData
  let context: SuiteContext
  let threads: Int?

  func workload() -> Workload {
    var parameters: Parameters = ["value_bytes": .integer(data.valueBytes)]
    if let threads { parameters["threads"] = .integer(threads) }
    return Workload(
      suite: "engine", name: kind.rawValue, summary: kind.summary, parameters: parameters,
      operations: operations,
      limit: .init(
        name: { engine in (try? context.engine(engine))?.limitName },
        prepare: limitTrial)
    ) { trial in try engineTrial(trial) }
  }

  private var operations: Int {
    switch kind {
    case .readrange: data.rangeStarts.count * EngineWorkload.rangeLength
    case .open: EngineWorkload.opens
    case .commitsync: min(context.settings.commits, data.shuffled.count)
    default: data.sequential.count
    }
  }
}

// MARK: - Databases

extension EngineBenchmark {
  /// Makes an empty keyspace and returns its handle.
  private func create(_ engine: ProbedEngine, in directory: String) throws -> Keyspace {
    let opened = try engine.open(in: directory)
    let keyspace = try opened.write {
      try $0.createKeyspace(EngineBenchmark.keyspaceName, shape: EngineBenchmark.shape)
    }
    try opened.close()
    return keyspace
  }

  /// The directory of a database that was filled in random order.
  private func filled(_ engine: ProbedEngine) throws -> String {
    try context.fixtures.directory("engine \(engine.type.name) \(data.valueBytes)") { directory in
      let opened = try engine.open(in: directory)
      let keyspace = try opened.write {
        try $0.createKeyspace(EngineBenchmark.keyspaceName, shape: EngineBenchmark.shape)
      }
      for start in stride(from: 0, to: data.shuffled.count, by: 10_000) {
        try opened.write { (transaction: any WriteTransaction) throws -> Void in
          for record in data.shuffled[start..<min(start + 10_000, data.shuffled.count)] {
            try transaction.put(record.keyBytes, record.valueBytes, in: keyspace)
          }
        }
      }
      try opened.close()
      try engine.server?.settle(directory)
    }
  }

  /// The directory of the database that a run uses.
  private func database(_ engine: ProbedEngine, _ trial: TrialContext) throws -> String {
    switch kind.start {
    case .empty:
      _ = try create(engine, in: trial.directory)
      return trial.directory
    case .copy:
      try engine.copy(try filled(engine), to: trial.directory)
      return trial.directory
    case .shared: return try filled(engine)
    }
  }
}

// MARK: - Engines

extension EngineBenchmark {
  private func engineTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try database(engine, trial)
    if kind == .open {
      return Trial(
        timing: { try reopen(engine, directory) }, fileBytes: { try engine.fileBytes(in: directory) })
    }
    let opened = try engine.open(in: directory)
    do {
      let found = try opened.read { try $0.keyspace(named: EngineBenchmark.keyspaceName) }
      guard let keyspace = found else {
        throw StorageError(.noSuchKeyspace, "the keyspace of the benchmark is missing", path: opened.location)
      }
      return Trial(
        run: { try run(opened, keyspace) }, fileBytes: { try engine.fileBytes(in: directory) },
        finish: {
          try opened.close()
          if kind.start != .shared { try engine.discard(directory) }
        })
    } catch {
      try? opened.close()
      throw error
    }
  }

  private func run(_ engine: any StorageEngine, _ keyspace: Keyspace) throws -> Trial.Duration {
    switch kind {
    case .fillseq: try put(data.sequential, engine, keyspace)
    case .fillrandom, .fillbatch: try put(data.shuffled, engine, keyspace)
    case .overwrite: try put(data.reshuffled, engine, keyspace)
    case .deleterandom: try delete(data.reshuffled, engine, keyspace)
    case .readrandom: try get(data.reshuffled, engine, keyspace, expected: data.reshuffled.count)
    case .readmissing: try get(data.missing, engine, keyspace, expected: 0)
    case .readseq: try scan(.ascending, engine, keyspace)
    case .readreverse: try scan(.descending, engine, keyspace)
    case .readrange: try readRanges(engine, keyspace)
    case .readwhilewriting: return .seconds(try readWhileWriting(engine, keyspace))
    case .commitsync: return .seconds(try commit(engine, keyspace))
    case .open: break
    }
    return .whole
  }

  private func batches(_ records: Records, _ body: (Records) throws -> Void) rethrows {
    let batch = kind.batch == 0 ? records.count : kind.batch
    for start in stride(from: 0, to: records.count, by: batch) {
      try body(Records(rebasing: records[start..<min(start + batch, records.count)]))
    }
  }

  private func put(_ records: Records, _ engine: any StorageEngine, _ keyspace: Keyspace) throws {
    try batches(records) { batch in
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for record in batch { try transaction.put(record.keyBytes, record.valueBytes, in: keyspace) }
      }
    }
  }

  private func delete(_ records: Records, _ engine: any StorageEngine, _ keyspace: Keyspace) throws {
    try batches(records) { batch in
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for record in batch { try transaction.delete(record.keyBytes, in: keyspace) }
      }
    }
  }

  private func get(
    _ records: Records, _ engine: any StorageEngine, _ keyspace: Keyspace, expected: Int
  ) throws {
    var seen = Seen()
    try engine.read { transaction in
      for record in records {
        _ = try transaction.read(record.keyBytes.bytes, in: keyspace) { seen.see($0) }
      }
    }
    try seen.expect(expected)
  }

  private func scan(_ order: ScanOrder, _ engine: any StorageEngine, _ keyspace: Keyspace) throws {
    var seen = Seen()
    try engine.read { transaction in
      try transaction.scan(keyspace, .all, order: order) { _, value in
        seen.see(value)
        return true
      }
    }
    try seen.expect(data.sequential.count)
  }

  private func readRanges(_ engine: any StorageEngine, _ keyspace: Keyspace) throws {
    var seen = Seen()
    try engine.read { transaction in
      for record in data.rangeStarts {
        var left = EngineWorkload.rangeLength
        try transaction.scan(keyspace, KeyRange(lower: .inclusive([UInt8](record.keyBytes)))) {
          _, value in
          seen.see(value)
          left -= 1
          return left > 0
        }
      }
    }
    try seen.expect(operations)
  }

  /// The state that reader and writer share.
  private final class Progress: Sendable {
    let isDone = Atomic<Bool>(false)
    let seconds = Mutex(0.0)
  }

  private func readWhileWriting(_ engine: any StorageEngine, _ keyspace: Keyspace) throws -> Double {
    let progress = Progress()
    _ = try ThreadGroup.run(2) { number in
      if number == 0 {
        defer { progress.isDone.store(true, ordering: .relaxed) }
        let seconds = try readEach(engine, keyspace)
        progress.seconds.withLock { $0 = seconds }
      } else {
        try overwrite(engine, keyspace, until: progress)
      }
    }
    return progress.seconds.withLock { $0 }
  }

  private func readEach(_ engine: any StorageEngine, _ keyspace: Keyspace) throws -> Double {
    let begin = Clock.nanoseconds()
    var seen = Seen()
    for record in data.shuffled {
      try engine.read { transaction in
        _ = try transaction.read(record.keyBytes.bytes, in: keyspace) { seen.see($0) }
      }
    }
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    try seen.expect(data.shuffled.count)
    return seconds
  }

  private func overwrite(
    _ engine: any StorageEngine, _ keyspace: Keyspace, until progress: Progress
  ) throws {
    let records = data.reshuffled
    let batch = min(EngineWorkload.writerBatch, records.count)
    var next = 0
    while !progress.isDone.load(ordering: .relaxed) {
      if next + batch > records.count { next = 0 }
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for record in records[next..<next + batch] {
          try transaction.put(record.keyBytes, record.valueBytes, in: keyspace)
        }
      }
      next += batch
    }
  }

  private func commit(_ engine: any StorageEngine, _ keyspace: Keyspace) throws -> Double {
    let count = operations
    let threads = threads ?? 1
    return try ThreadGroup.run(threads) { number in
      let records = data.shuffled
      for index in stride(from: number, to: count, by: threads) {
        let record = records[index]
        try engine.write { (transaction: any WriteTransaction) throws -> Void in
          try transaction.put(record.keyBytes, record.valueBytes, in: keyspace)
        }
      }
    }
  }

  private func reopen(_ engine: ProbedEngine, _ directory: String) throws {
    var seen = Seen()
    for _ in 0..<EngineWorkload.opens {
      let opened = try engine.open(in: directory)
      try opened.read { transaction in
        if let keyspace = try transaction.keyspace(named: EngineBenchmark.keyspaceName) {
          _ = try transaction.read(data.shuffled[0].keyBytes.bytes, in: keyspace) { seen.see($0) }
        }
      }
      try opened.close()
    }
    try seen.expect(EngineWorkload.opens)
  }

  /// The sum of a reading loop, as in the C loops.
  private struct Seen {
    var sum: UInt64 = 0
    var count = 0

    @inline(__always)
    mutating func see(_ value: RawSpan) {
      if value.byteCount > 0 { sum &+= UInt64(value.unsafeLoad(as: UInt8.self)) }
      count += 1
    }

    func expect(_ expected: Int) throws {
      if count != expected { throw RunMismatch(seen: count, expected: expected) }
    }
  }
}

// MARK: - Limits

extension EngineBenchmark {
  private func limitTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try database(engine, trial)
    let path = engine.path(in: directory)
    // The first keyspace of a file has the number 1.
    let table = LimitDatabase.Table(
      name: EngineBenchmark.keyspaceName, keyspace: Keyspace(number: 1, shape: EngineBenchmark.shape))
    if kind == .open {
      return Trial(run: {
        let outcome = try LimitDatabase.reopen(
          engine, path: path, table: table, record: data.shuffled, times: EngineWorkload.opens)
        return try checked(outcome)
      })
    }
    let database = try LimitDatabase(engine, path: path, tables: [table])
    let writer =
      kind == .readwhilewriting && engine.limitFamily == .sqlite
      ? try LimitDatabase(engine, path: path, tables: [table]) : nil
    return Trial(
      run: { try checked(try runLimit(database, writer)) },
      finish: {
        withExtendedLifetime((database, writer)) {}
        if kind.start != .shared { try engine.discard(directory) }
      })
  }

  private func runLimit(_ database: LimitDatabase, _ writer: LimitDatabase?) throws -> limit_outcome {
    switch kind {
    case .fillseq: try database.put(data.sequential, batch: kind.batch, exist: false)
    case .fillrandom, .fillbatch: try database.put(data.shuffled, batch: kind.batch, exist: false)
    case .overwrite: try database.put(data.reshuffled, batch: kind.batch, exist: true)
    case .deleterandom: try database.delete(data.reshuffled, batch: kind.batch)
    case .readrandom: try database.get(data.reshuffled)
    case .readmissing: try database.get(data.missing)
    case .readseq: try database.scan(.ascending)
    case .readreverse: try database.scan(.descending)
    case .readrange: try database.ranges(data.rangeStarts, length: EngineWorkload.rangeLength)
    case .readwhilewriting:
      try database.readWhileWriting(
        data.shuffled, writer: writer, writes: data.reshuffled,
        batch: min(EngineWorkload.writerBatch, data.reshuffled.count))
    case .commitsync:
      try database.commits(Records(rebasing: data.shuffled[..<operations]), threads: threads ?? 1)
    case .open: preconditionFailure("opening is a loop of its own")
    }
  }

  private func checked(_ outcome: limit_outcome) throws -> Trial.Duration {
    let expected = kind == .readmissing ? 0 : operations
    if outcome.count != UInt64(expected) { throw RunMismatch(seen: Int(outcome.count), expected: expected) }
    return .seconds(outcome.seconds)
  }
}
