import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Files of an engine that are open for reading beside the engine, and stay so until it is closed: closing any
/// descriptor of a file drops all locks (fcntl) that the process has on it, and with them those of the engine.
final class HeldFiles: Sendable {
  private struct File: Hashable {
    let device: UInt64
    let number: UInt64
  }
  private let descriptors = Lock<[File: Int32]>([:])

  deinit { closeAll() }

  /// A descriptor of the regular file at `path`, which isn't to be closed; nil when there is no such file.
  func descriptor(of path: String) throws -> Int32? {
    try descriptors.withLock { descriptors in
      // By its number first: another descriptor of the same file would have to be kept as well.
      var status = stat()
      guard lstat(path, &status) == 0 else {
        guard errno == ENOENT else { throw StorageError.system(errno, "can't read", path) }
        return nil
      }
      guard status.st_mode & S_IFMT == S_IFREG else { return nil }
      if let known = descriptors[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] {
        return known
      }
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else {
        guard errno == ENOENT else { throw StorageError.system(errno, "can't open", path) }
        return nil
      }
      // It may be another file by now; whatever it is, it stays open.
      _ = fstat(descriptor, &status)
      descriptors[File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))] = descriptor
      return descriptor
    }
  }

  /// Closes them, when the engine is closed.
  func closeAll() {
    descriptors.withLock { descriptors in
      for descriptor in descriptors.values { close(descriptor) }
      descriptors = [:]
    }
  }
}
