import BenchmarkKit
import Datasets
import Storage
import Synchronization
import Touchstone

/// One run of the workload `mix`, with what it measured.
final class MixRun: Sendable {
  var metrics: [Metric: Double] { timed.metrics }
  var series: TimeSeries? { timed.series }

  fileprivate let mix: OperationMix
  fileprivate let settings: MineSettings
  fileprivate let dataset: LoadedDataset
  fileprivate let database: Database
  private let threads: Int
  private let seed: UInt64
  private let timed: TimedRun
  /// The number of documents that are there.
  fileprivate let count: Atomic<Int>
  /// The number of the next new document.
  fileprivate let nextInsert: Atomic<Int>

  init(
    _ mix: OperationMix, _ settings: MineSettings, _ dataset: LoadedDataset, _ database: Database,
    threads: Int,
    directory: String, activity: EngineActivity, seed: UInt64
  ) {
    self.mix = mix
    self.settings = settings
    self.dataset = dataset
    self.database = database
    self.threads = threads
    self.seed = seed
    count = Atomic(dataset.count)
    nextInsert = Atomic(dataset.count)
    timed = TimedRun(
      threads: threads, interval: settings.interval, quietLimit: settings.quietLimit, directory: directory,
      activity: activity)
  }

  func run() throws -> Trial.Duration {
    try timed.measure(
      storedBytes: dataset.jsonBytes, finallyStored: nil,
      preparing: { [self] thread in try MixClient(self, seed: seed &* 1_000 &+ UInt64(thread) &+ 1) }
    ) { [self] client, recorder, watch, thread, begin in
      try TimedRun.repeat(
        for: settings.seconds, from: begin, rate: settings.rate, threads: threads, thread: thread,
        into: &recorder
      ) {
        let bytes = try client.operate()
        if bytes > 0 { watch.userBytes.add(bytes, ordering: .relaxed) }
      }
    }
  }
}

extension MixRun {
  /// The ID of a document: of the data set, or of those that runs insert.
  fileprivate func id(_ number: Int) -> String {
    number < dataset.count ? dataset.idText(number) : "mine-\(number)"
  }
}

/// The operations of one thread.
private final class MixClient {
  private static let updatedProperty = "touchstoneUpdate"

  private let run: MixRun
  private let database: Database
  private let dataset: LoadedDataset
  private let queries: [(query: Query, parameters: [String: JSONValue])]
  private let scrambled: ScrambledZipfian
  private var latest: Zipfian
  private var random: SeededRandom
  private var buffer: [UInt8] = []
  private var updates = 0
  private var sum = 0

  init(_ run: MixRun, seed: UInt64) throws {
    self.run = run
    database = run.database
    dataset = run.dataset
    queries = try run.settings.queries.map { (try run.database.query($0.text), $0.parameters) }
    scrambled = ScrambledZipfian(run.dataset.count)
    latest = Zipfian(run.dataset.count)
    random = SeededRandom(seed: seed)
  }

  /// Does the next operation. Returns the bytes of JSON that it saved.
  func operate() throws -> Int {
    switch run.mix.operation(random.uniform()) {
    case .read:
      try read(run.id(choose()))
      return 0
    case .scan:
      try database.read { snapshot in
        let limit = 1 + random.below(run.mix.longestScan)
        try snapshot.enumerate(AllDocuments(from: run.id(choose()), limit: limit)) { document in
          try take(document)
          return true
        }
      }
      return 0
    case .query:
      let (query, parameters) = queries[random.below(queries.count)]
      sum &+= try query.run(parameters).sum
      return 0
    case .update:
      let number = choose()
      return try save(run.id(number), like: number)
    case .insert:
      let number = run.nextInsert.wrappingAdd(1, ordering: .relaxed).oldValue
      let bytes = try save(run.id(number), like: number)
      run.count.wrappingAdd(1, ordering: .relaxed)
      return bytes
    case .readModifyWrite:
      let id = run.id(choose())
      updates += 1
      _ = try database.update(id, attempts: 1_000) { $0[Self.updatedProperty] = .int(Int64(updates)) }
      return dataset.jsonBytes / dataset.count
    }
  }

  /// The number of a document, by the distribution of the mix.
  private func choose() -> Int {
    let present = run.count.load(ordering: .relaxed)
    switch run.mix.distribution {
    case .uniform: return random.below(present)
    case .zipfian: return scrambled.next(&random)
    case .latest:
      latest.grow(to: present)
      return max(0, present - 1 - latest.next(&random))
    }
  }

  /// Reads a document whole. One that another thread is about to insert may not be there yet.
  private func read(_ id: String) throws {
    if let document = try database.document(id) { sum &+= try document.json().count }
  }

  private func take(_ document: DocumentView) throws {
    buffer.removeAll(keepingCapacity: true)
    try document.writeJSON(into: &buffer)
    sum &+= buffer.count
  }

  /// Saves the JSON of a document of the data set with a property of another value each time.
  private func save(_ id: String, like number: Int) throws -> Int {
    let json = dataset.json(number % dataset.count)
    updates += 1
    buffer.removeAll(keepingCapacity: true)
    buffer += "{\"\(Self.updatedProperty)\":\(updates)".utf8
    // What follows the opening brace, and a comma unless that is the end.
    let rest = json.drop { $0 != UInt8(ascii: "{") }.dropFirst()
    let isEmpty = rest.first { ![0x20, 0x09].contains($0) } == UInt8(ascii: "}")
    if !isEmpty { buffer.append(UInt8(ascii: ",")) }
    buffer += rest
    _ = try buffer.withUnsafeBytes { try database.save(id, json: $0) }
    return buffer.count
  }
}
