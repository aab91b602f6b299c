import System
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Calls an app's sink on a thread of its own, so that the sink can't block or deadlock the database.
final class LogDelivery: Sendable {
  /// The size of the entries that wait, in bytes, above which more are dropped.
  static let maximumBytes = 4 << 20

  private struct State {
    var entries: [LogEntry] = []
    var bytes = 0
    var dropped = 0
    var isScheduled = false
  }

  private let sink: any LogSink
  private let state = Lock(State())
  private let worker = Workers()
  /// The thread that calls the sink now, 0 if none does.
  private let thread = Atomic<UInt>(0)

  init(_ sink: any LogSink) { self.sink = sink }

  /// Whether the calling thread is in a call of the sink.
  var isCalling: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  func enqueue(_ entry: LogEntry) {
    let starts = state.withLock { state in
      guard state.bytes < LogDelivery.maximumBytes else {
        state.dropped += 1
        return false
      }
      state.entries.append(entry)
      state.bytes += entry.bytes
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if starts { worker.enqueue { self.deliver() } }
  }

  /// Waits until the sink has received the entries so far, and flushes it.
  func flush() {
    let done = CountingSemaphore()
    worker.enqueue {
      self.calling { $0.flush() }
      done.signal()
    }
    done.wait()
  }

  private func deliver() {
    while true {
      let (entries, dropped) = state.withLock { state in
        let taken = (state.entries, state.dropped)
        (state.entries, state.bytes, state.dropped) = ([], 0, 0)
        if taken.0.isEmpty { state.isScheduled = false }
        return taken
      }
      calling { sink in
        for entry in entries { sink.write(entry) }
        guard dropped > 0 else { return }
        sink.write(
          LogEntry(
            level: .warning, domain: .database, database: nil,
            message: "\(dropped) log entries were dropped, because this sink is too slow"))
      }
      if entries.isEmpty { return }
    }
  }

  private func calling(_ body: (any LogSink) -> Void) {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    defer { thread.store(0, ordering: .relaxed) }
    body(sink)
  }
}
