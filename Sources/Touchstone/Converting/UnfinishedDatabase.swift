import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A database that is being made: a directory without `database.json` inside a `PartialDirectory`. `publish`
/// makes it a database and gives it its name, in one step.
struct UnfinishedDatabase {
  /// The directory of the new files.
  let directory: DatabaseDirectory
  /// The future content of `database.json`.
  let description: DatabaseDirectory.Description
  private let partial: PartialDirectory

  /// Makes the directory. It is empty.
  init(in partial: PartialDirectory, _ type: EngineType) throws {
    self.partial = partial
    directory = try DatabaseDirectory(partial.path + "/new" + DatabaseDirectory.suffix)
    guard mkdir(directory.path, 0o755) == 0 else {
      throw StorageError.system(errno, "can't make the directory", directory.path)
    }
    description = DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)",
      key: type.encrypts ? DatabaseDirectory.key : nil)
  }

  /// Throws `alreadyExists` if there is something at `target`.
  static func checkNothing(at target: DatabaseDirectory) throws {
    guard !target.exists else {
      throw DatabaseError(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: target.path)
    }
  }

  /// Writes the description and moves the database to its place. Its files must be closed. Throws
  /// `alreadyExists`.
  func publish(as target: DatabaseDirectory) throws {
    // A later open may not be able to make the lock, if it is for reading only.
    _ = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
    try directory.write(description)
    try partial.publish(directory.path, as: target.path)
  }
}
