import Storage

/// The directory of a complete database that is locked against every open. The lock ends with this object.
final class LockedDirectory {
  let directory: DatabaseDirectory
  private let lock: DirectoryLock

  /// Takes the database's lock exclusively. It waits up to `waitingSeconds` for others, and stops waiting
  /// when `isDone` returns true.
  ///
  /// Throws `inUse` if the database is open, and `notFound` or `notADatabase` if there is none.
  init(
    _ directory: DatabaseDirectory, waitingSeconds: Double = 0, unless isDone: () -> Bool = { false }
  ) throws {
    self.directory = directory
    guard directory.isComplete else { throw directory.missing }
    try OpenDatabase.reserve(directory.path)
    do {
      lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
      try lock.takeAlone(seconds: waitingSeconds, unless: isDone, orShare: false)
      guard lock.isCurrent, directory.isComplete else {
        throw DatabaseError(.notFound, "there is no database", path: directory.path)
      }
    } catch {
      OpenDatabase.unreserve(directory.path)
      // Another process removed or moved the directory before its lock was taken.
      guard !directory.exists else { throw error }
      throw DatabaseError(.notFound, "there is no database", path: directory.path)
    }
  }

  deinit {
    lock.release()
    OpenDatabase.unreserve(directory.path)
  }
}
