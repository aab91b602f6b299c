import BenchmarkKit
import Datasets
import Foundation
import Storage
import Synchronization

/// One run of the suite `endure`, with what it measured.
final class EndureRun: @unchecked Sendable {
  // `metrics` and `series` are set by the thread that runs it, after all others have ended.
  private(set) var metrics: [Metric: Double] = [:]
  private(set) var series: TimeSeries?

  private let settings: EndureSettings
  private let variant: EndureWorkload.Variant
  private let data: EndureData
  private let entries: Int
  private let engine: any StorageEngine
  private let keyspace: Keyspace
  private let directory: String
  private let activity: EngineActivity
  private let seed: UInt64

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
    self.directory = directory
    self.activity = activity
    self.seed = seed
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
      let deadline = begin + UInt64(self.settings.seconds * 1e9)
      func operate() throws {
        let bytes = try client.operate(entries: self.entries, readPercent: self.variant.readPercent)
        if bytes > 0 { watch.userBytes.add(bytes, ordering: .relaxed) }
      }
      if let rate = self.variant.rate {
        let schedule = ArrivalSchedule(begin: begin, rate: Double(rate), threads: self.variant.threads)
        try schedule.run(until: deadline, thread: thread, into: &recorder, operate)
        return
      }
      var start = Clock.nanoseconds()
      while start < deadline {
        try operate()
        let end = Clock.nanoseconds()
        recorder.record(end: end, latency: end - start)
        start = Clock.nanoseconds()
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
    // Leaves time for all threads to start.
    let begin = Clock.nanoseconds() + 5_000_000
    let latencies = IntervalLatencies(begin: begin, interval: settings.interval, threads: variant.threads)
    let watch = EndureWatch(
      begin: begin, interval: settings.interval, directory: directory, activity: activity,
      storedBytes: storedBytes)
    let outcome = Result {
      _ = try ThreadGroup.run(variant.threads) { [self] thread in
        let client = EndureClient(
          engine, keyspace, data, seed: seed &* 1_000 &+ UInt64(thread) &+ 1)
        var recorder = latencies.recorder(thread)
        ArrivalSchedule.wait(until: begin)
        let done = Result { try work(client, &recorder, watch, thread, begin) }
        recorder.finish()
        try done.get()
      }
    }
    let end = Clock.nanoseconds()
    let quiet = (try? outcome.get()) == nil ? nil : EndureWatch.waitUntilQuiet(limit: settings.quietLimit)
    let looks = watch.finish()
    try outcome.get()
    let seconds = Double(end - begin) / 1e9
    let found = latencies.outcome()
    guard found.operations > 0 else {
      throw StorageError(.invalidArgument, "no operation ended in \(seconds) seconds; make the run longer")
    }
    summarize(found.intervals, found.slots, looks, seconds: seconds, quiet: quiet)
    return .latencies(found.total, seconds: seconds / Double(found.operations))
  }

  private func summarize(
    _ intervals: [IntervalLatencies.Interval], _ slots: [Int], _ looks: [EndureWatch.Look],
    seconds: Double, quiet: Double?
  ) {
    // The last slot isn't whole.
    let stalls = Stall.find(
      Array(slots.prefix(Int(seconds / IntervalLatencies.slotSeconds))), slot: IntervalLatencies.slotSeconds)
    metrics[.longestStall] = stalls.map(\.seconds).max() ?? 0
    if let quiet { metrics[.secondsUntilQuiet] = quiet }
    if let last = looks.last {
      if last.userBytes > 0 {
        let user = Double(last.userBytes)
        metrics[.writeAmplification] = Double(last.bytesWritten) / user
        if last.diskBytesWritten > 0 {
          metrics[.diskWriteAmplification] = Double(last.diskBytesWritten) / user
        }
      }
      let stored = Double(entries * data.entryBytes)
      metrics[.spaceAmplification] = Double(last.fileBytes) / stored
      metrics[.peakSpaceAmplification] = Double(looks.map(\.fileBytes).max() ?? 0) / stored
    }
    series = EndureSeries.make(
      intervals, looks, interval: settings.interval, seconds: seconds, stalls: stalls)
  }
}

extension ArrivalSchedule {
  /// Runs the operations of a thread at their times until `deadline`, and records their latencies from the intended
  /// start.
  ///
  /// Operations that were due before the deadline, but couldn't begin, count with the time that they had waited then.
  /// So a store that doesn't keep the rate can't look better than it is.
  func run(
    until deadline: UInt64, thread: Int, into recorder: inout IntervalLatencies.Recorder,
    clock: () -> UInt64 = Clock.nanoseconds, wait: (UInt64) -> Void = ArrivalSchedule.wait(until:),
    _ operation: () throws -> Void
  ) rethrows {
    var index = 0
    while true {
      let due = start(index, thread: thread)
      guard due < deadline else { return }
      index += 1
      wait(due)
      guard clock() < deadline else {
        recorder.record(waiting: deadline - due)
        continue
      }
      try operation()
      let end = clock()
      recorder.record(end: end, latency: end > due ? end - due : 0)
    }
  }
}
