import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Engine files that are open for reading beside the engine. They stay open until the engine is closed or
/// they are removed. Closing any descriptor of a file drops all fcntl locks that the process has on it,
/// including the engine's.
final class HeldFiles: Sendable {
  /// A file that stays open until this object is released.
  final class Held: Sendable {
    let descriptor: Int32

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Whether the file has no name any more.
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
    /// The number of calls of `using` in progress.
    var users = 0
    var isClosed = false
  }
  private let state = Lock(State())
  /// The database's path, for errors.
  private let path: String

  init(of path: String) { self.path = path }

  /// Calls `body`, which may use held files until it returns. Throws `closed` if the engine is closed or
  /// closing.
  func using<Result>(_ body: () throws -> Result) throws -> Result {
    try state.withLock { state in
      guard !state.isClosed else { throw DatabaseError(.closed, "the database is closed", path: path) }
      state.users += 1
    }
    defer { state.withLock { $0.users -= 1 } }
    return try body()
  }

  /// The regular file at `path`; nil if there is none.
  func file(at path: String) throws -> Held? {
    try state.withLock { state in
      // Looks the file up by its inode first: a second descriptor of the same file would have to stay open as
      // well.
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
      // The file may have been replaced since. This one stays open in any case.
      _ = fstat(descriptor, &status)
      let held = Held(descriptor)
      state.files[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] = held
      return held
    }
  }

  /// Closes files that have been removed, because the disk keeps their space until then. Their locks aren't
  /// needed: no one can open the files any more.
  func giveUpRemoved() {
    state.withLock { state in state.files = state.files.filter { !$0.value.isRemoved } }
  }

  /// Closes the engine by `body`, then closes all files. Throws `inUse`, and changes nothing, during a call
  /// of `using`: an engine opened next would lose its locks when that call's files are closed.
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
