import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A database in the making: a directory without a `database.json` inside a partial one, which becomes a database, and gets
/// its name, in one step.
struct UnfinishedDatabase {
  /// Where its files are made.
  let directory: DatabaseDirectory
  /// What its `database.json` will say.
  let description: DatabaseDirectory.Description
  private let partial: PartialDirectory

  /// Makes the directory, empty.
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

  /// Throws `alreadyExists` unless the place of a new database is free.
  static func checkNothing(at target: DatabaseDirectory) throws {
    guard !target.exists else {
      throw DatabaseError(.alreadyExists, "there is something already", path: target.path)
    }
  }

  /// Completes it, its files being closed, and puts it in its place. Throws `alreadyExists`.
  func publish(as target: DatabaseDirectory) throws {
    // For those who open it where nothing can be made.
    _ = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
    try directory.write(description)
    try partial.publish(directory.path, as: target.path)
  }
}
