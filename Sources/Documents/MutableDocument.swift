import Fleece

/// A document to be saved: new, or read and changed.
public struct MutableDocument: Sendable {
  /// The document's ID.
  public let id: String
  /// The body: an object.
  public var body: JSONValue
  /// The revision it is based on: nil for a new document.
  public internal(set) var revisionID: RevisionID?
  /// The sequence of that revision, 0 of a new document.
  public internal(set) var sequence: UInt64

  /// A new document; without an ID it gets a UUID.
  public init(id: String? = nil, _ body: JSONValue = [:]) {
    self.id = id ?? DocumentID.random()
    self.body = body
    revisionID = nil
    sequence = 0
  }

  /// A stored document to change. Throws `damaged` when its body can't be read.
  public init(_ document: Document) throws {
    id = document.id
    body = try document.value()
    revisionID = document.revisionID
    sequence = document.sequence
  }

  /// The property of that name; setting a missing one adds it.
  public subscript(name: String) -> JSONValue {
    get { body[name] }
    set { body[name] = newValue }
  }
}
