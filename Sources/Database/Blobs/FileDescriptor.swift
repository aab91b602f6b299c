import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// An open file of a blob. Reads and writes are complete, and errors name the path.
final class FileDescriptor: BlobBytes, @unchecked Sendable {
  let path: String
  private let number: Int32

  init(_ path: String, _ flags: Int32, _ permissions: mode_t = 0, follows: Bool = false) throws {
    self.path = path
    number = Glibc.open(path, flags | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW), permissions)
    guard number >= 0 else { throw StorageError.system(errno, "can't open the file of a blob", path) }
  }

  deinit { close(number) }

  /// Sets who may use the file.
  func set(_ access: FileAccess) throws { try access.apply(to: number, path: path) }

  /// Returns the length of the file in bytes. Throws `damaged` when it isn't a regular file.
  func length() throws -> UInt64 {
    var status = stat()
    guard fstat(number, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw StorageError(.damaged, "a blob should be here, but this isn't a regular file", path: path)
    }
    return UInt64(status.st_size)
  }

  /// Reads until `buffer` is full or the file ends. Returns the number of bytes.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int {
    var done = 0
    while done < buffer.count {
      let count = pread(number, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError.system(errno, "can't read", path) }
      guard count > 0 else { break }
      done += count
    }
    return done
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
    guard FileWriting.writeAll(bytes, at: Int(offset), to: number) else {
      throw StorageError.system(errno, "can't write a blob", path)
    }
  }

  func sync() throws {
    guard fsync(number) == 0 else { throw StorageError.system(errno, "can't sync a blob", path) }
  }
}
