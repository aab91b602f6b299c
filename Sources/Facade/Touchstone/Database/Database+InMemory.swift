import Storage
import StorageMemory

extension Database {
  /// Makes an empty database that keeps its documents and indexes in memory, for tests of apps.
  ///
  /// ```swift
  /// let notes = try Database.inMemory()
  /// try notes.save("note_1", ["text": "Buy groceries"])
  /// ```
  ///
  /// It does everything that other databases do, but nothing is left after `close()`. `convert(_:to:at:)` from
  /// its `path` keeps its content in a database on disk. Its blobs lie in a private directory inside the
  /// system's temporary directory (`TMPDIR`), and `close()` removes them. After a process was killed, the next
  /// call removes what it left there.
  ///
  /// Throws `DatabaseError.notEncrypted` if the options have a key, and `StorageError.invalidArgument` for
  /// options that need a file: another engine, `isReadOnly`, `creation: .openExisting`, an upgrade.
  public static func inMemory(options: DatabaseOptions = DatabaseOptions()) throws -> Database {
    guard options.key == nil else {
      throw DatabaseError(.notEncrypted, "a database in memory takes no key, because nothing of it is stored")
    }
    let needFiles: [(name: String, isSet: Bool)] = [
      ("engine", options.engine != nil && options.engine != .memory), ("isReadOnly", options.isReadOnly),
      ("creation", options.creation == .openExisting), ("upgrade", options.upgrade != nil),
    ]
    if let wrong = needFiles.first(where: \.isSet) {
      throw StorageError(
        .invalidArgument, "a database in memory can't be opened with the option \(wrong.name)")
    }
    var options = options
    options.requireEngine = false
    options.creation = .createNew
    options.durability = .none
    options.engineType = MemoryEngine.type
    let parent = EnvironmentVariable.value("TMPDIR") ?? "/tmp"
    let partial = try PartialDirectory(beside: parent + "/memory")
    let directory = try DatabaseDirectory("memory", in: partial.path)
    let file = directory.file("data-1.\(MemoryEngine.type.fileExtension)")
    do {
      let open = try OpenDatabase.open(.directory(directory), options) {
        MemoryEngine.remove(file)
        partial.remove()
      }
      return Database(open, options, name: directory.name)
    } catch {
      MemoryEngine.remove(file)
      throw error
    }
  }
}
