import Glibc
import Storage

/// A lock on a file while it is opened, created or abandoned, so that only one process at a time does so.
///
/// A process that creates a file and then fails removes the file. Without the lock, another process could
/// have opened the empty file meanwhile and created its own database in it. Therefore each opening locks the
/// file first, and then checks that the path still leads to it. The lock is a `flock` of the data file.
/// LMDB's own locks are on its lock file.
///
/// Always take this lock before the registry's lock; otherwise a deadlock is possible.
package final class OpeningLock {
  /// The maximum time that an opening waits for another one, in milliseconds.
  static let patience = 10_000

  /// Whether this opening has created the file.
  let isNew: Bool
  /// Whether LMDB's lock file existed before.
  let hadLockFile: Bool
  private let isReadOnly: Bool
  private let path: String
  private let descriptor: Int32

  /// Finds or creates the file, as the options say, and locks it.
  ///
  /// Throws `notFound`, `alreadyExists`, `notADatabase` for a path that isn't a regular file, and `busy` if
  /// another process holds the lock for too long.
  init(_ path: String, _ options: EngineOptions) throws {
    var waited = 0
    while true {
      let (descriptor, isNew) = try Self.open(path, options)
      var isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
      while !isLocked, errno == EWOULDBLOCK || errno == EINTR, waited < Self.patience {
        usleep(1_000)
        waited += 1
        isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
      }
      if !isLocked, errno == EWOULDBLOCK {
        close(descriptor)
        throw StorageError(.busy, "another process is still opening the database; try again", path: path)
      }
      // If the file system has no such locks, the opening continues without one.
      if !isLocked || Self.leads(path, to: descriptor) {
        self.path = path
        isReadOnly = options.isReadOnly
        self.isNew = isNew
        self.descriptor = descriptor
        hadLockFile = FilePath.exists(path + "-lock")
        return
      }
      // The process that created the file has removed it again.
      close(descriptor)
    }
  }

  deinit { close(descriptor) }

  /// Removes the files that a failed opening has created. The caller has closed them.
  func removeWhatIsNew() {
    guard Self.leads(path, to: descriptor) else { return }
    if isNew { unlink(path) }
    if !hadLockFile, isNew || isReadOnly { Self.removeUnusedLockFile(of: path) }
  }

  /// Removes the lock file that LMDB has created for a read-only opening, unless a process has it open now.
  /// The caller has closed it.
  static func removeLockFile(of path: String) {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // Nobody can open the file while this lock is held.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, leads(path, to: descriptor) else { return }
    removeUnusedLockFile(of: path)
  }

  private static func removeUnusedLockFile(of path: String) {
    let lockFile = Glibc.open(path + "-lock", O_RDWR | O_CLOEXEC)
    guard lockFile >= 0 else { return }
    defer { close(lockFile) }
    // A process that has the lock file open holds a shared lock on its first byte.
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_len = 1
    if fcntl(lockFile, F_SETLK, &lock) == 0 { unlink(path + "-lock") }
  }

  /// Makes LMDB's lock file, if there is none, so that whoever may use the data file may use it too. LMDB would give it
  /// to this user, with the permissions that the umask leaves. Does nothing where the folder can't be written.
  static func makeLockFile(of path: String) throws {
    let lockFile = Glibc.open(path + "-lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard lockFile >= 0 else { return }
    defer { close(lockFile) }
    do { try FileAccess(of: path)?.apply(to: lockFile, path: path + "-lock") } catch {
      unlink(path + "-lock")
      throw error
    }
  }

  private static func leads(_ path: String, to descriptor: Int32) -> Bool {
    var opened = stat()
    var named = stat()
    guard fstat(descriptor, &opened) == 0, stat(path, &named) == 0 else { return false }
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino
  }

  private static func open(_ path: String, _ options: EngineOptions) throws -> (Int32, isNew: Bool) {
    if options.creation == .createNew, options.isReadOnly {
      throw StorageError(.invalidArgument, "a new file can't be opened for reading only", path: path)
    }
    let mayMake = !options.isReadOnly && options.creation != .openExisting
    while true {
      var status = stat()
      if stat(path, &status) == 0 {
        if status.st_mode & S_IFMT != S_IFREG {
          throw StorageError(.notADatabase, "this is a directory or a device, not a file", path: path)
        }
        if options.creation == .createNew {
          throw StorageError(.alreadyExists, "a new file can't be created: the file exists", path: path)
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if descriptor >= 0 { return (descriptor, false) }
      } else if errno == ENOENT {
        guard mayMake else { throw StorageError(.notFound, "there is no file", path: path) }
        let descriptor = Glibc.open(
          path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, options.access == nil ? 0o644 : 0o600)
        if descriptor >= 0 {
          do { try options.access?.apply(to: descriptor, path: path) } catch {
            unlink(path)
            close(descriptor)
            throw error
          }
          return (descriptor, true)
        }
        let failure = errno
        // A symbolic link without a target: the name exists, but the file doesn't.
        if failure != EEXIST || FilePath.exists(path) && stat(path, &status) != 0 {
          throw StorageError.lmdb(failure, "the database could not be made", path: path)
        }
        continue
      }
      if errno != ENOENT { throw StorageError.lmdb(errno, "the database could not be opened", path: path) }
    }
  }
}
