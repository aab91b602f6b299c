import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension DatabaseFolder {
  /// Removes the database of that name with all its files, in one step: after a crash it is complete or gone.
  ///
  /// Throws `notFound` or `notADatabase` if there is none, and `inUse` if it is open in this or another
  /// process.
  public func delete(_ name: String) throws {
    let path = try self.path(of: name)
    try LockedDirectory(DatabaseDirectory(path)).remove()
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return }
    // The database was elsewhere.
    guard unlink(path) == 0 else { throw StorageError.system(errno, "can't remove the symbolic link", path) }
    try AtomicFile.syncDirectory(of: path)
  }

  /// Gives the database `name` the name `newName`, in one step: after a crash it has one of them.
  ///
  /// Throws `notFound` or `notADatabase` if there is none, `inUse` if it is open in this or another process,
  /// and `alreadyExists` if there is a database `newName` or another file with its file name.
  public func move(_ name: String, to newName: String) throws {
    let path = try self.path(of: name)
    let target = try directory(of: newName)
    let newPath = try self.path(of: newName)
    let locked = try LockedDirectory(DatabaseDirectory(path))
    try OpenDatabase.removeUnfinished(target)
    try locked.move(path, to: newPath)
  }
}
