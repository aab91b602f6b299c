import Encryption

/// What is carried over of a 1.x database, and what is done about what can't be.
public struct UpgradeOptions: Sendable {
  /// What is carried over.
  public enum Carry: String, Sendable, CaseIterable {
    /// Everything: whole revision trees, conflicts, bodies of replaced revisions that are still there, tombstones, local
    /// documents, expirations, sequences and UUIDs.
    case full
    /// What Couchbase's own upgrade carries over: the winning revision of each document, tombstones included, with the IDs
    /// of its ancestors.
    case winners
  }

  /// What is carried over.
  public var carry: Carry
  /// Whether something that can't be carried over ends the upgrade, and nothing is made.
  public var isStrict: Bool
  /// Whether every document of the source is read again at the end, and compared with what was made of it.
  public var verifies: Bool
  /// The password or the key of an encrypted source.
  public var sourceKey: UserKey?
  /// Is told of each thing that isn't carried over as it is, as the report lists a limited number of them.
  public var onIssue: (@Sendable (UpgradeIssue) -> Void)?

  /// The defaults: everything is carried over, what can't be is reported.
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

/// How far an upgrade is.
public struct UpgradeProgress: Sendable, Equatable {
  /// What is being done.
  public enum Phase: String, Sendable {
    /// The source is looked through for damage.
    case checking
    /// Documents are carried over.
    case copying
    /// The source is read again and compared.
    case verifying
  }

  /// What is being done.
  public var phase: Phase
  /// Documents that are done.
  public var done: Int
  /// How many there are.
  public var total: Int

  /// Is told how far it is, several times a second; what it throws ends the upgrade, and nothing has been made then.
  public typealias Handler = (UpgradeProgress) throws -> Void
}
