import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Ctrl-C, for commands that do their work in pieces: they look between two pieces whether to stop.
///
/// The second Ctrl-C ends the process at once, as it would without this.
enum Interrupt {
  private static let isRequestedNow = Atomic<Bool>(false)

  /// Begins to listen, to SIGTERM as well. Commands that never look leave the signals alone.
  static func listen() {
    // Made now, so that the handler finds it made.
    isRequestedNow.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in Interrupt.isRequestedNow.store(true, ordering: .relaxed) }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    sigaction(SIGINT, &action, nil)
    sigaction(SIGTERM, &action, nil)
  }

  /// Whether to stop.
  static var isRequested: Bool { isRequestedNow.load(ordering: .relaxed) }
}
