import Documents
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// An upgrade of a 1.x database. It reads the source without changing it, copies its contents into an empty
/// store, and can compare the two.
///
/// Memory use doesn't depend on the size of the database. One thread at a time.
package final class Upgrade {
  let source: any Source
  let options: UpgradeOptions
  private let progress: UpgradeProgress.Handler?
  private let sourceGuard: SourceGuard
  var report = UpgradeReport()
  /// The source numbers of documents whose ID another document also has.
  var duplicates: Set<Int> = []
  /// The new sequences of revisions, by the source numbers of their documents.
  private(set) var renumbered: [Int: [(row: Int, sequence: Int)]] = [:]
  private var newSequences = 0
  /// The maximum number of documents with new sequences.
  private static let maximumRenumbered = 100_000

  /// Opens the source and checks it for damage.
  ///
  /// - Parameters:
  ///   - location: the files of the source.
  ///   - options: the options of the upgrade.
  ///   - scratch: a directory for a copy of the SQLite file and other temporary files, if they are needed. Its
  ///     file system must have room for them. The caller removes the directory.
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
    source = try location.open(key: options.sourceKey, scratch: scratch)
    try progress?(UpgradeProgress(phase: .checking, done: 0, total: 0))
    try source.check()
    report.source = location.path
    report.storage = location.storage.rawValue
    report.userVersion = source.userVersion
    report.isEncrypted = source.key != nil
    report.carry = options.carry.rawValue
    report.seconds = Self.seconds(since: begun)
  }

  /// Copies everything into `store`, which must be empty. With strict options, throws `refused` for anything
  /// that can't be carried over.
  package func run(into store: DocumentStore) throws -> UpgradeReport {
    let begun = ContinuousClock.now
    for issue in source.issues { try note(issue) }
    let unused = try UpgradeCopy(self, store).run()
    // What is known to be missing explains them.
    if unused > 0, options.carry == .full, report.losses == 0 {
      try note(
        UpgradeIssue(
          .unusedAttachments,
          "\(unused) files of attachments belong to no revision that was read; they are of revisions that were "
            + "removed, or of documents that are missing from the database"))
    }
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

  // MARK: Sequences

  /// The highest sequence that the result has to know.
  func lastSequence() throws -> Int {
    let (sum, isTooHigh) = max(0, try source.lastSequence()).addingReportingOverflow(newSequences)
    guard !isTooHigh else {
      throw UpgradeError(
        .damaged,
        "the file is damaged (revisions share sequences, and none is free above the last one, "
          + "\(try source.lastSequence())); restore it from a backup", path: source.location.path)
    }
    return sum
  }

  /// Returns a sequence that no revision of the source has. Throws `damaged` if there is none.
  func newSequence() throws -> Int {
    newSequences += 1
    return try lastSequence()
  }

  /// Remembers new sequences for the comparison.
  func noteRenumbered(_ document: Int, _ sequences: [(row: Int, sequence: Int)]) throws {
    guard renumbered.count < Self.maximumRenumbered else {
      throw UpgradeError(
        .damaged, "the file is damaged (too many documents have the sequences of others)",
        path: source.location.path)
    }
    renumbered[document] = sequences
  }

  func tell(_ phase: UpgradeProgress.Phase, _ done: Int, _ total: Int) throws {
    try progress?(UpgradeProgress(phase: phase, done: done, total: total))
  }

  static func seconds(since instant: ContinuousClock.Instant) -> Double {
    let duration = (ContinuousClock.now - instant).components
    return Double(duration.seconds) + Double(duration.attoseconds) * 1e-18
  }
}
