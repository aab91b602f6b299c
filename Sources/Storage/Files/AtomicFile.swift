#if canImport(Glibc)
  import Glibc
#endif

/// Small files that are replaced whole: a reader, and a crash at any moment, finds the old bytes or the new
/// ones, never a part.
///
/// Writing makes a temporary file beside the target (`NAME.new-` and eight hex digits), syncs it, moves it to
/// the target's name in one step and syncs the directory. A crash can leave the temporary file behind, never
/// another trace.
public enum AtomicFile {
  /// Whether the target may be there already.
  public enum Replacement: Sendable {
    case allowed
    /// Throws `alreadyExists` when there is a file of that name.
    case refused
  }

  /// Writes `bytes` to a file at `path`, readable by its owner alone unless `permissions` says otherwise.
  /// When this returns, the file survives a power loss.
  ///
  /// Throws a `StorageError` that names `path`; there is no temporary file left then.
  public static func write(
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

  /// The bytes of the file at `path`, at most `limit` of them: a longer file throws `invalidArgument`,
  /// none throws `notFound`.
  public static func read(_ path: String, limit: Int) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    guard status.st_mode & S_IFMT != S_IFDIR else { throw StorageError.system(EISDIR, "can't read", path) }
    // One byte more than allowed tells a file that is too long. Read in place: no chunk or growth leaves a copy
    // of what may be a key.
    return try [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
      while count <= limit {
        let result = Glibc.read(file, buffer.baseAddress! + count, buffer.count - count)
        if result < 0 && errno == EINTR { continue }
        guard result >= 0 else { throw StorageError.system(errno, "can't read", path) }
        guard result > 0 else { return }
        count += result
      }
      throw StorageError(.invalidArgument, "the file has more than \(limit) bytes", path: path)
    }
  }

  /// Makes what happened to the names in the directory of `path` (a file made, moved or removed) survive a
  /// power loss.
  public static func syncDirectory(of path: String) throws {
    let directory = directoryPath(of: path)
    let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open the directory", directory) }
    defer { close(file) }
    // Some file systems can't sync a directory and say so with EINVAL; there is nothing more to do on them.
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
  /// What the operating system's error number says, of what was tried on which file.
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
