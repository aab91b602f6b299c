import Glibc
import Synchronization

/// Detects that a process is a forked child of the one that opened an environment, at the cost of one load.
///
/// LMDB's reader slots, locks and process ID belong to the process that opened the environment. A child must
/// not use any of them. `getpid` would be a system call, so a handler that the C library runs in the child
/// counts the forks.
enum ForkGuard {
  private static let count = Atomic<Int>(0)
  private static let registration: Int32 = pthread_atfork(
    nil, nil,
    {
      ForkGuard.count.add(1, ordering: .relaxed)
      EnvironmentRegistry.renew()
    })

  /// Registers the handler at the first call. Returns the number of forks between this process and the one
  /// that registered it.
  static func register() -> Int {
    _ = registration
    return generation
  }

  @inline(__always)
  static var generation: Int { count.load(ordering: .relaxed) }
}
