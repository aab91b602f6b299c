import CTimers

#if canImport(Glibc)
  import Glibc
#endif

/// A value that only one thread at a time may access.
///
/// The interface is that of `Synchronization.Mutex`. The lock is a pthread mutex, because the thread
/// sanitizer knows it. On Linux the sanitizer can't see how `Mutex` waits, and reports every access under a
/// `Mutex` as a race.
@usableFromInline package final class Lock<State>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let state: UnsafeMutablePointer<State>

  /// Makes an unlocked lock that holds `state`.
  package init(_ state: consuming State) {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    let result = pthread_mutex_init(mutex, nil)
    precondition(result == 0, "pthread_mutex_init: \(result)")
    self.state = .allocate(capacity: 1)
    self.state.initialize(to: state)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Runs `body` on the value while no other thread has access. Don't call it inside `body` for the same
  /// lock.
  @inlinable
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state.pointee)
  }
}

/// A counting semaphore that starts at zero. The thread sanitizer knows it, unlike `DispatchSemaphore`.
package final class CountingSemaphore: @unchecked Sendable {
  private let semaphore: UnsafeMutablePointer<sem_t>

  /// Makes a semaphore at zero.
  package init() {
    semaphore = .allocate(capacity: 1)
    semaphore.initialize(to: sem_t())
    let result = sem_init(semaphore, 0, 0)
    precondition(result == 0, "sem_init: \(errno)")
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Increments the count and so releases one waiting thread.
  package func signal() { sem_post(semaphore) }

  /// Waits until the count is above zero, and decrements it.
  package func wait() {
    while sem_wait(semaphore) != 0 {
      precondition(errno == EINTR, "sem_wait: \(errno)")
    }
  }

  /// Waits like `wait()`, but at most `seconds` seconds, whatever happens to the system's clock meanwhile. Returns false on timeout.
  package func wait(seconds: Double) -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_MONOTONIC, &deadline)
    let nanoseconds = deadline.tv_nsec + Int(seconds * 1e9)
    deadline.tv_sec += nanoseconds / 1_000_000_000
    deadline.tv_nsec = nanoseconds % 1_000_000_000
    while touchstone_wait_until(semaphore, &deadline) != 0 {
      if errno == ETIMEDOUT { return false }
      precondition(errno == EINTR, "sem_clockwait: \(errno)")
    }
    return true
  }
}
