import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The lock of a database's directory. Every open holds it shared; an operation that changes files holds it
/// exclusively.
///
/// All opens of a path in a process share one lock object, because a flock belongs to the open file.
///
/// The change from shared to exclusive releases the shared lock for a moment. Another process must not take
/// the exclusive lock in that moment. A process that wants the exclusive lock therefore first locks the
/// directory itself, which only one process can hold.
final class DirectoryLock: @unchecked Sendable {
  private let path: String
  private let directory: String
  private let state: Lock<State>

  private struct State {
    /// The descriptor of the lock file, or of the directory; -1 after `release`.
    var descriptor: Int32
    /// Whether it is that of the directory: there is no lock file that this process may read.
    var isOfDirectory = false
    /// The descriptor of the locked directory; -1 if this process hasn't locked it.
    var right: Int32 = -1
  }

  /// Opens the lock file, and makes it if `creates`. It takes no lock yet.
  ///
  /// A reader that finds no lock file, or may not read it, locks the directory instead. Whoever wants the exclusive lock
  /// locks that first.
  init(_ path: String, in directory: String, creates: Bool) throws {
    self.path = path
    self.directory = directory
    let isNew = creates && access(path, F_OK) != 0
    var descriptor = open(path, O_RDWR | O_CLOEXEC | (creates ? O_CREAT : 0), 0o644)
    if isNew, descriptor >= 0 { DatabaseAccess.shareLock(descriptor, path, in: directory) }
    // In a directory that can't be written, an existing lock file can still be locked.
    if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
    if descriptor < 0, creates { throw StorageError.system(errno, "can't make", path) }
    let isOfDirectory = descriptor < 0
    if isOfDirectory {
      descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw StorageError.system(errno, "can't lock the database against changes of its files", path)
      }
    }
    state = Lock(State(descriptor: descriptor, isOfDirectory: isOfDirectory))
  }

  /// Makes the lock file if it didn't exist, and takes it shared. For a database that was open for reading
  /// only and is now opened for writing.
  func create() throws {
    try state.withLock { state in
      guard state.isOfDirectory else { return }
      var descriptor = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0o644)
      if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
      guard descriptor >= 0 else { throw StorageError.system(errno, "can't make", path) }
      unlockAndClose(state.descriptor)
      state.descriptor = descriptor
      state.isOfDirectory = false
    }
    try share()
  }

  deinit { release() }

  /// Whether the locked file is still the one of that name. Another process may have removed the database and
  /// made a new one since.
  var isCurrent: Bool {
    state.withLock { state in
      guard state.descriptor >= 0 else { return true }
      var ours = stat()
      var named = stat()
      let name = state.isOfDirectory ? directory : path
      return fstat(state.descriptor, &ours) == 0 && stat(name, &named) == 0 && ours.st_dev == named.st_dev
        && ours.st_ino == named.st_ino
    }
  }

  /// Throws `notFound` if another process has removed the database since, or another one has its path. What goes by the path
  /// would change that one.
  func checkCurrent() throws {
    guard !isCurrent else { return }
    throw StorageError(
      .notFound, "the directory of the open database was removed, or another one has its path",
      path: directory)
  }

  /// Takes the lock shared, also if it is held exclusively. Waits at most `seconds` for a process that
  /// changes files.
  func share(seconds: Double = 10) throws {
    try state.withLock { state in
      try lock(
        state.descriptor, LOCK_SH, seconds: seconds, "another process is converting or removing the database")
      giveUpRight(&state)
    }
  }

  /// Takes the lock shared after it was held exclusively. A failure leaves the database open without its lock, so
  /// that another process could replace its files.
  func shareAgain() {
    do { try share() } catch {
      Log.write(.error, .database, directory, "the database lost its lock: \(LogText.of(error))")
    }
  }

  /// Runs `body` while no other process can take the lock exclusively or run such a body. Waits at most `seconds`.
  func withRight<Result>(seconds: Double = 10, _ body: () throws -> Result) throws -> Result {
    try state.withLock { state in
      // A locked directory keeps such bodies away already.
      guard state.descriptor >= 0, !state.isOfDirectory, state.right < 0 else { return try body() }
      state.right = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard state.right >= 0 else { throw StorageError.system(errno, "can't open the directory", directory) }
      defer { giveUpRight(&state) }
      try lock(
        state.right, LOCK_EX, seconds: seconds,
        "another process is changing the key or the files of the database")
      return try body()
    }
  }

  /// Takes the lock exclusively, or throws `inUse`. With `orShare` it then still holds the lock shared. Waits
  /// at most `seconds`, and stops waiting when `isDone` returns true.
  func takeAlone(seconds: Double = 0, unless isDone: () -> Bool = { false }, orShare: Bool) throws {
    let refusal = "the database is open in another process; close it there first"
    try state.withLock { state in
      guard state.descriptor >= 0, !state.isOfDirectory else { return }
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

  /// Releases the lock. It can't be taken again.
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

  /// Closing alone isn't enough: a child that was just forked also has the open file, and so the lock, until
  /// it executes its program.
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
