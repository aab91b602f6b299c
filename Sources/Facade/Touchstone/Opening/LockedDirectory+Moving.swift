import CFileSystem
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension LockedDirectory {
  /// Removes the database in one step: after a crash it is complete or gone. Its files are first moved into a
  /// partial directory, which the next use of the folder removes if this process can't.
  func remove() throws {
    let partial = try PartialDirectory(beside: directory.path)
    try withExtendedLifetime(partial) {
      guard rename(directory.path, partial.path + "/old" + DatabaseDirectory.suffix) == 0 else {
        throw StorageError.system(errno, "can't remove the database", directory.path)
      }
      try AtomicFile.syncDirectory(of: directory.path)
    }
  }

  /// Gives the database another name in one step. `path` is its present name, which may be a symbolic link.
  /// Throws `alreadyExists` if there is something at `target`.
  func move(_ path: String, to target: String) throws {
    guard Self.renameExclusively(path, target) == 0 else {
      guard [EEXIST, ENOTEMPTY, ENOTDIR, EISDIR].contains(errno) else {
        throw StorageError.system(errno, "can't move the database to '\(target)'", path)
      }
      throw DatabaseError(
        .alreadyExists, "the database can't be moved: a file or directory with the new name exists",
        path: target)
    }
    try AtomicFile.syncDirectory(of: target)
  }

  /// Renames a file or directory if nothing has the new name. Returns 0, or -1 with `errno`.
  private static func renameExclusively(_ path: String, _ target: String) -> Int32 {
    if renameat2(AT_FDCWD, path, AT_FDCWD, target, UInt32(RENAME_NOREPLACE)) == 0 { return 0 }
    guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(errno) else { return -1 }
    // Some file systems can't do that in one step.
    var status = stat()
    guard lstat(target, &status) != 0 else {
      errno = EEXIST
      return -1
    }
    return rename(path, target)
  }
}
