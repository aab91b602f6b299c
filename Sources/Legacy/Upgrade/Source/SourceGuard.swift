import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Prevents changes of a source while it is read, and detects them. It takes shared locks on the bytes that
/// SQLite's writers lock, and compares the files' attributes at the end. Nothing is written, and no file is
/// made.
///
/// The bytes of SQLite's locks: in the file, 2^30 is the pending lock, and 2^30 + 2 and the next 509 bytes
/// are the shared lock. In NAME-shm, 120 is the lock of the log's writer, 121 of its checkpointer, 122 of its
/// recovery.
final class SourceGuard {
  /// The attributes of a file, found without reading it.
  struct Look: Equatable {
    var inode: UInt64
    var bytes: Int64
    var seconds: Int
    var nanoseconds: Int

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      inode = UInt64(status.st_ino)
      bytes = Int64(status.st_size)
      seconds = status.st_mtim.tv_sec
      nanoseconds = status.st_mtim.tv_nsec
    }
  }

  private let location: SourceFiles
  private var descriptors: [Int32] = []
  private let looks: [Look?]

  /// F_OFD_SETLK of Linux.
  private static let setOpenFileLock: Int32 = 37

  init(_ location: SourceFiles) throws {
    self.location = location
    looks = location.watched.map { Look($0) }
    // ForestDB has no locks that other processes see.
    guard location.storage == .sqlite else { return }
    try lock(location.file, from: 0x4000_0000, count: 512)
    if Look(location.file + "-shm") != nil { try lock(location.file + "-shm", from: 120, count: 3) }
  }

  deinit { for descriptor in descriptors { close(descriptor) } }

  private func lock(_ path: String, from start: Int, count: Int) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't open", path) }
    descriptors.append(descriptor)
    var lock = flock()
    lock.l_type = Int16(F_RDLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(start)
    lock.l_len = off_t(count)
    // The lock belongs to the open file and not to the process. SQLite in this process must not release it.
    guard fcntl(descriptor, Self.setOpenFileLock, &lock) == 0 else {
      // Some file systems have no locks.
      guard errno == EAGAIN || errno == EACCES else { return }
      throw Self.locked(location)
    }
  }

  static func locked(_ location: SourceFiles) -> UpgradeError {
    UpgradeError(
      .inUse, "the database is locked: another process writes to it; close it there first",
      path: location.path)
  }

  /// Throws `changed` if the source has changed since this guard was created.
  func checkUnchanged() throws {
    guard location.watched.map({ Look($0) }) == looks else {
      throw UpgradeError(
        .changed,
        "another process wrote to the database during the upgrade; close it there, and upgrade it again",
        path: location.path)
    }
  }
}
