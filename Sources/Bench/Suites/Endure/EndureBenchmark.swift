import BenchmarkKit
import Datasets
import Storage

/// A benchmark of the suite `endure`. It makes the runs on an engine.
struct EndureBenchmark: Sendable {
  private static let keyspaceName = "bench"
  /// Bytes of a transaction while the database grows.
  private static let transactionBytes = 100_000

  let variant: EndureWorkload.Variant
  let context: SuiteContext

  private var settings: EndureSettings { context.settings.endure }

  func workload() -> Workload {
    var parameters: Parameters = [
      "value_bytes": .integer(variant.valueBytes), "threads": .integer(variant.threads),
      "data": .integer(settings.dataPerCache),
    ]
    if variant.kind == .update {
      parameters["reads"] = .integer(variant.readPercent)
      parameters["seconds"] =
        Int(exactly: settings.seconds).map { .integer($0) } ?? .string("\(settings.seconds)")
      if let rate = variant.rate { parameters["rate"] = .integer(rate) }
    }
    return Workload(
      suite: "endure", name: variant.kind.rawValue, summary: variant.kind.summary, parameters: parameters,
      // A run lasts a fixed time: its seconds are those of an operation.
      operations: 1, runsThreads: true
    ) { try trial($0) }
  }

  /// The number of entries that the data has.
  private func entries(_ engine: ProbedEngine, _ data: EndureData) -> Int {
    max(16, engine.options.cacheBytes * settings.dataPerCache / data.entryBytes)
  }

  // MARK: Runs

  private func trial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let data = EndureData(valueBytes: variant.valueBytes, seed: context.settings.seed)
    let count = entries(engine, data)
    let isGrowth = variant.kind == .grow
    if !isGrowth { try Fixtures.copy(try grown(engine, data, count), to: trial.directory) }
    let opened = try engine.open(in: trial.directory)
    do {
      let keyspace = try opened.write {
        try $0.keyspace(named: Self.keyspaceName)
          ?? $0.createKeyspace(Self.keyspaceName, shape: .documents)
      }
      FreedMemory.giveBack()
      let run = EndureRun(
        settings: settings, variant: variant, data: data, entries: count, engine: opened,
        keyspace: keyspace, directory: trial.directory,
        activity: EngineActivity(opened, engine.type, path: engine.path(in: trial.directory)),
        seed: context.settings.seed &+ UInt64(trial.round))
      return Trial(
        run: { isGrowth ? try run.grow(perTransaction: perTransaction(data)) : try run.update() },
        fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
        metrics: { run.metrics }, series: { run.series }, finish: { try opened.close() })
    } catch {
      try? opened.close()
      throw error
    }
  }

  private func perTransaction(_ data: EndureData) -> Int { max(1, Self.transactionBytes / data.entryBytes) }

  /// The directory of a database with all entries, in which nothing goes on any more.
  private func grown(_ engine: ProbedEngine, _ data: EndureData, _ count: Int) throws -> String {
    try context.fixtures.directory("endure \(engine.type.name) \(data.valueBytes)") { directory in
      let opened = try engine.open(in: directory)
      do {
        let keyspace = try opened.write { try $0.createKeyspace(Self.keyspaceName, shape: .documents) }
        let filler = EndureClient(opened, keyspace, data, seed: context.settings.seed)
        for first in stride(from: 0, to: count, by: perTransaction(data)) {
          try filler.insert(first..<min(count, first + perTransaction(data)))
        }
        _ = EndureWatch.waitUntilQuiet(limit: settings.quietLimit)
      } catch {
        try? opened.close()
        throw error
      }
      try opened.close()
    }
  }
}

/// The operations of one thread on an engine.
final class EndureClient {
  private let engine: any StorageEngine
  private let keyspace: Keyspace
  private let data: EndureData
  private let key = UnsafeMutableRawBufferPointer.allocate(byteCount: EndureData.keyBytes, alignment: 8)
  private var random: SeededRandom
  private var sum: UInt64 = 0

  init(_ engine: any StorageEngine, _ keyspace: Keyspace, _ data: EndureData, seed: UInt64) {
    self.engine = engine
    self.keyspace = keyspace
    self.data = data
    random = SeededRandom(seed: seed)
  }

  deinit { key.deallocate() }

  /// Puts the entries of these numbers in one transaction.
  func insert(_ numbers: Range<Int>) throws {
    try engine.write { (transaction: any WriteTransaction) throws -> Void in
      for number in numbers {
        EndureData.writeKey(number, into: key)
        try transaction.put(UnsafeRawBufferPointer(key), data.value(&random), in: keyspace)
      }
    }
  }

  /// Reads or replaces the value of a random entry. Returns the bytes that it wrote.
  func operate(entries: Int, readPercent: Int) throws -> Int {
    let number = random.below(entries)
    guard random.chance(readPercent) else {
      try insert(number..<number + 1)
      return data.entryBytes
    }
    EndureData.writeKey(number, into: key)
    let isFound = try engine.read(UnsafeRawBufferPointer(key).bytes, in: keyspace) { value in
      sum &+= UInt64(value.unsafeLoad(as: UInt8.self))
    }
    try RunMismatch.check(isFound ? 1 : 0, 1)
    return 0
  }
}
