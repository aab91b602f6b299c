import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The lock of a database's directory: every open holds it shared; who changes the files holds it alone.
///
/// One for all opens of a path in a process (a lock belongs to the open file, and so to this object).
///
/// A change from shared to alone gives the shared lock up for a moment, in which another process must not get it
/// alone. So whoever wants it alone first takes the lock of the directory itself, which is the right to try:
/// in that moment nobody else may.
final class DirectoryLock: @unchecked Sendable {
  private let path: String
  private let directory: String
  private let state: Lock<State>

  private struct State {
    /// The open file of the lock; -1 when there is none.
    var descriptor: Int32
    /// The open directory while the right to try is held; -1 when it isn't.
    var right: Int32 = -1
  }

  /// Opens the lock's file, making it when it may be made. Nothing is locked yet.
  init(_ path: String, in directory: String, creates: Bool) throws {
    self.path = path
    self.directory = directory
    var descriptor = open(path, O_RDWR | O_CLOEXEC | (creates ? O_CREAT : 0), 0o644)
    // In a directory that can't be written it can still be locked.
    if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
    if descriptor < 0, creates { throw StorageError.system(errno, "can't make", path) }
    state = Lock(State(descriptor: descriptor))
  }

  /// Makes the lock's file when it wasn't there, and takes it shared: for who was open for reading only and will write.
  func create() throws {
    try state.withLock { state in
      guard state.descriptor < 0 else { return }
      state.descriptor = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0o644)
      if state.descriptor < 0 { state.descriptor = open(path, O_RDONLY | O_CLOEXEC) }
      guard state.descriptor >= 0 else { throw StorageError.system(errno, "can't make", path) }
    }
    try share()
  }

  deinit { release() }

  /// Whether the file that is locked is the one of that name: another process may have removed the database, and
  /// made another, since it was opened.
  var isCurrent: Bool {
    state.withLock { state in
      guard state.descriptor >= 0 else { return true }
      var ours = stat()
      var named = stat()
      return fstat(state.descriptor, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev
        && ours.st_ino == named.st_ino
    }
  }

  /// Takes it shared, also when it is held alone; waits for somebody who changes files, at most `seconds`.
  func share(seconds: Double = 10) throws {
    try state.withLock { state in
      try lock(
        state.descriptor, LOCK_SH, seconds: seconds, "another process is changing the database's files")
      giveUpRight(&state)
    }
  }

  /// Takes it alone, or throws `inUse`, still holding it shared when `orShare` says so. It waits at most `seconds`, and no
  /// longer once `isDone` says that there is nothing left to take it for.
  func takeAlone(seconds: Double = 0, unless isDone: () -> Bool = { false }, orShare: Bool) throws {
    let refusal = "the database is open in another process, which has to close it first"
    try state.withLock { state in
      // Without a file (read-only media) there is nobody to keep out.
      guard state.descriptor >= 0 else { return }
      if state.right < 0 {
        state.right = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard state.right >= 0 else {
          throw StorageError.system(errno, "can't open the directory", directory)
        }
      }
      do { try lock(state.right, LOCK_EX, seconds: seconds, unless: isDone, refusal) } catch {
        giveUpRight(&state)
        throw error
      }
      do { try lock(state.descriptor, LOCK_EX, seconds: seconds, unless: isDone, refusal) } catch {
        defer { giveUpRight(&state) }
        if orShare { try lock(state.descriptor, LOCK_SH, seconds: 10, refusal) }
        throw error
      }
    }
  }

  /// Gives everything up; it can't be taken again.
  func release() {
    state.withLock { state in
      unlockAndClose(state.descriptor)
      state.descriptor = -1
      giveUpRight(&state)
    }
  }

  private func giveUpRight(_ state: inout State) {
    unlockAndClose(state.right)
    state.right = -1
  }

  /// Closing alone isn't enough: a child that was forked this moment has the open file, and so the lock, until it
  /// runs its own program.
  private func unlockAndClose(_ descriptor: Int32) {
    guard descriptor >= 0 else { return }
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private func lock(
    _ descriptor: Int32, _ kind: Int32, seconds: Double, unless isDone: () -> Bool = { false },
    _ refusal: String
  ) throws {
    guard descriptor >= 0 else { return }
    var waited = 0.0
    while flock(descriptor, kind | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw StorageError.system(errno, "can't lock", path)
      }
      guard waited < seconds, !isDone() else { throw DatabaseError(.inUse, refusal, path: directory) }
      usleep(10_000)
      waited += 0.01
    }
  }
}
