#if canImport(Glibc)
  import Glibc
#endif

/// Reads and atomically replaces small files. A reader, or a restart after a crash, finds either the old
/// bytes or the new ones.
///
/// A write creates a temporary file beside the target (`NAME.new-` and eight hex digits) and syncs it. It
/// then renames the file to the target and syncs the directory. A crash can leave the temporary file behind,
/// and nothing else.
package enum AtomicFile {
  /// Whether a write may replace an existing target.
  package enum Replacement: Sendable {
    /// Replaces an existing target.
    case allowed
    /// Throws `alreadyExists` if the target exists.
    case refused
  }

  /// Writes `bytes` to the file at `path`. The file survives a power loss once this returns.
  ///
  /// Only the owner can read the file, unless `permissions` says otherwise. Throws a `StorageError` that
  /// names `path`, and leaves no temporary file behind.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, replacement: Replacement = .allowed,
    permissions: UInt32 = 0o600
  ) throws {
    let temporary = temporaryPath(for: path)
    var isMoved = false
    defer { if !isMoved { unlink(temporary) } }
    try writeNew(Array(bytes), to: temporary, target: path, permissions: permissions)
    switch replacement {
    case .allowed:
      guard rename(temporary, path) == 0 else { throw StorageError.system(errno, "can't replace", path) }
      isMoved = true
    case .refused:
      let failure = NewFileName.take(path, for: temporary)
      guard failure == 0 else { throw StorageError.system(failure, "can't make", path) }
      isMoved = true
    }
    try syncDirectory(of: path)
  }

  /// Returns the bytes of the file at `path`. Throws `invalidArgument` if it has more than `limit` bytes, and
  /// `notFound` if it doesn't exist.
  package static func read(_ path: String, limit: Int) throws -> [UInt8] {
    try StorageError.checkPath(path)
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    guard status.st_mode & S_IFMT != S_IFDIR else { throw StorageError.system(EISDIR, "can't read", path) }
    // Reading one byte past the limit detects a file that is too long. Reading into the result leaves no
    // other copy of the bytes, which may be a key.
    return try [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
      while count <= limit {
        let result = Glibc.read(file, buffer.baseAddress! + count, buffer.count - count)
        if result < 0 && errno == EINTR { continue }
        guard result >= 0 else { throw StorageError.system(errno, "can't read", path) }
        guard result > 0 else { return }
        count += result
      }
      throw StorageError(.invalidArgument, "the file has more than the allowed \(limit) bytes", path: path)
    }
  }

  /// Syncs the directory of `path`. Files created, renamed or removed in it then survive a power loss.
  package static func syncDirectory(of path: String) throws {
    let directory = directoryPath(of: path)
    let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open the directory", directory) }
    defer { close(file) }
    // Some file systems can't sync a directory and return EINVAL. Nothing more can be done there.
    guard fsync(file) == 0 || errno == EINVAL else {
      throw StorageError.system(errno, "can't sync the directory", directory)
    }
  }

  private static func writeNew(
    _ bytes: [UInt8], to path: String, target: String, permissions: UInt32
  ) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(permissions))
    guard file >= 0 else { throw StorageError.system(errno, "can't write", target) }
    defer { close(file) }
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress! + written, $0.count - written) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw StorageError.system(errno, "can't write", target) }
      written += count
    }
    guard fsync(file) == 0 else { throw StorageError.system(errno, "can't sync", target) }
  }

  private static func temporaryPath(for path: String) -> String {
    let digits = String(UInt32.random(in: 0x1000_0000...UInt32.max), radix: 16)
    return "\(path).new-\(digits)"
  }

  private static func directoryPath(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

extension StorageError {
  /// Throws `invalidArgument` if a path contains a zero byte. The system would end the path there and use another file.
  package static func checkPath(_ path: String) throws {
    guard !path.utf8.contains(0) else {
      throw StorageError(.invalidArgument, "the path contains a zero byte", path: path)
    }
  }

  /// Makes an error from an error number of the operating system. `message` says what was tried on the file
  /// at `path`.
  public static func system(_ number: Int32, _ message: String, _ path: String) -> StorageError {
    let code: Code =
      switch number {
      case ENOENT, ENOTDIR: .notFound
      case EEXIST, ENOTEMPTY: .alreadyExists
      case EACCES, EPERM, EROFS: .permissionDenied
      case ENOSPC, EDQUOT, EFBIG: .diskFull
      case EISDIR, ENAMETOOLONG, EINVAL, ELOOP: .invalidArgument
      case EBUSY, ETXTBSY: .inUse
      default: .ioError
      }
    return StorageError(
      code, message, path: path, engineCode: Int(number), engineMessage: String(cString: strerror(number)))
  }
}
