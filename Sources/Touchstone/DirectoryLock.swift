import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The lock of a database's directory: every open holds it shared; who changes the files holds it alone.
///
/// One for all opens of a path in a process (a lock belongs to the open file, and so to this object).
final class DirectoryLock: @unchecked Sendable {
  private let path: String
  private var descriptor: Int32

  /// Opens the lock's file, making it when it may be made. Nothing is locked yet.
  init(_ path: String, creates: Bool) throws {
    self.path = path
    descriptor = open(path, O_RDWR | O_CLOEXEC | (creates ? O_CREAT : 0), 0o644)
    // In a directory that can't be written it can still be locked.
    if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
    if descriptor < 0, creates { throw StorageError.system(errno, "can't make", path) }
  }

  deinit { release() }

  /// Takes it shared; waits for somebody who changes files, at most `seconds`.
  func share(seconds: Double = 10) throws {
    try lock(LOCK_SH, seconds: seconds, "another process is changing the database's files")
  }

  /// Takes it alone, or throws `inUse`, still holding it shared when it was.
  func takeAlone(seconds: Double = 0, orShare: Bool) throws {
    do {
      try lock(LOCK_EX, seconds: seconds, "the database is open in another process")
    } catch {
      // A change from shared to alone gives the shared lock up first.
      if orShare { try share() }
      throw error
    }
  }

  func release() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  private func lock(_ kind: Int32, seconds: Double, _ refusal: String) throws {
    // Without a file (read-only media) there is nobody to keep out.
    guard descriptor >= 0 else { return }
    var waited = 0.0
    while flock(descriptor, kind | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw StorageError.system(errno, "can't lock", path)
      }
      guard waited < seconds else { throw DatabaseError(.inUse, refusal, path: path) }
      usleep(10_000)
      waited += 0.01
    }
  }
}
