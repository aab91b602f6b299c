import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension StorageError {
  /// Makes a storage error from an error of the library. `tried` says what was tried, for people.
  init(_ error: SQLiteError, _ tried: String, path: String) {
    func isNoSpace() -> Bool {
      [ENOSPC, EDQUOT, EFBIG].contains(error.systemError) || Self.isFull(path)
    }
    // The library's number may be that of a later call, such as one that looked for a journal.
    let isOfOther =
      error.code == SQLITE_CANTOPEN && error.systemError == ENOENT && SQLiteFile.size(path) != nil
    let systemError = isOfOther ? 0 : error.systemError
    let (code, found): (Code, String) =
      switch error.code {
      case SQLITE_FULL: (.diskFull, "the disk is full, or the file size limit is reached")
      case SQLITE_IOERR where isNoSpace(): (.diskFull, "the disk is full, or the file size limit is reached")
      case SQLITE_IOERR, SQLITE_NOLFS: (.ioError, "a read or a write failed in the operating system")
      case SQLITE_BUSY, SQLITE_PROTOCOL, SQLITE_LOCKED: (.busy, "another process has locked the file")
      case SQLITE_CORRUPT: (.damaged, "the file is damaged")
      case SQLITE_NOTADB: (.notADatabase, "the file isn't a database of this engine")
      case SQLITE_READONLY: (.readOnly, "the file can't be written")
      case SQLITE_PERM, SQLITE_AUTH: (.permissionDenied, "there is no permission")
      case SQLITE_TOOBIG: (.valueTooLarge, "the value is too large")
      case SQLITE_CANTOPEN:
        switch systemError {
        case ENOENT, ENOTDIR: (.notFound, "there is no such file or directory")
        case EACCES, EPERM, EROFS: (.permissionDenied, "there is no permission")
        case EMFILE, ENFILE: (.tooManyReaders, "the process has too many open files")
        case let system where [ENOSPC, EDQUOT].contains(system):
          (.diskFull, "the disk is full, or the file size limit is reached")
        default: (.ioError, "the file can't be opened")
        }
      default: (.engineFailure, "the library failed")
      }
    var message = "\(tried): \(found)"
    if systemError != 0, let reason = strerror(systemError) {
      message += " (\(String(cString: reason)))"
    }
    if let statement = error.statement { message += ", at “\(statement)”" }
    self.init(
      code, message, path: path, engineCode: Int(error.extendedCode), engineMessage: error.message)
  }
}

extension StorageError {
  /// Returns whether the file system of `path` is full, or the process's limit of a file's size is reached.
  ///
  /// Used for failures whose system error number the library has lost.
  private static func isFull(_ path: String) -> Bool {
    var limit = rlimit()
    let sizes = [path, path + "-wal", path + "-shm"].map { SQLiteFile.size($0) ?? 0 }
    if getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
      // Leaves room for one more write.
      UInt(sizes.max() ?? 0) + 65_536 >= limit.rlim_cur
    {
      return true
    }
    var system = statvfs()
    return statvfs(path, &system) == 0 && system.f_bavail == 0
  }
}

/// Runs `body` and turns an error of the library into a storage error. The error says what was tried on which
/// file.
@inline(__always)
func storing<Result>(_ tried: @autoclosure () -> String, _ path: String, _ body: () throws -> Result) throws
  -> Result
{
  do {
    return try body()
  } catch let error as SQLiteError {
    throw StorageError(error, tried(), path: path)
  }
}
