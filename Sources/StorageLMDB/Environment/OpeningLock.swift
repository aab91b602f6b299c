import Glibc
import Storage

/// Holds a file while it is opened, made, or given up again, so that no two processes do that at once.
///
/// A process that makes a file and fails removes it. Without the lock it could be another one's by then: that one has
/// opened the empty file and made its own database of it. So whoever opens a file locks it, and then looks whether the
/// path still leads to it. The lock is that of `flock`, on the data file itself; LMDB's own are on its lock file.
///
/// It is taken before the registry's lock, always: both orders would be a deadlock.
final class OpeningLock {
  /// How long an opening waits for another one.
  static let patience = 10_000

  /// Whether this opening has made the file.
  let isNew: Bool
  /// Whether LMDB's lock file was there already.
  let hadLockFile: Bool
  private let isReadOnly: Bool
  private let path: String
  private let descriptor: Int32

  /// Finds the file or makes it, as the options say, and locks it. Throws `notFound`, `alreadyExists`, `notADatabase` for
  /// what isn't a file, and `busy` when another process is opening it all the time.
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
        throw StorageError(.busy, "another process has been opening the database for long", path: path)
      }
      // A file system without such locks: nobody can be waited for.
      if !isLocked || Self.leads(path, to: descriptor) {
        self.path = path
        isReadOnly = options.isReadOnly
        self.isNew = isNew
        self.descriptor = descriptor
        hadLockFile = FilePath.exists(path + "-lock")
        return
      }
      // Whoever made it has removed it again.
      close(descriptor)
    }
  }

  deinit { close(descriptor) }

  /// After a failure: removes what this opening has made. The caller has closed what it had opened.
  func removeWhatIsNew() {
    guard Self.leads(path, to: descriptor) else { return }
    if isNew { unlink(path) }
    if !hadLockFile, isNew || isReadOnly { Self.removeUnusedLockFile(of: path) }
  }

  /// Removes the lock file that LMDB has made for a file that was opened for reading only, unless a process has it open
  /// by now. The caller has closed it.
  static func removeLockFile(of path: String) {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // Nobody opens it meanwhile.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, leads(path, to: descriptor) else { return }
    removeUnusedLockFile(of: path)
  }

  private static func removeUnusedLockFile(of path: String) {
    let lockFile = Glibc.open(path + "-lock", O_RDWR | O_CLOEXEC)
    guard lockFile >= 0 else { return }
    defer { close(lockFile) }
    // Who has it open holds a shared lock of the first byte.
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_len = 1
    if fcntl(lockFile, F_SETLK, &lock) == 0 { unlink(path + "-lock") }
  }

  private static func leads(_ path: String, to descriptor: Int32) -> Bool {
    var opened = stat()
    var named = stat()
    guard fstat(descriptor, &opened) == 0, stat(path, &named) == 0 else { return false }
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino
  }

  private static func open(_ path: String, _ options: EngineOptions) throws -> (Int32, isNew: Bool) {
    if options.creation == .createNew, options.isReadOnly {
      throw StorageError(.invalidArgument, "a database can't be made for reading only", path: path)
    }
    let mayMake = !options.isReadOnly && options.creation != .openExisting
    while true {
      var status = stat()
      if stat(path, &status) == 0 {
        if status.st_mode & S_IFMT != S_IFREG {
          throw StorageError(.notADatabase, "this is a folder or a device, not a file", path: path)
        }
        if options.creation == .createNew {
          throw StorageError(.alreadyExists, "there is a file already", path: path)
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if descriptor >= 0 { return (descriptor, false) }
      } else if errno == ENOENT {
        guard mayMake else { throw StorageError(.notFound, "there is no database", path: path) }
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        if descriptor >= 0 { return (descriptor, true) }
        let failure = errno
        // A link that leads nowhere is there, and isn't.
        if failure != EEXIST || FilePath.exists(path) && stat(path, &status) != 0 {
          throw StorageError.lmdb(failure, "the database could not be made", path: path)
        }
        continue
      }
      if errno != ENOENT { throw StorageError.lmdb(errno, "the database could not be opened", path: path) }
    }
  }
}
