import Documents
import Encryption
import Logs
import Storage
import Upgrade

/// Makes a database from a 1.x database, at a path where there is none. It appears complete or not at all.
struct UpgradeInstaller {
  let target: DatabaseDirectory

  init(at target: DatabaseDirectory) throws {
    try UnfinishedDatabase.checkNothing(at: target)
    self.target = target
  }

  func install(
    from location: SourceFiles, _ type: EngineType, key: UserKey?, _ options: UpgradeOptions,
    _ progress: UpgradeProgress.Handler?
  ) throws -> UpgradeReport {
    let begin = LogClock.now
    Log.write(.info, .upgrade, target.path, "upgrading \(location.path)")
    do {
      let report = try installUnlogged(from: location, type, key: key, options, progress)
      for issue in report.issues {
        Log.write(issue.kind.isLoss ? .warning : .info, .upgrade, target.path, issue.logText)
      }
      Log.write(
        .info, .upgrade, target.path,
        "upgraded \(location.path) in \(LogText.milliseconds(LogClock.now - begin)): \(report.documents.carried) documents"
      )
      return report
    } catch {
      Log.write(.info, .upgrade, target.path, "\(location.path) couldn't be upgraded: \(LogText.of(error))")
      throw error
    }
  }

  private func installUnlogged(
    from location: SourceFiles, _ type: EngineType, key: UserKey?, _ options: UpgradeOptions,
    _ progress: UpgradeProgress.Handler?
  ) throws -> UpgradeReport {
    let recipe = try DatabaseRecipe(
      type, isEncrypted: false, key: nil, newKey: key, renewsDataKey: true, path: target.path)
    let partial = try PartialDirectory(beside: target.path)
    let new = try UnfinishedDatabase(in: partial, type)
    let file = new.directory.file(new.description.file)
    let upgrade = try Upgrade(location, options, scratch: partial.path) { state in
      // Neither writing nor comparing returns to a page soon.
      MappedFile.release(file, above: 48 << 20)
      try progress?(state)
    }
    let dataKey = try recipe.dataKey(from: nil)
    if case .wrapped(let key, _) = recipe.key, let dataKey, let path = new.directory.keyPath(new.description)
    {
      try KeyFile.write(dataKey, to: path, key: key, replacement: .refused)
    }
    // The files aren't published yet, so one sync at the end is enough.
    let unsynced = DatabaseOptions(durability: .none)
    func write(_ creation: FileCreation, _ body: (DocumentStore) throws -> UpgradeReport) throws
      -> UpgradeReport
    {
      let engine = try OpenDatabase.openEngine(type, file, creation, dataKey, unsynced)
      do {
        let blobs = try OpenDatabase.blobStore(new.directory.blobsPath(new.description), dataKey, unsynced)
        defer { blobs.discardUnsaved() }
        let report = try body(DocumentStore(engine: engine, blobs: blobs))
        try engine.close()
        return report
      } catch {
        try? engine.close()
        throw error
      }
    }
    var report = try write(.createNew) { try upgrade.run(into: $0) }
    let sync = try BackgroundSync(file)
    do {
      if options.verifies { report = try write(.openExisting) { try upgrade.verify($0) } }
    } catch {
      try? sync.finish()
      throw error
    }
    try sync.finish()
    try new.publish(as: target)
    report.target = target.path
    return report
  }
}
