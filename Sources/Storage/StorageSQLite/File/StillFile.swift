import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// How a process reads a file beside which it may write nothing.
///
/// It can't create SQLite's shared memory, and so it has none of SQLite's locks while nobody else has the file open. It
/// keeps the file still instead, while it reads:
///
/// - A shared lock of the byte `markByte` tells the engine's writers to run no checkpoint (`mayCheckpoint`). Commits go
///   to the log.
/// - A shared lock of the bytes that SQLite locks exclusively to close the file for the last time keeps the log, and keeps
///   SQLite from copying it into the file.
///
/// So the file and the committed part of the log don't change, and the file may be read without any other lock. Before
/// each snapshot the process looks whether they have changed since the last one. If so it opens new connections: their
/// caches are of the old state. If somebody else has the log in use when a snapshot begins, its shared memory is there,
/// and SQLite's own locks work from then on.
final class StillFile: Sendable {
  /// A byte beyond every file.
  private static let markByte = 1 << 60
  /// The bytes of SQLite's shared lock (`SHARED_FIRST` and `SHARED_SIZE`).
  private static let shared = (first: 0x4000_0002, count: 510)
  /// The byte of the shared memory that all its users hold a shared lock of (`UNIX_SHM_DMS`).
  private static let usersByte = 128
  /// The maximum time that a snapshot waits for another process, in milliseconds.
  static let patience = 10_000

  /// The way of one snapshot or connection.
  struct Visit {
    let access: SQLiteFile.Access
    /// Changes whenever older connections are out of date.
    let generation: Int
    /// Whether the file is kept still for this visit.
    fileprivate let isHeld: Bool
  }

  /// The state of the file and its log, as the file system knows it.
  private struct Look: Equatable {
    private struct File: Equatable {
      let inode, size, changed, changedNanoseconds, modified, modifiedNanoseconds: Int

      init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        inode = Int(status.st_ino)
        size = Int(status.st_size)
        (changed, changedNanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        (modified, modifiedNanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
      }
    }
    private let file, log: File?

    init(_ path: String) {
      file = File(path)
      log = File(path + "-wal")
    }

    var logBytes: Int { log?.size ?? 0 }

    /// Whether a later change would be seen: the clock of the file system has ticked since the last one.
    var isCertain: Bool {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      return now.tv_sec > max(file?.changed ?? 0, log?.changed ?? 0) + 1
    }
  }

  private struct State {
    /// The number of visits that hold the file still.
    var held = 0
    var look: Look?
    var access = SQLiteFile.Access.immutable
    var generation = 0
    /// Whether a connection uses the shared memory.
    var isShared = false
  }

  private let path: String
  private let claim: OpenFiles.Claim
  private let state = Lock(State())

  init(_ path: String, _ claim: OpenFiles.Claim) {
    self.path = path
    self.claim = claim
  }

  /// Returns whether the process has to read the file at `path` in this way.
  static func isNeeded(_ path: String) -> Bool {
    !SQLiteFile.isAllowed(SQLiteFile.directory(of: path), W_OK) || !SQLiteFile.isAllowed(path, W_OK)
  }

  /// Begins a visit. Waits for a process that closes the file. Throws `permissionDenied` if the file system has no
  /// locks for readers.
  func enter() throws -> Visit {
    try state.withLock { state in
      if state.isShared {
        return Visit(access: state.access, generation: state.generation, isHeld: false)
      }
      if state.held == 0 { try hold() }
      do {
        try look(&state)
      } catch {
        if state.held == 0 { letGo() }
        throw error
      }
      state.held += 1
      return Visit(access: state.access, generation: state.generation, isHeld: true)
    }
  }

  /// Ends a visit.
  func leave(_ visit: Visit) {
    guard visit.isHeld else { return }
    state.withLock { state in
      state.held -= 1
      if state.held == 0 { letGo() }
    }
  }

  /// Call it when a connection of the visit has read the file. With the shared memory, it now has SQLite's own locks.
  func opened(_ visit: Visit) {
    guard visit.access == .sharedReadOnly else { return }
    state.withLock { if $0.generation == visit.generation { $0.isShared = true } }
  }

  /// Call it when a connection of the visit couldn't read the file. The next visit looks again.
  func failed(_ visit: Visit) {
    state.withLock { state in
      guard state.generation == visit.generation else { return }
      state.isShared = false
      state.look = nil
    }
  }

