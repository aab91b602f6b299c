import CLineEditor
import Query
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Ctrl-C and other signals, for the shell. A thread of its own waits for them: a handler couldn't cancel a query, because
/// that takes a lock.
final class ShellSignals: Sendable {
  private struct State {
    /// The statement that runs.
    var cancellation: QueryCancellation?
    var isInterrupted = false
    var isEnding = false
  }

  private let state = Lock(State())
  /// The end of a pipe to read. A byte comes with each signal that concerns whoever waits for a line.
  let wake: Int32
  private let wakeWriter: Int32

  /// Starts to wait for signals. It comes before any other thread begins, since threads inherit which signals are blocked.
  init() throws {
    var signals = Self.signals
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw StorageError(.ioError, "can't make a pipe: \(String(cString: strerror(errno)))")
    }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (wake, wakeWriter) = (ends[0], ends[1])
    Workers(maximum: 1).enqueue { [self] in
      while true { wait() }
    }
  }

  private static var signals: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT] { sigaddset(&signals, signal) }
    return signals
  }

  private func wait() {
    var signals = Self.signals
    var signal: Int32 = 0
    guard sigwait(&signals, &signal) == 0 else { return }
    switch signal {
    case SIGWINCH: write(UInt8(ascii: "w"))
    case SIGCONT: write(UInt8(ascii: "c"))
    default:
      let cancellation = state.withLock { state in
        state.isInterrupted = true
        if signal != SIGINT { state.isEnding = true }
        return state.cancellation
      }
      cancellation?.cancel()
      write(UInt8(ascii: "i"))
    }
  }

  private func write(_ byte: UInt8) {
    var byte = byte
    // If the pipe is full, whoever reads it wakes up anyway.
    _ = Glibc.write(wakeWriter, &byte, 1)
  }

  /// Forgets a Ctrl-C: that of a statement that has ended.
  func forget() {
    state.withLock { $0.isInterrupted = $0.isEnding }
    guard !isEnding else { return }
    var bytes = [UInt8](repeating: 0, count: 64)
    while read(wake, &bytes, bytes.count) > 0 {}
  }

  /// Whether Ctrl-C was pressed since `forget()`, or the process shall end.
  var isInterrupted: Bool { state.withLock { $0.isInterrupted } }
  /// Whether the process shall end.
  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Runs `body` with a cancellation that Ctrl-C cancels.
  func cancelling<Result>(_ body: (QueryCancellation) throws -> Result) rethrows -> Result {
    let cancellation = QueryCancellation()
    let isInterrupted = state.withLock { state in
      state.cancellation = cancellation
      return state.isInterrupted
    }
    if isInterrupted { cancellation.cancel() }
    defer { state.withLock { $0.cancellation = nil } }
    return try body(cancellation)
  }
}
