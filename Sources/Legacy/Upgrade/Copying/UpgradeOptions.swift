import Encryption

/// The options of an upgrade: what is carried over, and what happens with the rest.
public struct UpgradeOptions: Sendable {
  /// The part of a database that is carried over.
  public enum Carry: String, Sendable, CaseIterable {
    /// Everything: whole revision trees, conflicts, the remaining bodies of replaced revisions, tombstones,
    /// local documents, expirations, sequences and UUIDs.
    case full
    /// Only what Couchbase's own upgrade carries over: the winning revision of each document, including
    /// tombstones, with the IDs of its ancestors.
    case winners
  }

  /// The part of the database that is carried over.
  public var carry: Carry
  /// Whether anything that can't be carried over ends the upgrade. Then no database is made.
  public var isStrict: Bool
  /// Whether every document of the source is read again at the end and compared with the result.
  public var verifies: Bool
  /// The password or the key of an encrypted source.
  public var sourceKey: UserKey?
  /// Called for each issue. The report lists only a limited number of issues.
  public var onIssue: (@Sendable (UpgradeIssue) -> Void)?

  /// Creates options. With the defaults, everything is carried over, and anything that can't be carried over
  /// is reported.
  public init(
    carry: Carry = .full, isStrict: Bool = false, verifies: Bool = false, sourceKey: UserKey? = nil,
    onIssue: (@Sendable (UpgradeIssue) -> Void)? = nil
  ) {
    self.carry = carry
    self.isStrict = isStrict
    self.verifies = verifies
    self.sourceKey = sourceKey
    self.onIssue = onIssue
  }
}

/// The progress of an upgrade.
public struct UpgradeProgress: Sendable, Equatable {
  /// A phase of an upgrade.
  public enum Phase: String, Sendable {
    /// The source is checked for damage.
    case checking
    /// Documents are copied.
    case copying
    /// The source is read again and compared with the result.
    case verifying
  }

  /// The current phase.
  public var phase: Phase
  /// The number of documents that are done.
  public var done: Int
  /// The number of documents in the source.
  public var total: Int

  /// Called before the check, after every 512 documents, and at the end of the copying and the verifying
  /// phase. An error that it throws ends the upgrade, and no database is made.
  public typealias Handler = (UpgradeProgress) throws -> Void
}
