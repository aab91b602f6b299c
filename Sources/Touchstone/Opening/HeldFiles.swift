import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Files of an engine that are open for reading beside the engine. They stay open until the engine is closed or they are
/// removed: closing any descriptor of a file drops all locks (fcntl) that the process has on it, and with them the engine's.
final class HeldFiles: Sendable {
  /// A file, open as long as somebody has this.
  final class Held: Sendable {
    let descriptor: Int32

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Whether its last name has gone.
    fileprivate var isRemoved: Bool {
      var status = stat()
      return fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }
  }

  private struct File: Hashable {
    let device: UInt64
    let number: UInt64
  }
  private struct State {
    var files: [File: Held] = [:]
    /// Calls of `using` that haven't returned.
    var users = 0
    var isClosed = false
  }
  private let state = Lock(State())
  /// The database's, for errors.
  private let path: String

  init(of path: String) { self.path = path }

  /// Calls `body`, which may keep files until it returns. Throws `closed` when the engine is closed, or is being closed.
  func using<Result>(_ body: () throws -> Result) throws -> Result {
    try state.withLock { state in
      guard !state.isClosed else { throw DatabaseError(.closed, "the database is closed", path: path) }
      state.users += 1
    }
    defer { state.withLock { $0.users -= 1 } }
    return try body()
  }

  /// The regular file at `path`; nil when there is no such file.
  func file(at path: String) throws -> Held? {
    try state.withLock { state in
      // By its number first: another descriptor of the same file would have to be kept as well.
      var status = stat()
      guard lstat(path, &status) == 0 else {
        guard errno == ENOENT else { throw StorageError.system(errno, "can't read", path) }
        return nil
      }
      guard status.st_mode & S_IFMT == S_IFREG else { return nil }
      if let known = state.files[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] {
        return known
      }
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else {
        guard errno == ENOENT else { throw StorageError.system(errno, "can't open", path) }
        return nil
      }
      // It may be another file by now; whatever it is, it stays open.
      _ = fstat(descriptor, &status)
      let held = Held(descriptor)
      state.files[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] = held
      return held
    }
  }

  /// Gives up files that have been removed, whose room the disk keeps until then. Nobody can open them any more, so the
  /// locks on them keep nobody out.
  func giveUpRemoved() {
    state.withLock { state in state.files = state.files.filter { !$0.value.isRemoved } }
  }

  /// Closes the engine by `body`, and gives all files up. Throws `inUse` while somebody may keep some: an engine that is
  /// opened next would lose its locks when they are closed. Nothing has changed when it throws.
  func closing(_ body: () throws -> Void) throws {
    try state.withLock { state in
      guard state.users == 0 else { throw DatabaseError(.inUse, "the database is being checked", path: path) }
      state.isClosed = true
    }
    do { try body() } catch {
      state.withLock { $0.isClosed = false }
      throw error
    }
    state.withLock { $0.files = [:] }
  }
}
