#if canImport(Glibc)
  import Glibc
#endif

/// A gate that any number of writers can pass, or that one thread can close to be alone.
///
/// The engine's own queue can't do that. Threads that wait there join the transaction in progress, whose
/// writes aren't committed yet.
final class WriteGate: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<pthread_rwlock_t>

  init() {
    lock = .allocate(capacity: 1)
    lock.initialize(to: pthread_rwlock_t())
    var attributes = pthread_rwlockattr_t()
    pthread_rwlockattr_init(&attributes)
    // A steady stream of writers must not starve the thread that waits to be alone.
    pthread_rwlockattr_setkind_np(&attributes, Int32(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP))
    let result = pthread_rwlock_init(lock, &attributes)
    pthread_rwlockattr_destroy(&attributes)
    precondition(result == 0, "pthread_rwlock_init: \(result)")
  }

  deinit {
    pthread_rwlock_destroy(lock)
    lock.deallocate()
  }

  /// Runs `body` concurrently with other passing threads. Must not be called inside a `body` of the same
  /// thread.
  @inline(__always)
  func pass<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }

  /// Waits until all other threads have passed, and runs `body` while they are kept out.
  func alone<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_rwlock_wrlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }
}
