import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Counts forks, at the cost of one load: `getpid` would be a system call.
///
/// A forked child has none of its parent's other threads, and locks that they held are never released there.
package enum ForkCount {
  private static let count = Atomic<Int>(0)
  private static let registration: Int32 = pthread_atfork(
    nil, nil, { ForkCount.count.add(1, ordering: .relaxed) })

  /// Counts from the first call on. Returns the number of forks until now.
  package static func register() -> Int {
    _ = registration
    return now
  }

  /// The number of forks between this process and the one that registered.
  @inline(__always)
  package static var now: Int { count.load(ordering: .relaxed) }
}
