import Fleece

/// A document to be saved: new, or read and changed.
///
/// A value: a copy changes by itself. What is nested is changed in place:
///
/// ```swift
/// var hotel = MutableDocument(id: "hotel_1", ["type": "hotel"])
/// hotel["geo"]["lat"] = 51.5
/// hotel["likes"].append("Alice")
/// hotel.set(Date(), forKey: "updated")
/// ```
public struct MutableDocument: Sendable {
  /// The document's ID.
  public let id: String
  /// The body: an object.
  public var body: JSONValue
  /// The revision it is based on: nil for a new document.
  ///
  /// When the transaction that saved it is rolled back, that is again the one from before.
  public var revisionID: RevisionID? { base.revisionID }
  /// The sequence of that revision, 0 of a new document.
  public var sequence: UInt64 { base.sequence }
  var base: DocumentBase

  /// A new document; without an ID it gets a UUID.
  public init(id: String? = nil, _ body: JSONValue = [:]) {
    self.id = id ?? DocumentID.random()
    self.body = body
    base = DocumentBase()
  }

  /// A stored document to change. Throws `damaged` when its body can't be read.
  public init(_ document: Document) throws {
    id = document.id
    body = try document.value()
    base = DocumentBase(document.revisionID, document.sequence)
  }

  /// The property of that name; a missing one reads as null, setting it adds it.
  public subscript(name: String) -> JSONValue {
    get { body[name] }
    _modify { yield &body[name] }
  }

  /// Sets the property of that name.
  public mutating func set(_ value: some JSONConvertible, forKey key: String) { body[key] = value.jsonValue }

  /// Takes a property out and returns it, or nil when there is none.
  @discardableResult
  public mutating func remove(_ name: String) -> JSONValue? { body.remove(name) }

  /// The number of properties.
  public var count: Int { body.count }
}

extension MutableDocument: KeyedProperties {
  /// The value of that name, nil when there is none.
  public func member(_ name: String) -> JSONValue? { body.object?[name] }

  /// The names of all properties, in no particular order.
  public var keys: [String] { body.object?.keys ?? [] }
}

extension MutableDocument: Hashable {
  /// Whether both have the same ID and the same properties, whatever they are based on.
  public static func == (left: MutableDocument, right: MutableDocument) -> Bool {
    left.id.utf8.elementsEqual(right.id.utf8) && left.body == right.body
  }

  /// Hashes the ID.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
