import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A turn to work: an exclusive flock on the file `lock-PURPOSE` of a database's directory. The system gives it up with the process.
///
/// The file is made when the turn is first taken, and stays. The database must be open meanwhile. A directory that was removed all the
/// same, and made anew, is that of another database, whose turn isn't taken.
final class DirectoryTurn: WorkTurn {
  /// What the names of the files begin with.
  static let prefix = "lock-"

  let canBeLost = false
  private let directory: String
  private let path: String
  /// The lock of the open database.
  private let lock: DirectoryLock
  private let state = Lock(State())

  private struct State {
    /// The descriptor of the locked file; -1 if the turn isn't held.
    var descriptor: Int32 = -1
    var isGivenBack = false
  }

  init(_ directory: DatabaseDirectory, _ lock: DirectoryLock, for purpose: String) {
    self.directory = directory.path
    self.lock = lock
    path = directory.file(Self.prefix + purpose)
  }

  deinit { giveBack() }

  func take() throws -> Bool {
    try state.withLock { state in
      guard !state.isGivenBack else {
        throw DatabaseError(.closed, "the turn to work was given back", path: directory)
      }
      guard state.descriptor < 0 else { return true }
      try lock.checkCurrent()
      let descriptor = try openFile()
      while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
        let error = errno
        if error == EINTR { continue }
        close(descriptor)
        guard error == EWOULDBLOCK else { throw StorageError.system(error, "can't lock", path) }
        return false
      }
      state.descriptor = descriptor
      // Somebody may have removed the file, and another process may hold a new one.
      if !isNamed(descriptor) { unlock(&state) }
      return state.descriptor >= 0
    }
  }

  func isStillHeld() throws -> Bool {
    state.withLock { $0.descriptor >= 0 && isNamed($0.descriptor) && lock.isCurrent }
  }

  func giveBack() {
    state.withLock { state in
      unlock(&state)
      state.isGivenBack = true
    }
  }

  private func openFile() throws -> Int32 {
    let isNew = access(path, F_OK) != 0
    var descriptor = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0o644)
    if isNew, descriptor >= 0 { DatabaseAccess.shareLock(descriptor, path, in: directory) }
    // A file that can't be written can still be locked.
    if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't make", path) }
    return descriptor
  }

  /// Whether the open file is the one of that name.
  private func isNamed(_ descriptor: Int32) -> Bool {
    var ours = stat()
    var named = stat()
    return fstat(descriptor, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev
      && ours.st_ino == named.st_ino
  }

  /// Closing alone isn't enough: a child that was just forked also has the open file until it executes its program.
  private func unlock(_ state: inout State) {
    guard state.descriptor >= 0 else { return }
    flock(state.descriptor, LOCK_UN)
    close(state.descriptor)
    state.descriptor = -1
  }
}
