import CLMDB
import Glibc
import Storage

extension StorageError {
  /// Makes a storage error from a result of LMDB or an `errno` that LMDB passed on. `what` says what failed.
  @inline(never)
  package static func lmdb(_ result: Int32, _ what: String, path: String) -> StorageError {
    let code: Code
    var found: String?
    switch result {
    case MDB_KEYEXIST: code = .alreadyExists
    case MDB_PAGE_NOTFOUND, MDB_CORRUPTED: code = .damaged
    case MDB_PANIC:
      code = .ioError
      found = "an earlier commit could not write the meta page; close the database and open it again"
    case MDB_VERSION_MISMATCH: code = .unsupportedVersion
    case MDB_INVALID: code = .notADatabase
    case MDB_MAP_FULL: code = .mapFull
    case MDB_DBS_FULL: code = .tooManyKeyspaces
    case MDB_READERS_FULL: code = .tooManyReaders
    case MDB_TXN_FULL: code = .transactionTooLarge
    case MDB_BAD_DBI: code = .noSuchKeyspace
    case MDB_BAD_VALSIZE: code = .invalidKey
    case MDB_MAP_RESIZED:
      code = .mapFull
      found = "another process grew the file past this process's map; end the open snapshots and try again"
    case ENOSPC, EDQUOT, EFBIG: code = .diskFull
    case EIO: code = .ioError
    case EACCES, EPERM: code = .permissionDenied
    case EROFS: code = .readOnly
    case ENOENT: code = .notFound
    case EEXIST: code = .alreadyExists
    case EBUSY, EAGAIN: code = .inUse
    case EINVAL: code = .invalidArgument
    default: code = .engineFailure
    }
    return StorageError(
      code, found.map { "\(what): \($0)" } ?? what, path: path, engineCode: Int(result),
      engineMessage: String(cString: mdb_strerror(result)))
  }
}

extension FilePath {
  /// Returns whether the disk or the process's limit of a file's size leaves no room. Used for write errors
  /// that don't say so: LMDB reports a short write as EIO.
  static func isFull(_ path: String) -> Bool {
    var limit = rlimit()
    var status = stat()
    if getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, stat(path, &status) == 0,
      limit.rlim_cur != rlim_t.max, UInt64(status.st_size) + 65_536 >= UInt64(limit.rlim_cur)
    {
      return true
    }
    var system = statvfs()
    return statvfs(path, &system) == 0 && UInt64(system.f_bavail) * UInt64(system.f_frsize) < 65_536
  }
}
