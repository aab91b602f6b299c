#if canImport(Glibc)
  import Glibc
#endif

/// Reads and atomically replaces small files, through `FileReplacement`. A reader, or a restart after a crash, finds
/// either the old bytes or the new ones.
///
/// A crash can leave the temporary file behind, and nothing else.
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
  /// A new file has `permissions`, without the bits of the umask: only the owner can read it, unless they say otherwise.
  /// An existing file keeps its owner, group and permissions. Throws a `StorageError` that names `path`, and leaves
  /// no temporary file behind.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, replacement: Replacement = .allowed,
    permissions: UInt32 = 0o600
  ) throws {
    let file = try FileReplacement(path, permissions: permissions, replacement: replacement)
    try Array(bytes).withUnsafeBytes { try file.write($0) }
    try file.commit()
  }

  /// Returns the bytes of the file at `path`. Throws `invalidArgument` if it has more than `limit` bytes, and
  /// `notFound` if it doesn't exist. A device or a pipe is refused with `invalidArgument`, unless `mayBePipe`: then this waits for its end.
  package static func read(_ path: String, limit: Int, mayBePipe: Bool = false) throws -> [UInt8] {
    try StorageError.checkPath(path)
    // To open a pipe would wait for who writes to it.
    let file = open(path, O_RDONLY | O_CLOEXEC | (mayBePipe ? 0 : O_NONBLOCK))
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    guard status.st_mode & S_IFMT != S_IFDIR else { throw StorageError.system(EISDIR, "can't read", path) }
    guard mayBePipe || status.st_mode & S_IFMT == S_IFREG else {
      throw StorageError(.invalidArgument, "can't read: this isn't a regular file", path: path)
    }
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

  /// The directory of the file at `path`.
  static func directoryPath(of path: String) -> String {
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
