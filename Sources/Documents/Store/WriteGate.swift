#if canImport(Glibc)
  import Glibc
#endif

/// Lets any number of writers through, or one thread that has to be alone.
///
/// An engine's own queue can't give that: those who wait there join the transaction of whoever is in, and its
/// writes aren't committed yet.
final class WriteGate: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<pthread_rwlock_t>

  init() {
    lock = .allocate(capacity: 1)
    lock.initialize(to: pthread_rwlock_t())
    var attributes = pthread_rwlockattr_t()
    pthread_rwlockattr_init(&attributes)
    // Writers that keep coming must not keep out who wants to be alone.
    pthread_rwlockattr_setkind_np(&attributes, Int32(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP))
    let result = pthread_rwlock_init(lock, &attributes)
    pthread_rwlockattr_destroy(&attributes)
    precondition(result == 0, "pthread_rwlock_init: \(result)")
  }

  deinit {
    pthread_rwlock_destroy(lock)
    lock.deallocate()
  }

  /// Runs `body` beside others that came this way. Not to be called in a `body` of the same thread.
  @inline(__always)
  func pass<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }

  /// Runs `body` when all others are through, and keeps them out meanwhile.
  func alone<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_rwlock_wrlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }
}
