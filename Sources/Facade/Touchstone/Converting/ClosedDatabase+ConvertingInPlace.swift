import Blobs
import Encryption
import Logs
import Storage

/// A conversion in place that survives a crash: new files beside the old ones, one rename that publishes them, and then the
/// removal of the old ones. The next open removes what an interrupted one left.
extension ClosedDatabase {
  /// Replaces the database's description in one step, after the files that it names were synced. Then it
  /// removes the files that only the old description named.
  func publish(_ new: DatabaseDirectory.Description) throws {
    // The new file names are synced before the description that refers to them.
    try AtomicFile.syncDirectory(of: directory.descriptionPath)
    try directory.write(new)
    description = new
    try directory.removeLeftovers(new)
  }

  /// Removes unpublished files after a failure. If it isn't certain which description survives a power loss,
  /// nothing is removed.
  func discardUnpublished() {
    guard let found = try? directory.readDescription(), found == description else { return }
    do { try directory.removeLeftovers(description) } catch {
      Log.write(
        .warning, .database, directory.path,
        "can't remove the files of a failed operation; the next open removes them: \(LogText.of(error))")
    }
  }

  /// Rewrites everything by `recipe`, and replaces the old files.
  @discardableResult
  func rewrite(_ recipe: DatabaseRecipe, key: UserKey?, progress: ConversionProgress.Handler?) throws
    -> ConversionReport
  {
    try directory.checkFits(recipe.engine)
    let begin = LogClock.now
    let old = description
    let oldKey = try OpenDatabase.unlock(directory, description, key)
    let type = try Engines.type(EngineName(rawValue: description.engine))
    let engine = try OpenDatabase.openEngine(
      type, directory.file(description.file), .openExisting, oldKey, DatabaseOptions(durability: .normal))
    do {
      let blobs = try BlobStore(directory: directory.blobsPath(description), dataKey: oldKey)
      let source = DatabaseSource(engine: engine, blobs: blobs, dataKey: oldKey)
      var new = description
      new.engine = recipe.engine.name
      new.file = directory.nextDataFile(after: description, fileExtension: recipe.engine.fileExtension)
      switch recipe.key {
      case .none: new.key = nil
      case .same: break
      case .wrapped: new.key = directory.nextKeyFile(after: description)
      }
      let dataKey = try recipe.dataKey(from: oldKey)
      if dataKey != oldKey {
        let name = try directory.nextBlobDirectory(after: description)
        new.blobs = name == DatabaseDirectory.blobs ? nil : name
      }
      let writer = DatabaseWriter(
        source: source, recipe: recipe, dataKey: dataKey, directory: directory, description: new,
        access: DatabaseAccess(of: directory), copiesBlobs: dataKey != oldKey, progress: progress)
      let report = try writer.run()
      try engine.close()
      try publish(new)
      Log.write(
        .info, .database, directory.path,
        "rewritten from \(old.engine)\(old.key == nil ? "" : ", encrypted,") to \(new.engine)\(new.key == nil ? "" : ", encrypted") in \(LogText.milliseconds(LogClock.now - begin))\(report.logText)"
      )
      return report
    } catch {
      try? engine.close()
      discardUnpublished()
      Log.write(.info, .database, directory.path, "couldn't be rewritten: \(LogText.of(error))")
      throw error
    }
  }

  /// Converts an existing database to `engine`, for `DatabaseOptions.requireEngine`. An encrypted database
  /// stays encrypted.
  static func convert(_ directory: DatabaseDirectory, to engine: EngineName, _ options: DatabaseOptions)
    throws
  {
    guard directory.isComplete else { return }
    let description = try directory.readDescription()
    let type = try Engines.type(engine, encrypted: description.key != nil || options.key != nil)
    guard description.engine != type.name else { return }
    guard !options.isReadOnly else {
      throw DatabaseError(
        .readOnly, "the database must be converted to \(engine) first, but it was opened for reading only",
        path: directory.path)
    }
    // Another process may convert it first, and keep it open.
    func isConverted() -> Bool { (try? directory.readDescription().engine) == type.name }
    let closed: ClosedDatabase
    do {
      closed = try ClosedDatabase(directory, waitingSeconds: 10, unless: isConverted)
    } catch let error as DatabaseError where error.code == .inUse && isConverted() {
      return
    }
    guard closed.description.engine != type.name else { return }
    let isEncrypted = closed.description.key != nil
    guard type.encrypts || (!isEncrypted && options.key == nil) else {
      throw DatabaseError(
        .notEncrypted,
        "the database is encrypted, but the engine \(engine) can't encrypt; decrypt the database first, and give no key",
        path: directory.path)
    }
    let recipe = try DatabaseRecipe(
      type, isEncrypted: isEncrypted, key: options.key, newKey: nil, renewsDataKey: false,
      path: directory.path)
    try closed.rewrite(recipe, key: isEncrypted ? options.key : nil, progress: nil)
  }
}
