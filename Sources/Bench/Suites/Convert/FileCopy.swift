import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A plain file copy: the limit for operations that write the same number of bytes.
enum FileCopy {
  /// Reads and writes one megabyte at a time, then syncs. Skips anything that isn't a regular file.
  static func copy(_ source: String, to target: String) throws {
    let from = open(source, O_RDONLY | O_CLOEXEC)
    guard from >= 0 else { throw StorageError.system(errno, "can't open", source) }
    defer { close(from) }
    var status = stat()
    guard fstat(from, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    let to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard to >= 0 else { throw StorageError.system(errno, "can't make", target) }
    defer { close(to) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
    defer { buffer.deallocate() }
    while true {
      let count = read(from, buffer.baseAddress, buffer.count)
      guard count >= 0 else { throw StorageError.system(errno, "can't read", source) }
      guard count > 0 else { break }
      guard write(to, buffer.baseAddress, count) == count else {
        throw StorageError.system(errno, "can't write", target)
      }
    }
    guard fsync(to) == 0 else { throw StorageError.system(errno, "can't sync", target) }
  }
}
