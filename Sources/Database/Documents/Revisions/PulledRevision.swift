/// A revision that another database created and that sync delivers.
public struct PulledRevision: Sendable {
  /// The document's ID, up to 480 bytes.
  public var id: String
  /// The revision's own ID and the IDs of its known ancestors, newest first.
  public var history: [String]
  /// Whether the revision is a tombstone.
  public var isDeleted: Bool
  /// The revision's own body. Property names that begin with an underscore are allowed.
  public var body: DocumentBody
  /// Whether the revision is accepted when a blob that it refers to isn't in the database. Otherwise that
  /// throws `missingBlob`: a blob must be stored before the revision.
  public var allowsMissingBlobs = false

  /// Creates a revision with its history.
  public init(id: String, history: [String], isDeleted: Bool = false, body: DocumentBody = [:]) {
    self.id = id
    self.history = history
    self.isDeleted = isDeleted
    self.body = body
  }
}
