/// Something of a source that isn't carried over as it is.
public struct UpgradeIssue: Sendable, Hashable, Codable {
  /// What it is.
  public enum Kind: String, Sendable, Codable, CaseIterable {
    /// A document whose ID can't be stored: too long, with control characters, or no text.
    case invalidDocumentID
    /// A document whose ID begins with an underscore, as design documents' do.
    case reservedDocumentID
    /// A document that has an ID another one has.
    case duplicateDocument
    /// A document without a revision that could be carried over.
    case noRevision
    /// A revision whose ID isn't one, or can't be stored.
    case invalidRevisionID
    /// A leaf revision whose body can't be read: it is left out with its branch.
    case unreadableBody
    /// The body of a replaced revision can't be read: the revision is carried over by its ID alone.
    case unreadableOldBody
    /// A revision that has been replaced and that nothing descends from.
    case detachedRevision
    /// A revision of no document.
    case orphanRevision
    /// An attachment whose file isn't there.
    case missingAttachment
    /// An attachment whose file isn't what its digest says, or can't be decoded.
    case damagedAttachment
    /// An attachment that names no file.
    case invalidAttachment
    /// A local document that can't be stored.
    case localDocument
    /// A time to expire that can't be stored.
    case expiration
    /// A leaf revision without a body in the source: it gets an empty one.
    case emptyBody
    /// A revision whose parent isn't there, or isn't older: it becomes a root.
    case brokenParent
    /// Something in the file that isn't carried over anyway can't be read.
    case damagedElsewhere

    /// Whether the source has something that the result hasn't.
    public var isLoss: Bool {
      switch self {
      case .emptyBody, .brokenParent, .damagedElsewhere: false
      default: true
      }
    }
  }

  /// What it is.
  public let kind: Kind
  /// The document, as far as its ID is text.
  public let documentID: String?
  /// The revision.
  public let revisionID: String?
  /// The attachment's name.
  public let attachment: String?
  /// What was found, for people.
  public let message: String

  /// An issue; see the properties.
  public init(
    _ kind: Kind, documentID: String? = nil, revisionID: String? = nil, attachment: String? = nil,
    _ message: String
  ) {
    self.kind = kind
    self.documentID = documentID
    self.revisionID = revisionID
    self.attachment = attachment
    self.message = message
  }
}

extension UpgradeIssue: CustomStringConvertible {
  /// A line for people.
  public var description: String {
    var subject: [String] = []
    if let documentID { subject.append("document '\(documentID)'") }
    if let revisionID { subject.append("revision \(revisionID)") }
    if let attachment { subject.append("attachment '\(attachment)'") }
    return subject.isEmpty ? message : subject.joined(separator: ", ") + ": " + message
  }
}

/// What an upgrade read, carried over and left out, and why.
public struct UpgradeReport: Sendable, Hashable, Codable {
  /// How many of something there were and what became of them: `read` is the sum of the others.
  public struct Count: Sendable, Hashable, Codable {
    /// In the source.
    public var read = 0
    /// In the result.
    public var carried = 0
    /// Left out because they can't be carried over: each is an issue, or belongs to something that is one.
    public var skipped = 0
    /// Left out because they weren't to be carried over.
    public var unwanted = 0
  }

  /// What became of attachments, which are counted once whatever number of revisions has them.
  public struct Attachments: Sendable, Hashable, Codable {
    /// Different files that revisions name.
    public var read = 0
    /// That are blobs of the result.
    public var carried = 0
    /// Of those, how many were compressed with gzip and aren't any more.
    public var decoded = 0
    /// Of those, how many were decrypted.
    public var decrypted = 0
    /// Whose files aren't there.
    public var missing = 0
    /// Whose files aren't what their digests say.
    public var damaged = 0
    /// Bytes of the blobs.
    public var bytes: UInt64 = 0
  }

  /// The source, as it was given.
  public var source = ""
  /// The directory of the new database.
  public var target = ""
  /// Its `user_version`.
  public var userVersion = 0
  /// Whether it is encrypted.
  public var isEncrypted = false
  /// What was to be carried over.
  public var carry = UpgradeOptions.Carry.full.rawValue
  /// Live documents and tombstones.
  public var documents = Count()
  /// Of the documents, those whose winner is a tombstone.
  public var tombstones = Count()
  /// Of the documents, those with more than one live leaf.
  public var conflicts = Count()
  /// Revisions of all documents.
  public var revisions = Count()
  /// Of the revisions, those with a body.
  public var bodies = Count()
  /// Bytes of JSON that were carried over.
  public var bodyBytes = 0
  /// Attachments.
  public var attachments = Attachments()
  /// Local documents.
  public var localDocuments = Count()
  /// Documents that expire.
  public var expirations = Count()
  /// Views, which are never carried over: their code isn't in the database.
  public var views = Count()
  /// Checkpoints of replications in the `info` table, which are never carried over.
  public var checkpoints = Count()
  /// Of each kind of issue, how many there were.
  public var issueCounts: [String: Int] = [:]
  /// The first thousand issues.
  public var issues: [UpgradeIssue] = []
  /// How many documents were read again and compared; nil when that wasn't asked for.
  public var verifiedDocuments: Int?
  /// Seconds that carrying over took, and that verifying took.
  public var seconds = 0.0
  /// Seconds that reading again and comparing took.
  public var verificationSeconds = 0.0

  /// How many issues the list holds at most.
  public static let maximumIssues = 1_000

  /// An empty report.
  public init() {}

  /// How many things of the source are not in the result, as far as they were wanted.
  public var losses: Int {
    issueCounts.reduce(0) { sum, entry in
      sum + (UpgradeIssue.Kind(rawValue: entry.key)?.isLoss == true ? entry.value : 0)
    }
  }

  mutating func add(_ issue: UpgradeIssue) {
    issueCounts[issue.kind.rawValue, default: 0] += 1
    if issues.count < Self.maximumIssues { issues.append(issue) }
  }
}
