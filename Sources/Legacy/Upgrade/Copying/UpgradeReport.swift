/// Something in a source that isn't carried over unchanged.
public struct UpgradeIssue: Sendable, Hashable, Codable {
  /// The kind of issue.
  public enum Kind: String, Sendable, Codable, CaseIterable {
    /// The ID of a document can't be stored: it is too long, has control characters, or isn't text.
    case invalidDocumentID
    /// The ID of a document begins with an underscore, and isn't a design document's.
    case reservedDocumentID
    /// Another document has the same ID.
    case duplicateDocument
    /// No revision of a document can be carried over.
    case noRevision
    /// The ID of a revision is invalid or can't be stored.
    case invalidRevisionID
    /// The body of a leaf revision can't be read. The leaf is left out with its branch.
    case unreadableBody
    /// The body of a replaced revision can't be read. Only the ID of the revision is carried over.
    case unreadableOldBody
    /// A replaced revision has no descendant leaf.
    case detachedRevision
    /// A revision belongs to no document.
    case orphanRevision
    /// The file of an attachment is missing.
    case missingAttachment
    /// The file of an attachment doesn't match its digest or can't be decoded.
    case damagedAttachment
    /// An attachment has no valid digest, so it names no file.
    case invalidAttachment
    /// A local document can't be read or stored.
    case localDocument
    /// The expiration time of a document can't be read.
    case expiration
    /// A leaf revision has no body in the source. It gets an empty body.
    case emptyBody
    /// The parent of a revision is missing or isn't older. The revision becomes a root.
    case brokenParent
    /// A record of a ForestDB file can't be read: a document, or a change that was saved last.
    case damagedRecord
    /// The last commits of a ForestDB file, or of SQLite's write-ahead log, can't be read. What was saved before them is carried over.
    case damagedCommit
    /// Other revisions have the sequence of a revision. It gets a new one.
    case sharedSequence
    /// A part of the file that isn't carried over anyway is damaged.
    case damagedElsewhere
    /// Files of attachments belong to no revision that was read.
    case unusedAttachments

    /// Whether something in the source is missing from the result.
    public var isLoss: Bool {
      switch self {
      case .emptyBody, .brokenParent, .sharedSequence, .damagedElsewhere, .unusedAttachments: false
      default: true
      }
    }
  }

  /// The kind of issue.
  public let kind: Kind
  /// The ID of the document. Bytes that aren't UTF-8 are replaced.
  public let documentID: String?
  /// The ID of the revision.
  public let revisionID: String?
  /// The name of the attachment.
  public let attachment: String?
  /// A description of what was found, for people.
  public let message: String

  /// Creates an issue. See the properties.
  package init(
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

extension UpgradeIssue {
  /// The ID of the document for a line of text. Of a long ID, the beginning.
  private var shortID: String? {
    guard let documentID, documentID.utf8.count > Self.shownIDBytes else { return documentID }
    return "\(documentID.prefix(Self.shownIDBytes / 2))…"
  }

  private static let shownIDBytes = 240

  /// The issue without its message, which may quote a body.
  package var logText: String {
    var text = "\(kind)"
    if let shortID { text += ", document '\(shortID)'" }
    if let revisionID { text += ", revision \(revisionID)" }
    if let attachment { text += ", attachment '\(attachment)'" }
    return text
  }
}

extension UpgradeIssue: CustomStringConvertible {
  /// A description in one line, for people.
  public var description: String {
    var subject: [String] = []
    if let shortID { subject.append("document '\(shortID)'") }
    if let revisionID { subject.append("revision \(revisionID)") }
    if let attachment { subject.append("attachment '\(attachment)'") }
    return subject.isEmpty ? message : subject.joined(separator: ", ") + ": " + message
  }
}

/// The counts of what an upgrade read, carried over and left out, with the reasons.
public struct UpgradeReport: Sendable, Hashable, Codable {
  /// The counts for one kind of thing. `read` is the sum of the others.
  public struct Count: Sendable, Hashable, Codable {
    /// The number in the source.
    public var read = 0
    /// The number in the result.
    public var carried = 0
    /// The number left out because they can't be carried over. Each one is an issue or belongs to an issue.
    public var skipped = 0
    /// The number left out because the options don't ask for them.
    public var unwanted = 0

    /// Counts things that were read, and what became of them.
    mutating func add(_ outcome: WritableKeyPath<Count, Int>, _ number: Int = 1) {
      read += number
      self[keyPath: outcome] += number
    }
  }

  /// The counts of attachments. An attachment counts once, however many revisions have it.
  public struct Attachments: Sendable, Hashable, Codable {
    /// The number of different files that revisions name.
    public var read = 0
    /// The number that are blobs of the result.
    public var carried = 0
    /// The number of carried attachments that were compressed with gzip and are now decoded.
    public var decoded = 0
    /// The number of carried attachments that were decrypted.
    public var decrypted = 0
    /// The number whose file is missing.
    public var missing = 0
    /// The number whose file doesn't match its digest or can't be decoded.
    public var damaged = 0
    /// The size of the blobs in bytes.
    public var bytes: UInt64 = 0
  }

  /// The path of the source, as it was given.
  public var source = ""
  /// The directory of the new database.
  public var target = ""
  /// The storage of the source, `SQLite` or `ForestDB`.
  public var storage = ""
  /// The `user_version` of a source in SQLite, otherwise 0.
  public var userVersion = 0
  /// Whether the source is encrypted.
  public var isEncrypted = false
  /// The part of the database that was to be carried over.
  public var carry = UpgradeOptions.Carry.full.rawValue
  /// Documents, live ones and tombstones.
  public var documents = Count()
  /// Documents whose winning revision is a tombstone.
  public var tombstones = Count()
  /// Documents with more than one live leaf.
  public var conflicts = Count()
  /// Revisions of all documents.
  public var revisions = Count()
  /// Revisions with a body.
  public var bodies = Count()
  /// The number of bytes of JSON that were carried over.
  public var bodyBytes = 0
  /// Attachments.
  public var attachments = Attachments()
  /// Local documents.
  public var localDocuments = Count()
  /// Documents with an expiration.
  public var expirations = Count()
  /// Views. They are never carried over, because their code isn't in the database.
  public var views = Count()
  /// Replication checkpoints of the `info` table. They are never carried over.
  public var checkpoints = Count()
  /// The number of issues of each kind.
  public var issueCounts: [String: Int] = [:]
  /// The first 1,000 issues.
  public var issues: [UpgradeIssue] = []
  /// The number of documents that were compared with the source; nil without verification.
  public var verifiedDocuments: Int?
  /// The time for checking and copying, in seconds.
  public var seconds = 0.0
  /// The time for verification, in seconds.
  public var verificationSeconds = 0.0

  /// The maximum number of issues in the list.
  public static let maximumIssues = 1_000

  /// Creates an empty report.
  package init() {}

  /// The number of issues in which something in the source is missing from the result. Things that the
  /// options don't ask for don't count.
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
