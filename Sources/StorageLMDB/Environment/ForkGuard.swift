import Glibc
import Synchronization

/// Tells a forked child from the process that opened an environment, at the cost of one load.
///
/// LMDB's reader slots, locks and pid are those of the process that opened it, so nothing of an environment
/// may be used in a child. `getpid` is a system call; a handler that the C library runs in the child counts
/// instead.
enum ForkGuard {
  private static let count = Atomic<Int>(0)
  private static let registration: Int32 = pthread_atfork(
    nil, nil,
    {
      ForkGuard.count.add(1, ordering: .relaxed)
      EnvironmentRegistry.renew()
    })

  /// How many forks lie between this process and the one that registered. Registers at the first call.
  static func register() -> Int {
    _ = registration
    return generation
  }

  @inline(__always)
  static var generation: Int { count.load(ordering: .relaxed) }
}
