import Fleece

/// A document that can be changed and saved: a new one, or one that was read.
///
/// It is a value type: copies change independently. Nested values are changed in place:
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
  /// The body, an object.
  public var body: JSONValue
  /// The revision that it is based on, nil for a new document.
  ///
  /// When the transaction that saved it is rolled back, this is the earlier revision again.
  public var revisionID: RevisionID? { base.revisionID }
  /// The sequence of that revision, 0 for a new document.
  public var sequence: UInt64 { base.sequence }
  var base: DocumentBase

  /// Creates a new document. Without an ID it gets a random UUID.
  public init(id: String? = nil, _ body: JSONValue = [:]) {
    self.id = id ?? DocumentID.random()
    self.body = body
    base = DocumentBase()
  }

  /// Creates a mutable copy of a stored document. Throws `damaged` when its body can't be read.
  public init(_ document: Document) throws {
    id = document.id
    body = try document.value()
    base = DocumentBase(document.revisionID, document.sequence)
  }

  /// The property with this name. A missing property reads as null. Setting it adds it. Setting `.null`
  /// stores null, and setting nil removes the property.
  public subscript(name: String) -> JSONValue {
    get { body[name] }
    set { body[name] = newValue }
    _modify { yield &body[name] }
  }

  /// The property with this name, or nil. Setting nil removes the property.
  ///
  /// Swift takes this subscript where the value is optional: `hotel["fax"] = nil`.
  @_disfavoredOverload
  public subscript(name: String) -> JSONValue? {
    get { member(name) }
    set { body[name] = newValue }
  }

  /// Sets the property with this name, or removes it if `value` is nil.
  public mutating func set(_ value: (some JSONConvertible)?, forKey key: String) {
    body[key] = value?.jsonValue
  }

  /// Sets the property with this name, or removes it if `value` is nil; `.null` stores null.
  public mutating func set(_ value: JSONValue?, forKey key: String) { body[key] = value }

  /// Removes a property and returns it, or nil if there is none.
  @discardableResult
  public mutating func remove(_ name: String) -> JSONValue? { body.remove(name) }

  /// The number of properties.
  public var count: Int { body.count }
}

extension MutableDocument: KeyedProperties {
  /// Returns the value with this name, nil if there is none.
  public func member(_ name: String) -> JSONValue? { body.object?[name] }

  /// The names of all properties, in no particular order.
  public var keys: [String] { body.object?.keys ?? [] }
}

extension MutableDocument: Hashable {
  /// Returns whether both have the same ID and the same properties. Revisions aren't compared.
  public static func == (left: MutableDocument, right: MutableDocument) -> Bool {
    left.id.utf8.elementsEqual(right.id.utf8) && left.body == right.body
  }

  /// Hashes the ID.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
