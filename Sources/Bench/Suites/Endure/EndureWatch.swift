import BenchmarkKit
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Looks at the process, the files and the engine at the end of each interval of a run.
final class EndureWatch: Sendable {
  /// What there was at the end of an interval.
  struct Look {
    var userBytes = 0
    var storedBytes = 0
    var diskBytesWritten = 0
    var bytesWritten = 0
    var fileBytes = 0
    var residentBytes = 0
    var anonymousBytes = 0
    var activity: [EngineActivity.Value] = []
  }

  /// The bytes of keys and values that were committed so far.
  let userBytes = Atomic<Int>(0)
  /// The bytes of keys and values in the database.
  let storedBytes: Atomic<Int>

  private struct State {
    var looks: [Look] = []
    var isDone = false
  }

  private let state = Mutex(State())
  private let ended = CountingSemaphore()
  private let wake = CountingSemaphore()
  private let directory: String
  private let activity: EngineActivity
  private let start: Look

  /// Begins at `begin`, in nanoseconds of `Clock`, and looks every `interval` seconds.
  init(
    begin: UInt64, interval: Double, directory: String, activity: EngineActivity, storedBytes: Int
  ) {
    self.directory = directory
    self.activity = activity
    self.storedBytes = Atomic(storedBytes)
    start = Self.look(directory, activity)
    Workers(maximum: 1).enqueue { [self] in
      var number = 1
      while !state.withLock({ $0.isDone }) {
        let due = begin + UInt64(Double(number) * interval * 1e9)
        let now = Clock.nanoseconds()
        // Woken up at the end of the run.
        if due > now { _ = wake.wait(seconds: Double(due - now) / 1e9) }
        if state.withLock({ $0.isDone }) { break }
        let look = current()
        state.withLock { $0.looks.append(look) }
        number += 1
      }
      ended.signal()
    }
  }

  /// Ends the watch. Returns a look for each interval that has ended, and one for the rest. Totals count from the
  /// beginning.
  func finish() -> [Look] {
    state.withLock { $0.isDone = true }
    wake.signal()
    ended.wait()
    let last = current()
    return state.withLock { $0.looks + [last] }
  }

  /// The present state, with the totals since the beginning.
  func current() -> Look {
    var look = Self.look(directory, activity)
    look.userBytes = userBytes.load(ordering: .relaxed)
    look.storedBytes = storedBytes.load(ordering: .relaxed)
    look.diskBytesWritten -= start.diskBytesWritten
    look.bytesWritten -= start.bytesWritten
    for index in look.activity.indices where look.activity[index].isTotal {
      let name = look.activity[index].name
      look.activity[index].value -= start.activity.first { $0.name == name }?.value ?? 0
    }
    return look
  }

  private static func look(_ directory: String, _ activity: EngineActivity) -> Look {
    var look = Look()
    look.diskBytesWritten = ProcessUsage.diskBytesWritten() ?? 0
    look.bytesWritten = ProcessUsage.bytesWritten() ?? 0
    look.fileBytes = (try? TrialDirectory.fileBytes(in: directory)) ?? 0
    look.residentBytes = ProcessUsage.residentMemory() ?? 0
    look.anonymousBytes = ProcessUsage.anonymousMemory() ?? 0
    look.activity = activity.values()
    return look
  }

  /// Waits until the process is quiet, at most `limit` seconds. Returns the seconds until the quiet time began; nil if
  /// the process wasn't quiet.
  static func waitUntilQuiet(limit: Double) -> Double? {
    var detector = QuietDetector()
    let begin = Clock.nanoseconds()
    while true {
      let time = Double(Clock.nanoseconds() - begin) / 1e9
      let usage = QuietDetector.Look(
        time: time, cpu: Double(Clock.cpuNanoseconds()) / 1e9,
        written: ProcessUsage.diskBytesWritten() ?? 0)
      if let quiet = detector.add(usage) { return quiet }
      if time >= limit { return nil }
      usleep(50_000)
    }
  }
}
