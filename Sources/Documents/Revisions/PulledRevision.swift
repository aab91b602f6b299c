/// A revision that another database made, as sync brings it.
public struct PulledRevision: Sendable {
  /// The document's ID, up to 480 bytes.
  public var id: String
  /// The revision's own ID and those of its ancestors, newest first, as far as they are known.
  public var history: [String]
  /// A tombstone.
  public var isDeleted: Bool
  /// The revision's own body. Names that begin with an underscore are allowed.
  public var body: DocumentBody
  /// Whether it is taken although a blob that it names isn't in the database. Else that is `missingBlob`: a blob is
  /// stored before the revision is.
  public var allowsMissingBlobs = false

  /// A revision with its history.
  public init(id: String, history: [String], isDeleted: Bool = false, body: DocumentBody = [:]) {
    self.id = id
    self.history = history
    self.isDeleted = isDeleted
    self.body = body
  }
}
