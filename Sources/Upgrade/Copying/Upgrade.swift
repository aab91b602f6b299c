import Documents
import Encryption
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// One upgrade of a 1.x database: opens the source without changing it, carries what is in it over into an empty store,
/// and compares the two.
///
/// Memory doesn't grow with the database. One thread at a time.
public final class Upgrade {
  let source: SourceDatabase
  let options: UpgradeOptions
  private let progress: UpgradeProgress.Handler?
  private let sourceGuard: SourceGuard
  private(set) var report = UpgradeReport()
  /// Documents that have an ID another one has, by their numbers in the source.
  var duplicates: Set<Int> = []

  /// Opens the source and looks it through for damage. `scratch` is a directory for a copy of the file where one is
  /// needed, on a file system with room for it; removing it is the caller's.
  ///
  /// Throws an `UpgradeError` that says what is at the place when it is no 1.x database that can be read.
  public init(
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

  /// Carries everything over into `store`, which is empty. Throws `refused` for what can't be when the options are strict.
  public func run(into store: DocumentStore) throws -> UpgradeReport {
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

  /// Reads the source again and compares it with what `store` has. Throws `differs` with the first difference.
  public func verify(_ store: DocumentStore) throws -> UpgradeReport {
    let begun = ContinuousClock.now
    report.verifiedDocuments = try UpgradeVerification(self, store).run()
    try sourceGuard.checkUnchanged()
    report.verificationSeconds = Self.seconds(since: begun)
    return report
  }

  // MARK: What the parts tell

  func note(_ issue: UpgradeIssue) throws {
    report.add(issue)
    options.onIssue?(issue)
    guard options.isStrict, issue.kind.isLoss else { return }
    throw UpgradeError(
      .refused, "\(issue): nothing was to be left out, so nothing was made", path: source.location.path)
  }

  func update(_ body: (inout UpgradeReport) -> Void) { body(&report) }

  func tell(_ phase: UpgradeProgress.Phase, _ done: Int, _ total: Int) throws {
    try progress?(UpgradeProgress(phase: phase, done: done, total: total))
  }

  static func seconds(since instant: ContinuousClock.Instant) -> Double {
    let duration = (ContinuousClock.now - instant).components
    return Double(duration.seconds) + Double(duration.attoseconds) * 1e-18
  }
}
