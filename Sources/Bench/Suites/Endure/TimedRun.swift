import BenchmarkKit
import Datasets
import Storage
import Synchronization

/// A run on several threads that is watched second by second, with what it measured.
final class TimedRun: @unchecked Sendable {
  // `metrics` and `series` are set by the thread that runs it, after all others have ended.
  private(set) var metrics: [Metric: Double] = [:]
  private(set) var series: TimeSeries?

  private let threads: Int
  private let interval: Double
  private let quietLimit: Double
  private let directory: String
  private let activity: EngineActivity

  /// `interval` is that of the series, and `quietLimit` how long the process may take until it is quiet, in seconds.
  init(threads: Int, interval: Double, quietLimit: Double, directory: String, activity: EngineActivity) {
    self.threads = threads
    self.interval = interval
    self.quietLimit = quietLimit
    self.directory = directory
    self.activity = activity
  }

  /// Runs `work` on all threads, each with what `prepare` makes for it, and waits until the process is quiet.
  ///
  /// `storedBytes` are the bytes of the data at the start, and `finallyStored` those at the end; nil if they aren't known. The
  /// result is the time of an operation: the time of the run divided by the number of operations that ended.
  func measure<Client>(
    storedBytes: Int, finallyStored: Int?,
    preparing prepare: @escaping @Sendable (_ thread: Int) throws -> Client,
    _ work:
      @escaping @Sendable (
        _ client: Client, _ recorder: inout IntervalLatencies.Recorder, _ watch: EndureWatch, _ thread: Int,
        _ begin: UInt64
      ) throws -> Void
  ) throws -> Trial.Duration {
    // Leaves time for all threads to start.
    let begin = Clock.nanoseconds() + 5_000_000
    let latencies = IntervalLatencies(begin: begin, interval: interval, threads: threads)
    let watch = EndureWatch(
      begin: begin, interval: interval, directory: directory, activity: activity, storedBytes: storedBytes)
    let outcome = Result {
      _ = try ThreadGroup.run(threads) { thread in
        let client = try prepare(thread)
        var recorder = latencies.recorder(thread)
        ArrivalSchedule.wait(until: begin)
        let done = Result { try work(client, &recorder, watch, thread, begin) }
        recorder.finish()
        try done.get()
      }
    }
    let end = Clock.nanoseconds()
    let quiet = (try? outcome.get()) == nil ? nil : EndureWatch.waitUntilQuiet(limit: quietLimit)
    let looks = watch.finish()
    try outcome.get()
    let seconds = Double(end - begin) / 1e9
    let found = latencies.outcome()
    guard found.operations > 0 else {
      throw StorageError(.invalidArgument, "no operation ended in \(seconds) seconds; make the run longer")
    }
    summarize(
      found.intervals, found.slots, looks, seconds: seconds, quiet: quiet, finallyStored: finallyStored)
    return .latencies(found.total, seconds: seconds / Double(found.operations))
  }

  private func summarize(
    _ intervals: [IntervalLatencies.Interval], _ slots: [Int], _ looks: [EndureWatch.Look],
    seconds: Double, quiet: Double?, finallyStored: Int?
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
      if let finallyStored {
        metrics[.spaceAmplification] = Double(last.fileBytes) / Double(finallyStored)
        metrics[.peakSpaceAmplification] = Double(looks.map(\.fileBytes).max() ?? 0) / Double(finallyStored)
      }
    }
    series = EndureSeries.make(intervals, looks, interval: interval, seconds: seconds, stalls: stalls)
  }

  /// Repeats an operation on one of `threads` for some seconds from `begin`: at full speed, or at a rate of all threads
  /// together.
  static func `repeat`(
    for seconds: Double, from begin: UInt64, rate: Int?, threads: Int, thread: Int,
    into recorder: inout IntervalLatencies.Recorder, _ operate: () throws -> Void
  ) throws {
    let deadline = begin + UInt64(seconds * 1e9)
    if let rate {
      let schedule = ArrivalSchedule(begin: begin, rate: Double(rate), threads: threads)
      return try schedule.run(until: deadline, thread: thread, into: &recorder, operate)
    }
    var start = Clock.nanoseconds()
    // One at least, so that a short run on a busy machine has a result.
    repeat {
      try operate()
      let end = Clock.nanoseconds()
      recorder.record(end: end, latency: end - start)
      start = Clock.nanoseconds()
    } while start < deadline
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
