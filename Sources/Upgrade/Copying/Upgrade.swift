import Documents
import Encryption
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// An upgrade of a 1.x database. It reads the source without changing it, copies its contents into an empty
/// store, and can compare the two.
///
/// Memory use doesn't depend on the size of the database. One thread at a time.
package final class Upgrade {
  let source: SourceDatabase
  let options: UpgradeOptions
  private let progress: UpgradeProgress.Handler?
  private let sourceGuard: SourceGuard
  var report = UpgradeReport()
  /// The source numbers of documents whose ID another document also has.
  var duplicates: Set<Int> = []

  /// Opens the source and checks it for damage.
  ///
  /// - Parameters:
  ///   - location: the files of the source.
  ///   - options: the options of the upgrade.
  ///   - scratch: a directory for a copy of the SQLite file, if one is needed. Its file system must have room
  ///     for the copy. The caller removes the directory.
  ///   - progress: called while the upgrade runs.
  /// - Throws: `UpgradeError` with a description of what is at the place, if it isn't a readable 1.x
  ///   database.
  package init(
    _ location: SourceFiles, _ options: UpgradeOptions, scratch: String,
    progress: UpgradeProgress.Handler? = nil
  ) throws {
    self.options = options
    self.progress = progress
    let begun = ContinuousClock.now
    sourceGuard = try SourceGuard(location)
    do {
      let file = try SourceFile(location, key: options.sourceKey, scratch: scratch)
      source = try SourceDatabase(location, file)
    } catch let error as SQLiteError { throw SourceDatabase.error(error, location) }
    try progress?(UpgradeProgress(phase: .checking, done: 0, total: 0))
    try source.checkPages()
    report.source = location.path
    report.userVersion = source.userVersion
    report.isEncrypted = source.key != nil
    report.carry = options.carry.rawValue
    report.seconds = Self.seconds(since: begun)
  }

  /// Copies everything into `store`, which must be empty. With strict options, throws `refused` for anything
  /// that can't be carried over.
  package func run(into store: DocumentStore) throws -> UpgradeReport {
    let begun = ContinuousClock.now
    if source.isDamagedElsewhere {
      try note(
        UpgradeIssue(
          .damagedElsewhere, "a part of the file that isn't carried over (indexes, views) is damaged"))
    }
    try UpgradeCopy(self, store).run()
    try sourceGuard.checkUnchanged()
    report.seconds += Self.seconds(since: begun)
    return report
  }

  /// Reads the source again and compares it with `store`. Throws `differs` at the first difference.
  package func verify(_ store: DocumentStore) throws -> UpgradeReport {
    let begun = ContinuousClock.now
    report.verifiedDocuments = try UpgradeVerification(self, store).run()
    try sourceGuard.checkUnchanged()
    report.verificationSeconds = Self.seconds(since: begun)
    return report
  }

  // MARK: Reporting

  func note(_ issue: UpgradeIssue) throws {
    report.add(issue)
    options.onIssue?(issue)
    guard options.isStrict, issue.kind.isLoss else { return }
    throw UpgradeError(
      .refused, "\(issue); the options are strict, so no database was made", path: source.location.path)
  }

  func tell(_ phase: UpgradeProgress.Phase, _ done: Int, _ total: Int) throws {
    try progress?(UpgradeProgress(phase: phase, done: done, total: total))
  }

  static func seconds(since instant: ContinuousClock.Instant) -> Double {
    let duration = (ContinuousClock.now - instant).components
    return Double(duration.seconds) + Double(duration.attoseconds) * 1e-18
  }
}
