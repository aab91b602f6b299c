import Blobs
import Documents
import Encryption
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Makes a database from another one. It appears at its path complete or not at all.
struct DatabaseInstaller {
  let target: DatabaseDirectory

  /// For a new database. Throws `alreadyExists` if there is something at `target`.
  init(at target: DatabaseDirectory) throws {
    try UnfinishedDatabase.checkNothing(at: target)
    self.target = target
  }

  /// For a database that replaces the one at `target`.
  init(replacing target: DatabaseDirectory) { self.target = target }

  /// Installs from a database's directory, or from a zip file that holds one.
  func install(
    fromDirectoryOrArchive source: String, engine: EngineType?, key: UserKey?, newKey: UserKey?,
    progress: ConversionProgress.Handler?
  ) throws -> ConversionReport {
    var status = stat()
    guard stat(source, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return try install(
        from: try DatabasePlace(source), engine: engine, key: key, newKey: newKey, isAnotherPeer: true,
        progress: progress)
    }
    let partial = try PartialDirectory(beside: target.path)
    let unpacked = partial.path + "/unpacked" + DatabaseDirectory.suffix
    try ZipArchive(source).unpackDatabase(to: unpacked) { done, total in
      try progress?(ConversionProgress(phase: .unpacking, done: done, total: total))
    }
    let new = try make(
      in: partial, from: .directory(try DatabaseDirectory(unpacked)), engine: engine, key: key,
      newKey: newKey,
      isAnotherPeer: true, progress: progress
    )
    try new.publish(as: target, from: DatabaseAccess(ofFile: source))
    return new.report
  }

  /// Installs from another database. If `isAnotherPeer`, the copy gets new UUIDs. From a server, it goes on where the last
  /// installation at this path was interrupted.
  func install(
    from source: DatabasePlace, engine: EngineType?, key: UserKey?, newKey: UserKey?, isAnotherPeer: Bool,
    progress: ConversionProgress.Handler?
  ) throws -> ConversionReport {
    if case .server = source {
      let partial = try PartialDirectory(resuming: target.path)
      return try InterruptedConversion.resuming(target: target.path, keep: partial.keep) { again in
        if again { try UnfinishedDatabase.remove(in: partial) }
        let new = try make(
          in: partial, from: source, engine: engine, key: key, newKey: newKey, isAnotherPeer: isAnotherPeer,
          resumes: true, progress: progress)
        try new.publish(as: target)
        return new.report
      }
    }
    var access: DatabaseAccess?
    if case .directory(let directory) = source {
      guard directory.isComplete else { throw directory.missing }
      access = DatabaseAccess(of: directory)
    }
    let new = try make(
      in: try PartialDirectory(beside: target.path), from: source, engine: engine, key: key, newKey: newKey,
      isAnotherPeer: isAnotherPeer, progress: progress
    )
    try new.publish(as: target, from: access)
    return new.report
  }

  /// Makes the database in `partial`. If `isAnotherPeer`, it gets new UUIDs. If it `resumes`, it keeps what is there already.
  func make(
    in partial: PartialDirectory, from place: DatabasePlace, engine: EngineType?, key: UserKey?,
    newKey: UserKey?, isAnotherPeer: Bool, resumes: Bool = false, progress: ConversionProgress.Handler?
  ) throws -> UnfinishedDatabase {
    let source = try ConversionSource(place, key: key)
    return try withExtendedLifetime(source) {
      let type = try engine ?? directoryEngine(of: source, newKey: newKey)
      try type.checkHasFiles(target.path)
      try target.checkFits(type)
      var recipe = try DatabaseRecipe(
        type, isEncrypted: source.isEncrypted, key: key, newKey: newKey, renewsDataKey: true,
        path: target.path)
      if isAnotherPeer { recipe.finish = { try DocumentStore.assignNewUUIDs(in: $0) } }
      var new =
        try resumes ? UnfinishedDatabase(resumingIn: partial, type) : UnfinishedDatabase(in: partial, type)
      var dataKey = try recipe.dataKey(from: source.data.dataKey)
      if resumes, case .wrapped(let key, _) = recipe.key, let path = new.directory.keyPath(new.description),
        new.directory.isThere(path)
      {
        dataKey = try OpenDatabase.unlock(new.directory, new.description, key)
      }
      if case .same = recipe.key, let keyPath = source.keyPath {
        try AtomicFile.write(
          try AtomicFile.read(keyPath, limit: 1 << 16), to: new.directory.file(DatabaseDirectory.key))
      }
      new.report = try DatabaseWriter(
        source: source.data, recipe: recipe, dataKey: dataKey,
        directory: new.directory, description: new.description, access: nil, copiesBlobs: true,
        progress: progress, resumes: resumes
      ).run()
      Log.write(
        .info, .database, target.path,
        "made from \(source.path), with the engine \(type.name)\(new.report.logText)")
      return new
    }
  }

  /// The engine of a copy that nobody chose: that of the source. A database from a server gets the one of new databases.
  private func directoryEngine(of source: ConversionSource, newKey: UserKey?) throws -> EngineType {
    let type = try source.type
    guard type.server != nil else { return type }
    return try Engines.type(newKey == nil ? .sqlite : .sqlcipher)
  }
}
