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
        .inUse, "the database can't be removed inside one of its batches", path: path)
    }
    try maintenance.withLock { _ in
      try OpenDatabase.paths.withLock(path) { there in
        guard opens == 1 else {
          throw DatabaseError(
            .inUse, "the database is open more than once in this process; close the others first",
            path: path)
        }
        try home.checkRemovable()
        try home.takeAlone()
        do { try closeFiles() } catch {
          home.shareAgain()
          throw error
        }
        defer { home.release() }
        there = nil
        try home.remove()
      }
    }
  }

  /// Removes a database that isn't open, in one step: after a crash it is complete or gone.
  static func delete(_ directory: DatabaseDirectory) throws {
    try paths.withLock(directory.path) { there in
      try checkNotReserved(directory.path)
      guard there == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: directory.path)
      }
      guard directory.isComplete else { throw directory.missing }
      let lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
      try lock.takeAlone(orShare: false)
      guard lock.isCurrent, directory.isComplete else {
        throw DatabaseError(.notFound, "there is no database", path: directory.path)
      }
      try removeFiles(of: directory)
    }
  }

  /// Removes what an interrupted creation or removal of a database left at a path where there is none. It
  /// leaves everything else. Throws `inUse` if another process is making a database there.
  static func removeUnfinished(_ directory: DatabaseDirectory) throws {
    try paths.withLock(directory.path) { there in
      func isUnfinished() -> Bool { directory.exists && !directory.isComplete }
      guard there == nil, isUnfinished(),
        (try? directory.checkIsDirectory()) != nil, (try? directory.checkIsUnfinished()) != nil
      else { return }
      try checkNotReserved(directory.path)
      let lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
      do { try lock.takeAlone(seconds: 10, unless: { !isUnfinished() }, orShare: false) } catch let error
        as DatabaseError where error.code == .inUse && !isUnfinished()
      {
        return
      }
      guard lock.isCurrent, isUnfinished() else { return }
      try removeAll(of: directory)
    }
  }

  /// Removes the files that an interrupted operation left in a database's directory, unless the database is
  /// open.
  static func removeLeftovers(of directory: DatabaseDirectory) throws {
    try paths.withLock(directory.path) { there in
      guard there == nil, directory.isComplete else { return }
      try checkNotReserved(directory.path)
      let lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
      try lock.takeAlone(orShare: false)
      guard lock.isCurrent, directory.isComplete else { return }
      try directory.removeLeftovers(directory.readDescription())
    }
  }

  /// Removes the contents of a database's directory, and the directory. The caller holds the lock
  /// exclusively.
  static func removeFiles(of directory: DatabaseDirectory) throws {
    // Without its description it isn't a database any more. The other files follow.
    guard unlink(directory.descriptionPath) == 0 else {
      throw StorageError.system(errno, "can't remove", directory.descriptionPath)
    }
    try AtomicFile.syncDirectory(of: directory.descriptionPath)
    try removeAll(of: directory)
  }

  /// Removes what a creation has made before it failed. The caller holds the lock exclusively.
  static func removeUnfinishedFiles(of directory: DatabaseDirectory, keepsDirectory: Bool) throws {
    guard unlink(directory.descriptionPath) == 0 || errno == ENOENT else {
      throw StorageError.system(errno, "can't remove", directory.descriptionPath)
    }
    try removeAll(of: directory, keepsDirectory: keepsDirectory)
  }

  private static func removeAll(of directory: DatabaseDirectory, keepsDirectory: Bool = false) throws {
    try FileTree.removeContents(of: directory.path, but: "lock")
    // The lock is removed last: a process that waits for it, or comes now, finds an empty directory and may
    // make a database in it.
    unlink(directory.file("lock"))
    guard !keepsDirectory else { return }
    guard rmdir(directory.path) == 0 || errno == ENOTEMPTY || errno == ENOENT else {
      throw StorageError.system(errno, "can't remove", directory.path)
    }
    Log.write(.info, .database, directory.path, "removed")
  }
}
