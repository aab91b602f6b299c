import Documents
import Encryption
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
  /// What its source lacks, if that is a database of this library.
  var report = ConversionReport()
  private let partial: PartialDirectory
  private let type: EngineType

  /// Makes the directory. It is empty.
  init(in partial: PartialDirectory, _ type: EngineType) throws {
    self.partial = partial
    self.type = type
    directory = try DatabaseDirectory(Self.path(in: partial))
    guard mkdir(directory.path, 0o755) == 0 else {
      throw StorageError.system(errno, "can't make the directory", directory.path)
    }
    description = Self.description(type)
  }

  /// Takes what an interrupted operation has left in the partial directory, or makes the directory. What can't be of this
  /// engine is removed.
  init(resumingIn partial: PartialDirectory, _ type: EngineType) throws {
    let left = try DatabaseDirectory(Self.path(in: partial))
    if left.exists, !Self.fits(left, type) { try Self.remove(in: partial) }
    if left.exists {
      self.init(directory: left, partial, type)
    } else {
      try self.init(in: partial, type)
    }
  }

  private init(directory: DatabaseDirectory, _ partial: PartialDirectory, _ type: EngineType) {
    self.partial = partial
    self.type = type
    self.directory = directory
    description = Self.description(type)
  }

  private static func description(_ type: EngineType) -> DatabaseDirectory.Description {
    DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)",
      key: type.encrypts ? DatabaseDirectory.key : nil)
  }

  /// Whether a directory has files of this engine only, and a key if the engine encrypts.
  private static func fits(_ directory: DatabaseDirectory, _ type: EngineType) -> Bool {
    let description = description(type)
    guard let names = try? directory.contents(), (try? directory.checkIsUnfinished()) != nil else {
      return false
    }
    let isOfEngine = names.allSatisfy { !$0.hasPrefix("data-") || $0.hasPrefix(description.file) }
    return isOfEngine && names.contains(DatabaseDirectory.key) == type.encrypts
  }

  /// Throws `alreadyExists` if there is something at `target`.
  static func checkNothing(at target: DatabaseDirectory) throws {
    try target.checkIsOutsideOfOthers()
    guard !target.exists else {
      throw DatabaseError(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: target.path)
    }
  }

  private static func path(in partial: PartialDirectory) -> String {
    partial.path + "/new" + DatabaseDirectory.suffix
  }

  /// Removes the directory, so that another database can be made in the same partial directory.
  static func remove(in partial: PartialDirectory) throws { try FileTree.remove(path(in: partial)) }

  /// The path of the engine's file.
  var file: String { directory.file(description.file) }

  /// Writes a new key file, if the recipe has a new key for a database that wasn't encrypted. Returns the
  /// data key; nil if the database isn't encrypted.
  func makeKey(_ recipe: DatabaseRecipe) throws -> SecretBytes? {
    let dataKey = try recipe.dataKey(from: nil)
    if case .wrapped(let key, _) = recipe.key, let dataKey, let path = directory.keyPath(description) {
      try KeyFile.write(dataKey, to: path, key: key, replacement: .refused)
    }
    return dataKey
  }

  /// Opens the documents for `body`, and closes them. Nothing is synced: the files aren't published yet, so
  /// one sync at the end is enough.
  func withDocuments<Result>(
    _ creation: FileCreation, _ dataKey: SecretBytes?, _ body: (DocumentStore) throws -> Result
  ) throws -> Result {
    let unsynced = DatabaseOptions(durability: .none)
    let engine = try OpenDatabase.openEngine(type, file, creation, dataKey, unsynced)
    do {
      let blobs = try OpenDatabase.blobStore(directory, description, dataKey, unsynced)
      defer { blobs.discardUnsaved() }
      let result = try body(DocumentStore(engine: engine, blobs: blobs))
      try engine.close()
      return result
    } catch {
      try? engine.close()
      throw error
    }
  }

  /// Writes the description and moves the database to its place. Its files must be closed. Throws
  /// `alreadyExists`.
  ///
  /// If it was made from something with an access, nobody else can use the new files: they lose the bits that the source
  /// doesn't have. With `takesOver` they get the owner, the group and the permissions of the source.
  func publish(
    as target: DatabaseDirectory, from source: DatabaseAccess? = nil, takesOver: Bool = false
  ) throws {
    // A later open may not be able to make the lock, if it is for reading only.
    _ = try DirectoryLock(directory.file("lock"), in: directory.path, creates: true)
    try directory.write(description)
    if takesOver {
      try source?.apply(to: directory, isEncrypted: description.key != nil)
      try source?.directory.apply(to: directory.path)
    } else {
      try source?.limit(directory)
    }
    try partial.publish(directory.path, as: target.path)
  }
}
