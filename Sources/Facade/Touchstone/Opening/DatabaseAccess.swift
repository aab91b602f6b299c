import Storage
import Upgrade

#if canImport(Glibc)
  import Glibc
#endif

/// Who may use the files of a database (docs/permissions.md). Files that take the place of others get their access.
struct DatabaseAccess {
  /// The directory of the database, and that of its blobs.
  let directory: FileAccess
  /// The data, its sidecar files, `database.json` and `lock`.
  let data: FileAccess
  /// The file with the wrapped data key.
  let key: FileAccess

  /// The access of a database; nil if it can't be asked for.
  init?(of database: DatabaseDirectory) {
    let description = try? database.readDescription()
    // A damaged description names no file.
    let file = description.map { database.file($0.file) } ?? database.descriptionPath
    let key = description.flatMap { database.keyPath($0) }.flatMap { FileAccess(of: $0) }
    guard let directory = FileAccess(of: database.path),
      let data = FileAccess(of: file) ?? FileAccess(of: database.descriptionPath)
    else { return nil }
    self.init(directory: directory, data: data, key: key)
  }

  /// The access of a file that holds a database, such as a zip file.
  init?(ofFile path: String) {
    guard let file = FileAccess(of: path) else { return nil }
    // Who can read the file can list the directory.
    let directory = file.with(mode: file.mode & 0o666 | file.mode >> 2 & 0o111)
    self.init(directory: directory, data: file, key: nil)
  }

  /// The access of a Couchbase Lite 1.x database.
  init?(of source: SourceFiles) {
    let main = source.mainFiles.first ?? source.file
    guard main != source.path, let file = FileAccess(of: main),
      let directory = FileAccess(of: source.path)
    else {
      self.init(ofFile: main)
      return
    }
    self.init(directory: directory, data: file, key: nil)
  }

  private init(directory: FileAccess, data: FileAccess, key: FileAccess?) {
    self.directory = directory
    // The engine's file may be a directory.
    self.data = data.mode & 0o111 == 0 ? data : data.with(mode: data.mode & 0o666)
    // A key file can be searched for passphrases, so it is the owner's alone, unless the group shares the database.
    self.key = key ?? data.with(mode: data.mode & 0o020 == 0 ? 0o600 : 0o660)
  }

  /// Gives the files in the directory of a database this access. The directory itself stays as it is.
  func apply(to database: DatabaseDirectory, isEncrypted: Bool) throws {
    for name in try database.contents() {
      let path = database.file(name)
      if DatabaseDirectory.isBlobDirectory(name) {
        let blob = (isEncrypted ? key : data).limited(to: 0o444)
        for name in try DatabaseDirectory.contents(of: path) { try blob.apply(to: path + "/" + name) }
        try directory.apply(to: path)
      } else {
        try (DatabaseDirectory.isKeyFile(name) ? key : data).applyToFileOrDirectory(path)
      }
    }
  }

  /// Takes the bits that this access doesn't have from a database that was just made, with its directory. The owner keeps
  /// his.
  func limit(_ database: DatabaseDirectory) throws {
    for name in try database.contents() {
      let path = database.file(name)
      if DatabaseDirectory.isBlobDirectory(name) {
        for name in try DatabaseDirectory.contents(of: path) { try Self.limit(path + "/" + name, to: data) }
        try Self.limit(path, to: directory)
      } else {
        try Self.limit(path, to: data)
      }
    }
    try Self.limit(database.path, to: directory)
  }

  private static func limit(_ path: String, to file: FileAccess) throws {
    guard let found = FileAccess(of: path) else { return }
    let model = FileAccess.isDirectory(path) ? file.ofDirectory : file
    let mode = found.mode & (model.mode | 0o3700)
    guard mode != found.mode else { return }
    guard chmod(path, mode_t(mode)) == 0 else {
      throw StorageError.system(errno, "can't set the permissions of", path)
    }
  }

  /// Returns the access of new blobs: that of the data, or of the key of an encrypted database.
  static func ofBlobs(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description
  ) -> @Sendable () -> FileAccess? {
    let model = Lock(directory.file(description.key ?? description.file))
    return {
      model.withLock { path in
        if let access = FileAccess(of: path) { return access }
        // A compaction has made a new file.
        guard let description = try? directory.readDescription() else { return nil }
        path = directory.file(description.key ?? description.file)
        return FileAccess(of: path)
      }
    }
  }

  /// Makes the lock file of a database usable for whoever may use `database.json`. If that can't be done, the lock file
  /// still works for this process.
  static func shareLock(_ descriptor: Int32, _ path: String, in directory: String) {
    try? FileAccess(of: directory + "/" + DatabaseDirectory.descriptionName)?.apply(
      to: descriptor, path: path)
  }
}
