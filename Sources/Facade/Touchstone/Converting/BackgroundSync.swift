import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Syncs a file to the disk on its own thread while the file is being read.
///
/// It opens the file before an engine opens it. `finish()` closes the file after the engine is closed,
/// because closing any descriptor of a file drops the locks that the process has on it.
final class BackgroundSync: Sendable {
  private let path: String
  private let descriptor: Int32
  private let failure = Lock<Int32>(0)
  private let isDone = CountingSemaphore()

  /// Opens the file and starts the sync.
  init(_ path: String) throws {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't open", path) }
    Workers().enqueue { [failure, descriptor, isDone] in
      if fsync(descriptor) != 0 {
        let number = errno
        failure.withLock { $0 = number }
      }
      isDone.signal()
    }
  }

  /// Waits until the sync is done and closes the file. Call it exactly once, also after an error.
  func finish() throws {
    isDone.wait()
    close(descriptor)
    let number = failure.withLock { $0 }
    guard number == 0 else { throw StorageError.system(number, "can't sync", path) }
  }
}
