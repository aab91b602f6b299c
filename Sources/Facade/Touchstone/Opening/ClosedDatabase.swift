import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A database that is locked against every open, for operations that replace its files.
final class ClosedDatabase {
  let directory: DatabaseDirectory
  /// What the directory says. `publish` changes it.
  var description: DatabaseDirectory.Description
  private let locked: LockedDirectory

  /// Takes the database's lock exclusively, and removes what an interrupted operation left. It waits up to
  /// `waitingSeconds` for others, and stops waiting when `isDone` returns true.
  ///
  /// Throws `inUse` if the database is open, and `notFound` or `notADatabase` if there is none.
  init(
    _ directory: DatabaseDirectory, waitingSeconds: Double = 0, unless isDone: () -> Bool = { false }
  ) throws {
    self.directory = directory
    locked = try LockedDirectory(directory, waitingSeconds: waitingSeconds, unless: isDone)
    description = try directory.readDescription()
    try directory.removeLeftovers(description)
  }
}
