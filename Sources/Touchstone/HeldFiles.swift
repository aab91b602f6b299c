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
  private let files = Lock<[File: Held]>([:])

  /// The regular file at `path`; nil when there is no such file.
  func file(at path: String) throws -> Held? {
    try files.withLock { files in
      // By its number first: another descriptor of the same file would have to be kept as well.
      var status = stat()
      guard lstat(path, &status) == 0 else {
        guard errno == ENOENT else { throw StorageError.system(errno, "can't read", path) }
        return nil
      }
      guard status.st_mode & S_IFMT == S_IFREG else { return nil }
      if let known = files[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] {
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
      files[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] = held
      return held
    }
  }

  /// Gives up files that have been removed, whose room the disk keeps until then. Nobody can open them any more, so the
  /// locks on them keep nobody out.
  func giveUpRemoved() {
    files.withLock { files in files = files.filter { !$0.value.isRemoved } }
  }

  /// Gives all up, when the engine is closed.
  func giveUpAll() { files.withLock { $0 = [:] } }
}
