import Documents
import Encryption
import Logs
import Storage
import Upgrade

/// Makes a database from a 1.x database, at a path where there is none. It appears complete or not at all.
struct UpgradeInstaller {
  let target: DatabaseDirectory

  /// For a new database. Throws `alreadyExists` if there is something at `target`.
  init(at target: DatabaseDirectory) throws {
    try UnfinishedDatabase.checkNothing(at: target)
    self.target = target
  }

  /// For a database that replaces the one at `target`.
  init(replacing target: DatabaseDirectory) { self.target = target }

  func install(
    from location: SourceFiles, _ type: EngineType, key: UserKey?, _ options: UpgradeOptions,
    isInPlace: Bool = false, _ progress: UpgradeProgress.Handler?
  ) throws -> UpgradeReport {
    let begin = LogClock.now
    Log.write(.info, .upgrade, target.path, "upgrading \(location.path)")
    do {
      let report = try installUnlogged(from: location, type, key: key, options, isInPlace, progress)
      for issue in report.issues {
        // Whoever is told of each issue need not read it in the log too.
        let isWarning = issue.kind.isLoss && options.onIssue == nil
        Log.write(isWarning ? .warning : .info, .upgrade, target.path, issue.logText)
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
    _ isInPlace: Bool, _ progress: UpgradeProgress.Handler?
  ) throws -> UpgradeReport {
    let partial = try PartialDirectory(beside: target.path)
    let made = try make(
      in: partial, from: location, type, key: key, options, isAnotherPeer: false, progress)
    try made.new.publish(as: target, from: DatabaseAccess(of: location), takesOver: isInPlace)
    var report = made.report
    report.target = target.path
    return report
  }

  /// Makes the database in `partial`. If `isAnotherPeer`, it gets new UUIDs.
  func make(
    in partial: PartialDirectory, from location: SourceFiles, _ type: EngineType, key: UserKey?,
    _ options: UpgradeOptions, isAnotherPeer: Bool, _ progress: UpgradeProgress.Handler?
  ) throws -> (new: UnfinishedDatabase, report: UpgradeReport) {
    let recipe = try DatabaseRecipe(
      type, isEncrypted: false, key: nil, newKey: key, renewsDataKey: true, path: target.path)
    let new = try UnfinishedDatabase(in: partial, type)
    let upgrade = try Upgrade(location, options, scratch: partial.path) { state in
      // Neither writing nor comparing returns to a page soon.
      MappedFile.release(new.file, above: 48 << 20)
      try progress?(state)
    }
    let dataKey = try new.makeKey(recipe)
    var report = try new.withDocuments(.createNew, dataKey) { store in
      let report = try upgrade.run(into: store)
      if isAnotherPeer { try DocumentStore.assignNewUUIDs(in: store.engine) }
      return report
    }
    let sync = try BackgroundSync(new.file)
    do {
      if options.verifies {
        report = try new.withDocuments(.openExisting, dataKey) { try upgrade.verify($0) }
      }
    } catch {
      try? sync.finish()
      throw error
    }
    try sync.finish()
    return (new, report)
  }
}
