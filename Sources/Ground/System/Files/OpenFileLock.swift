#if canImport(Glibc)
  import Glibc
#endif

/// Locks of byte ranges that belong to an open file and not to the process ("open file description locks" of
/// Linux).
///
/// A process needs only the right to read a file to lock a range of it shared. Everybody who has the file
/// open finds such a lock. So this is how a process without the right to write tells others that it reads.
/// The lock ends with the descriptor, and so with the process.
package enum OpenFileLock {
  // <fcntl.h> declares these only to those who ask for all extensions.
  private static let get: Int32 = 36
  private static let set: Int32 = 37

  /// Locks a range shared without waiting. `count` 0 means to the end of all files. Returns 0 or an `errno`:
  /// `EAGAIN` or `EACCES` if somebody holds the range exclusively.
  package static func share(_ descriptor: Int32, from start: Int, count: Int) -> Int32 {
    change(descriptor, F_RDLCK, start, count)
  }

  /// Gives up the locks of a range.
  package static func release(_ descriptor: Int32, from start: Int, count: Int) {
    _ = change(descriptor, F_UNLCK, start, count)
  }

  /// Returns where a lock of somebody else begins that overlaps the range, or nil if nobody has one. If there are several,
  /// any of them. Throws an `errno` as a `StorageError` that names `path`.
  package static func holder(_ descriptor: Int32, from start: Int, count: Int, path: String) throws -> Int? {
    var lock = range(F_WRLCK, start, count)
    while fcntl(descriptor, get, &lock) != 0 {
      guard errno == EINTR else { throw StorageError.system(errno, "can't look for locks on", path) }
    }
    return lock.l_type == Int16(F_UNLCK) ? nil : Int(lock.l_start)
  }

  private static func change(_ descriptor: Int32, _ type: Int32, _ start: Int, _ count: Int) -> Int32 {
    var lock = range(type, start, count)
    while fcntl(descriptor, set, &lock) != 0 {
      if errno != EINTR { return errno }
    }
    return 0
  }

  private static func range(_ type: Int32, _ start: Int, _ count: Int) -> flock {
    var lock = flock()
    lock.l_type = Int16(type)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(start)
    lock.l_len = off_t(count)
    return lock
  }
}
