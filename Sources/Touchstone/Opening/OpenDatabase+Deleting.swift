import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension OpenDatabase {
  /// Closes the database and removes its files. It fails if the database is open elsewhere, is being read, or
  /// can't be removed. Then it stays open.
  func delete() throws {
    guard !store.isInBatch else {
      throw DatabaseError(
        .inUse, "the database can't be removed inside one of its batches", path: directory.path)
    }
    try maintenance.withLock { _ in
      try OpenDatabase.paths.withLock(directory.path) { there in
        guard opens == 1 else {
          throw DatabaseError(
            .inUse, "the database is open more than once in this process; close the others first",
            path: directory.path)
        }
        guard access(directory.path, W_OK | X_OK) == 0 else {
          throw StorageError.system(errno, "can't remove the database", directory.path)
        }
        try lock.takeAlone(orShare: true)
        do { try closeFiles() } catch {
          lock.shareAgain()
          throw error
        }
        defer { lock.release() }
        there = nil
        try OpenDatabase.removeFiles(of: directory)
      }
    }
  }

  /// Removes a database that isn't open, in one step: after a crash it is complete or gone.
  static func delete(_ directory: DatabaseDirectory) throws {
    try paths.withLock(directory.path) { there in
      try checkNotReserved(directory)
      guard there == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: directory.path)
      }
      guard directory.exists else {
        throw DatabaseError(.notFound, "there is no database", path: directory.path)
      }
      guard directory.isComplete else {
        throw DatabaseError(.notADatabase, "the directory contains no database", path: directory.path)
      }
      let lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
      try lock.takeAlone(orShare: false)
      guard lock.isCurrent, directory.isComplete else {
        throw DatabaseError(.notFound, "there is no database", path: directory.path)
      }
      try removeFiles(of: directory)
    }
  }

  /// Removes the contents of a database's directory, and the directory. The caller holds the lock
  /// exclusively.
  private static func removeFiles(of directory: DatabaseDirectory) throws {
    // Without its description it isn't a database any more. The other files follow.
    guard unlink(directory.descriptionPath) == 0 else {
      throw StorageError.system(errno, "can't remove", directory.descriptionPath)
    }
    try AtomicFile.syncDirectory(of: directory.descriptionPath)
    try FileTree.removeContents(of: directory.path, but: "lock")
    // The lock is removed last: a process that waits for it, or comes now, finds an empty directory and may
    // make a database in it.
    unlink(directory.file("lock"))
    guard rmdir(directory.path) == 0 || errno == ENOTEMPTY || errno == ENOENT else {
      throw StorageError.system(errno, "can't remove", directory.path)
    }
    Log.write(.info, .database, directory.path, "removed")
  }
}
