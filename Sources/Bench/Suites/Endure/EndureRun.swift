import BenchmarkKit
import Datasets
import Storage
import Synchronization

/// One run of the suite `endure`, with what it measured.
final class EndureRun: Sendable {
  var metrics: [Metric: Double] { timed.metrics }
  var series: TimeSeries? { timed.series }

  private let settings: EndureSettings
  private let variant: EndureWorkload.Variant
  private let data: EndureData
  private let entries: Int
  private let engine: any StorageEngine
  private let keyspace: Keyspace
  private let seed: UInt64
  private let timed: TimedRun

  init(
    settings: EndureSettings, variant: EndureWorkload.Variant, data: EndureData, entries: Int,
    engine: any StorageEngine, keyspace: Keyspace, directory: String, activity: EngineActivity, seed: UInt64
  ) {
    self.settings = settings
    self.variant = variant
    self.data = data
    self.entries = entries
    self.engine = engine
    self.keyspace = keyspace
    self.seed = seed
    timed = TimedRun(
      threads: variant.threads, interval: settings.interval, quietLimit: settings.quietLimit,
      directory: directory, activity: activity)
  }

  /// Inserts all entries, some per transaction.
  func grow(perTransaction: Int) throws -> Trial.Duration {
    try measure(storedBytes: 0) { client, recorder, watch, thread, _ in
      let step = perTransaction * self.variant.threads
      for first in stride(from: thread * perTransaction, to: self.entries, by: step) {
        let numbers = first..<min(self.entries, first + perTransaction)
        let begin = Clock.nanoseconds()
        try client.insert(numbers)
        let end = Clock.nanoseconds()
        recorder.record(end: end, latency: end - begin)
        let bytes = numbers.count * self.data.entryBytes
        watch.userBytes.add(bytes, ordering: .relaxed)
        watch.storedBytes.add(bytes, ordering: .relaxed)
      }
    }
  }

  /// Reads and replaces random entries for the time of the settings, at full speed or at the rate.
  func update() throws -> Trial.Duration {
    try measure(storedBytes: entries * data.entryBytes) { client, recorder, watch, thread, begin in
      try TimedRun.repeat(
        for: self.settings.seconds, from: begin, rate: self.variant.rate, threads: self.variant.threads,
        thread: thread, into: &recorder
      ) {
        let bytes = try client.operate(entries: self.entries, readPercent: self.variant.readPercent)
        if bytes > 0 { watch.userBytes.add(bytes, ordering: .relaxed) }
      }
    }
  }

  private typealias Work =
    @Sendable (
      _ client: EndureClient, _ recorder: inout IntervalLatencies.Recorder, _ watch: EndureWatch,
      _ thread: Int, _ begin: UInt64
    ) throws -> Void

  /// Runs `work` on all threads, and waits until the process is quiet.
  private func measure(storedBytes: Int, _ work: @escaping Work) throws -> Trial.Duration {
    try timed.measure(
      storedBytes: storedBytes, finallyStored: entries * data.entryBytes,
      preparing: { [self] thread in
        EndureClient(engine, keyspace, data, seed: seed &* 1_000 &+ UInt64(thread) &+ 1)
      }, work)
  }
}
