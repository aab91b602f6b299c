import Query
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Ctrl-C, for commands that work in pieces and check between two pieces whether to stop.
///
/// A second Ctrl-C ends the process at once, as usual.
enum Interrupt {
  private static let isRequestedNow = Atomic<Bool>(false)

  /// Starts to catch SIGINT and SIGTERM. Commands that never check don't call this.
  static func listen() {
    // Initializes the variable, so that the signal handler doesn't.
    isRequestedNow.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in Interrupt.isRequestedNow.store(true, ordering: .relaxed) }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    sigaction(SIGINT, &action, nil)
    sigaction(SIGTERM, &action, nil)
    // A process that was started by a thread which blocks signals has inherited that.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Runs `body` with a cancellation that Ctrl-C cancels. A thread looks for that, since cancelling takes locks, which a handler of a signal
  /// can't.
  static func cancelling<Result>(_ body: (QueryCancellation) throws -> Result) rethrows -> Result {
    let cancellation = QueryCancellation()
    let hasEnded = CountingSemaphore()
    Workers(maximum: 1).enqueue {
      while !hasEnded.wait(seconds: 0.02) {
        if isRequested { return cancellation.cancel() }
      }
    }
    defer { hasEnded.signal() }
    return try body(cancellation)
  }

  /// Whether the command should stop.
  static var isRequested: Bool { isRequestedNow.load(ordering: .relaxed) }
}
