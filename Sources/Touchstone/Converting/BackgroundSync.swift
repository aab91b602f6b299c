import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A file's way to the disk, on a thread of its own, while it is read.
///
/// The file is opened before an engine opens it and closed after `finish()`, which comes when the engine is closed: closing
/// any descriptor of a file drops the locks that the process has on it.
final class BackgroundSync: Sendable {
  private let path: String
  private let descriptor: Int32
  private let failure = Lock<Int32>(0)
  private let isDone = CountingSemaphore()

  /// Begins.
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

  /// Waits until it is done. To be called once, whatever happens.
  func finish() throws {
    isDone.wait()
    close(descriptor)
    let number = failure.withLock { $0 }
    guard number == 0 else { throw StorageError.system(number, "can't sync", path) }
  }
}
