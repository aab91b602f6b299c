/// A revision of a document as it comes from, or goes to, a database of another format: with its place in the document's
/// tree. What it points to is borrowed.
public struct ForeignRevision {
  /// A body in one of its forms.
  public enum Body {
    /// It isn't here.
    case none
    /// A Fleece object by the other database's shared keys.
    case fleece(UnsafeRawBufferPointer)
    /// The UTF-8 of a JSON object.
    case json(UnsafeRawBufferPointer)

    /// Whether it is here.
    public var isHere: Bool { if case .none = self { false } else { true } }
  }

  /// How many revisions led here, 1 or more.
  public var generation: UInt64
  /// The rest of its ID: what lower-case hex of even length stands for, or, when `isText`, ASCII.
  public var suffix: UnsafeRawBufferPointer
  /// Whether `suffix` is text.
  public var isText: Bool
  /// Where its parent stands among the document's revisions; -1: none.
  public var parent: Int
  /// Whether it is a tombstone.
  public var isDeleted: Bool
  /// Whether it ends a branch that lost a conflict.
  public var isClosed: Bool
  /// Of the change that brought it; 0: of the document's latest.
  public var sequence: UInt64
  /// Its body.
  public var body: Body

  /// A revision; see the properties.
  public init(
    generation: UInt64, suffix: UnsafeRawBufferPointer, isText: Bool, parent: Int, isDeleted: Bool = false,
    isClosed: Bool = false, sequence: UInt64 = 0, body: Body = .none
  ) {
    self.generation = generation
    self.suffix = suffix
    self.isText = isText
    self.parent = parent
    self.isDeleted = isDeleted
    self.isClosed = isClosed
    self.sequence = sequence
    self.body = body
  }

  /// The ID as text.
  public var id: RevisionID {
    RevisionID(generation: generation, suffix: StoredSuffix(bytes: suffix, isText: isText).text)
  }
}
