import Fleece

/// A type of the app that is stored as a document: its properties are those of the document.
///
/// ```swift
/// struct Hotel: DocumentModel {
///   var id: String?
///   var revision = ModelRevision()
///   var name: String
///   var opened: Date?
///   var photo: Blob?
/// }
///
/// var hotel = Hotel(name: "Apple Droid")
/// try travel.save(&hotel)
/// let same = try travel.get(Hotel.self, hotel.id ?? "")
/// ```
///
/// `Database` and `Transaction` save, get, update and delete models. `DocumentEncoder` and `DocumentDecoder` convert
/// them. A property that the document doesn't have takes the default of its type where the model decodes it with
/// `decodeIfPresent`, as the compiler does for optional properties. Any other missing property throws
/// `DecodingError.keyNotFound`.
///
/// A save replaces the whole body. Properties of the document that the model doesn't have are lost then.
///
/// `id` and `revision` aren't stored in the body. A type whose documents have a property `id` of their own gives
/// the model's `id` the coding key `_id`.
public protocol DocumentModel: Codable {
  /// The document's ID. The first save sets it to a random UUID if it is nil.
  var id: String? { get set }
  /// The revision that the model is based on. Only the database sets it.
  var revision: ModelRevision { get set }
}

extension DocumentModel {
  /// The ID of the revision that the model is based on, nil if it was never saved or read.
  public var revisionID: RevisionID? { revision.revisionID }

  /// Returns the body of the model's document. The model has an ID.
  package func body() throws -> JSONValue {
    guard case .object(var members) = try DocumentEncoder().encode(self) else {
      throw DocumentError(
        .invalidBody, "the model \(Self.self) doesn't encode as an object", documentID: id)
    }
    if members.removeValue(forKey: "_id") == nil { members.removeValue(forKey: "id") }
    return .object(members)
  }

  /// Decodes the model of a document with this body.
  package init(id: String, _ revision: ModelRevision, _ body: JSONValue) throws {
    var members = body.object ?? JSONObject()
    members["_id"] = .string(id)
    if members["id"] == nil { members["id"] = .string(id) }
    self = try DocumentDecoder().decode(Self.self, from: .object(members))
    self.id = id
    self.revision = revision
  }

  /// Decodes the model of a document that was read, for example from a snapshot. Throws `DecodingError` if it
  /// doesn't fit.
  public init(_ document: Document) throws {
    try self.init(
      id: document.id, ModelRevision(document.revisionID, document.sequence), document.value())
  }

  /// Decodes the model of one revision of a document. Nil if its body isn't stored.
  package init?(id: String, _ revision: Revision) throws {
    guard let body = revision.body else { return nil }
    try self.init(id: id, ModelRevision(revision.id, revision.sequence), body)
  }
}

/// The revision that a model is based on.
///
/// It is a type of its own because a plain revision ID couldn't be taken back: when the transaction that saved the
/// model is rolled back, `revisionID` is the earlier revision again.
///
/// Models encode it in no document. All values are equal, as documents are equal whatever their revisions.
public struct ModelRevision: Sendable, Hashable {
  private var base: DocumentBase

  /// The revision of a model that was never saved.
  public init() { base = DocumentBase() }

  init(_ revisionID: RevisionID, _ sequence: UInt64) { base = DocumentBase(revisionID, sequence) }

  /// The revision's ID, nil if the model was never saved or read.
  public var revisionID: RevisionID? { base.revisionID }
  /// The revision's sequence, 0 if the model was never saved or read.
  public var sequence: UInt64 { base.sequence }

  mutating func note(_ saved: SavedRevision, in run: TransactionRun?) { base.note(saved, in: run) }

  /// Returns true.
  public static func == (left: ModelRevision, right: ModelRevision) -> Bool { true }

  /// Hashes nothing.
  public func hash(into hasher: inout Hasher) {}
}

extension ModelRevision: Codable {
  /// Creates the revision of a model that was never saved, whatever the decoder has.
  public init(from decoder: any Decoder) { self.init() }

  /// Encodes null. Members of an object are left out by `DocumentEncoder`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encodeNil()
  }
}

extension ModelRevision: CustomStringConvertible {
  /// The revision's ID.
  public var description: String { revisionID.map { $0.description } ?? "(not saved)" }
}

extension DocumentStore {
  /// Tells a model that `saved` is its revision now: for good, or until the open batch is rolled back.
  package func note(_ saved: SavedRevision, in revision: inout ModelRevision) {
    revision.note(saved, in: openRun)
  }
}
