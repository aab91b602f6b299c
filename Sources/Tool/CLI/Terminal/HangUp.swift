import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// SIGHUP, for servers that then read their files again.
enum HangUp {
  private static let isRequestedNow = Atomic<Bool>(false)

  /// Starts to catch SIGHUP, which otherwise ends the process.
  static func listen() {
    // Initializes the variable, so that the signal handler doesn't.
    isRequestedNow.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in HangUp.isRequestedNow.store(true, ordering: .relaxed) }
    action.sa_flags = SA_RESTART
    sigaction(SIGHUP, &action, nil)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGHUP)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Whether it came since the last call.
  static func isRequested() -> Bool { isRequestedNow.exchange(false, ordering: .relaxed) }
}
