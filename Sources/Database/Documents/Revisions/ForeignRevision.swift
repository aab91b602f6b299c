/// A revision in the form of a database of another format, for import and export, with its place in the
/// document's tree. Its buffers are borrowed.
package struct ForeignRevision {
  /// The body in one of its forms.
  package enum Body {
    /// The body isn't available.
    case none
    /// A Fleece object with the shared keys of the other database.
    case fleece(UnsafeRawBufferPointer)
    /// A JSON object in UTF-8.
    case json(UnsafeRawBufferPointer)

    /// Whether the body is available.
    package var isHere: Bool { if case .none = self { false } else { true } }
  }

  /// The revision's generation, 1 or more.
  package var generation: UInt64
  /// The rest of its ID: ASCII text if `isText`, otherwise the bytes of which the lower-case hex form is the
  /// suffix.
  package var suffix: UnsafeRawBufferPointer
  /// Whether `suffix` is text.
  package var isText: Bool
  /// The index of its parent among the document's revisions, -1 if there is none.
  package var parent: Int
  /// Whether it is a tombstone.
  package var isDeleted: Bool
  /// Whether it is the end of a branch that lost a conflict.
  package var isClosed: Bool
  /// The sequence of the change that added it. 0 means the sequence of the document's latest change.
  package var sequence: UInt64
  /// Its body.
  package var body: Body

  /// Creates a revision. See the properties.
  package init(
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
  package var id: RevisionID {
    RevisionID(generation: generation, suffix: StoredSuffix(bytes: suffix, isText: isText).text)
  }
}
