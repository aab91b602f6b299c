import CWiredTiger
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The log's files and the disk that they are on.
///
/// WiredTiger gives up when it can't write its log, and version 3.2 tries without end to begin a new file of the log on
/// a full disk. So a commit is refused before that.
struct WiredLog {
  let directory: String
  /// The open directory: the system needn't look for its path before each commit. -1: it isn't open.
  var folder: Int32 = -1
  /// What must be left on the disk in any case: WiredTiger begins files of the log.
  private static let spareBytes = 1 << 20

  /// Throws `diskFull` unless there is room for a record of so many bytes, and `spare` for what WiredTiger has yet to
  /// write to the table. It writes whole pages: those that have changed come in a new place, and are in the cache.
  func reserve(_ bytes: Int, spare: Int, cacheBytes: Int, isBuffered: Bool) throws {
    var disk = statvfs()
    if (folder < 0 ? statvfs(directory, &disk) : fstatvfs(folder, &disk)) == 0 {
      let free = UInt64(disk.f_bavail) * UInt64(disk.f_frsize)
      var needed = Self.spareBytes + spare + bytes
      if free < needed + cacheBytes { needed += min(tableBytes, cacheBytes) }
      guard free >= needed else {
        throw StorageError(
          .diskFull, "the disk has \(free) bytes left, and the commit needs \(needed)", path: directory)
      }
    }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, limit.rlim_cur < rlim_t.max {
      let longest = 2 * tableBytes + spare + bytes
      guard UInt64(longest) <= UInt64(limit.rlim_cur) else {
        throw StorageError(
          .diskFull,
          "this process may write files of \(limit.rlim_cur) bytes, and the table may need \(longest)",
          path: directory)
      }
    }
    // The file takes all of a large record, and doesn't end at `log.file_max`.
    if !isBuffered, let path = try files().max() { try extend(path, by: bytes) }
  }

  private var tableBytes: Int { FileSize.of(directory + "/" + WiredSettings.tableFile) }

  /// The length of all its files.
  func bytes() throws -> Int { try files().reduce(0) { $0 + FileSize.of($1) } }

  private func files() throws -> [String] {
    try FileTree.names(in: directory).filter(Self.isFile).map { directory + "/" + $0 }
  }

  /// Whether the file of this name is one of a log.
  static func isFile(_ name: String) -> Bool { name.hasPrefix("WiredTigerLog.") }

  /// Takes room behind the end of a file. WiredTiger extends the files of its log in this way too.
  private func extend(_ path: String, by bytes: Int) throws {
    let file = Glibc.open(path, O_WRONLY | O_CLOEXEC)
    // The file may just have been removed.
    guard file >= 0 else { return }
    defer { Glibc.close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, fallocate(file, 0, status.st_size, off_t(bytes)) != 0 else { return }
    let error = errno
    guard error == ENOSPC || error == EFBIG || error == EDQUOT else { return }
    throw StorageError(
      .diskFull, "the log has no room for a commit of \(bytes) bytes", path: path, engineCode: Int(error),
      engineMessage: String(cString: strerror(error)))
  }
}