  private func look(_ state: inout State) throws {
    let look = Look(path)
    if look == state.look { return }
    state.generation += 1
    state.look = look.isCertain ? look : nil
    guard look.logBytes == 0 || SQLiteFile.isAllowed(path + "-wal", R_OK) else {
      throw SQLiteFile.systemError("the database can't be read", path + "-wal")
    }
    if look.logBytes <= SQLiteFile.emptyLogBytes {
      state.access = .immutable
    } else {
      state.access = try isLogInUse() ? .sharedReadOnly : .withoutLocks
    }
  }

  private func isLogInUse() throws -> Bool {
    let index = path + "-shm"
    guard let descriptor = try claim.descriptor(of: index) else { return false }
    return try OpenFileLock.holder(descriptor, from: Self.usersByte, count: 1, path: index) != nil
  }

  private func hold() throws {
    guard let descriptor = try claim.descriptor(of: path) else {
      throw SQLiteFile.systemError("the database can't be read", path)
    }
    for (first, count) in [(Self.markByte, 1), (Self.shared.first, Self.shared.count)] {
      var waited = 0
      while true {
        let failure = OpenFileLock.share(descriptor, from: first, count: count)
        if failure == 0 { break }
        guard failure == EAGAIN || failure == EACCES else {
          // Nobody writes a file system that has neither locks nor writers.
          if isOnReadOnlyMedia { return }
          throw StorageError(
            .permissionDenied,
            "this process may not write beside the file, and the file system has no locks for readers. Give it the "
              + "right to write the directory and its files (a group, for example), or open a copy",
            path: path, engineCode: Int(failure), engineMessage: String(cString: strerror(failure)))
        }
        guard waited < Self.patience else {
          letGo()
          throw StorageError(.busy, "another process has locked the file", path: path)
        }
        usleep(1_000)
        waited += 1
      }
    }
  }

  private func letGo() {
    guard let descriptor = try? claim.descriptor(of: path) else { return }
    OpenFileLock.release(descriptor, from: Self.markByte, count: 1)
    OpenFileLock.release(descriptor, from: Self.shared.first, count: Self.shared.count)
  }

  private var isOnReadOnlyMedia: Bool {
    var system = statvfs()
    return statvfs(path, &system) == 0 && system.f_flag & UInt(ST_RDONLY) != 0
  }

  /// Returns whether nobody keeps the file still, so that a checkpoint may write it.
  static func mayCheckpoint(_ path: String, _ claim: OpenFiles.Claim) -> Bool {
    // Without a descriptor nobody can tell. The commits stay in the log.
    guard let descriptor = try? claim.descriptor(of: path) else { return false }
    let holder = try? OpenFileLock.holder(descriptor, from: markByte, count: 1, path: path)
    // A file system without locks has no such readers.
    return (holder ?? nil) == nil
  }
}

extension StillFile {
  /// Begins a visit for `body`, which opens a connection or begins a snapshot. Repeats this while another process is just
  /// opening, closing or recovering the log. The caller leaves the visit.
  func connecting<Result>(upTo milliseconds: Int, _ body: (Visit) throws -> Result) throws -> (Result, Visit)
  {
    var waited = 0
    while true {
      let visit = try enter()
      do {
        let result = try body(visit)
        opened(visit)
        return (result, visit)
      } catch let error as StorageError where Self.mayPass(error) {
        failed(visit)
        leave(visit)
        guard waited < milliseconds else { throw Self.refusal(error, path) }
        usleep(5_000)
        waited += 5
      } catch {
        leave(visit)
        throw error
      }
    }
  }

  /// Whether the library's answer is one for a log that another process is changing.
  private static func mayPass(_ error: StorageError) -> Bool {
    guard let code = error.engineCode, error.code != .tooManyReaders else { return false }
    return [SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_BUSY, SQLITE_PROTOCOL].contains(Int32(code) & 0xFF)
  }

  private static func refusal(_ error: StorageError, _ path: String) -> StorageError {
    StorageError(
      .busy,
      "the log needs a process that may write it: let one open the database once, or give this process the right to write "
        + "the directory and its files (a group, for example), or open a copy",
      path: path, engineCode: error.engineCode, engineMessage: error.engineMessage)
  }
}
