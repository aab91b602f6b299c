import Fleece

// A field of a selector, a sort or an index is a path:
//
//   field := part ( "." part )*
//   part  := any characters; "\." is a dot. Other backslashes are left out, as in CouchDB.

/// A path into a document. Paths are equal when the bytes of their parts are.
package struct MangoField: Sendable, Equatable {
  /// The names, or the places in arrays. Empty: the value itself, in the conditions of `$elemMatch` and its relatives.
  package private(set) var parts: [String]

  static let itself = MangoField(parts: [])
  /// The most names of a path. Documents aren't as deep.
  static let mostNames = 1_000

  private init(parts: [String]) { self.parts = parts }

  /// Parses a field. Throws CouchDB's error if a part is empty.
  package init(_ text: String) throws {
    var parts: [[UInt8]] = [[]]
    var isEscaped = false
    for byte in text.utf8 {
      if byte == UInt8(ascii: "."), !isEscaped {
        parts.append([])
      } else if byte == UInt8(ascii: "."), isEscaped {
        parts[parts.count - 1].append(byte)
      } else if byte != UInt8(ascii: "\\") {
        parts[parts.count - 1].append(byte)
      }
      isEscaped = byte == UInt8(ascii: "\\")
    }
    guard parts.count <= Self.mostNames else {
      throw CouchDBError(400, "invalid_field_name", "A field has at most \(Self.mostNames) names.")
    }
    guard !parts.contains(where: \.isEmpty) else {
      throw CouchDBError(400, "invalid_field_name", "Invalid field name: \(text)")
    }
    self.parts = parts.map { String(decoding: $0, as: UTF8.self) }
  }

  func appending(_ other: MangoField) -> MangoField { MangoField(parts: parts + other.parts) }

  /// The parts with dots between them, without escapes, as CouchDB shows fields.
  package var joined: String { parts.joined(separator: ".") }

  package static func == (left: MangoField, right: MangoField) -> Bool {
    left.parts.count == right.parts.count
      && zip(left.parts, right.parts).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  /// Whether it is the document's ID.
  var isID: Bool { parts.count == 1 && parts[0] == "_id" }

  /// What is found where a field leads.
  enum Found {
    case value(JSONValue)
    /// An object on the way, or at the end, doesn't have the name.
    case missing
    /// A value on the way is neither an object nor an array with that place.
    case noPath
  }

  /// The value that the field leads to.
  func find(in value: JSONValue) -> Found {
    var value = value
    for part in parts {
      switch value {
      case .object(let members):
        guard let member = members[part] else { return .missing }
        value = member
      case .array(let items):
        guard let place = Int(part), items.indices.contains(place) else { return .noPath }
        value = items[place]
      default: return .noPath
      }
    }
    return .value(value)
  }

  /// An object with what fields lead to in a document.
  package static func choose(_ fields: [MangoField], of document: JSONValue) -> OrderedJSON {
    var object = OrderedJSON.object([])
    for field in fields {
      if case .value(let found) = field.find(in: document) { field.set(found, in: &object) }
    }
    return object
  }

  /// The value in an object whose members are in an order, which gets it: `a.b` becomes `{"a":{"b":…}}`.
  func set(_ value: JSONValue, in object: inout OrderedJSON) { Self.set(value, parts[...], &object) }

  private static func set(_ value: JSONValue, _ parts: ArraySlice<String>, _ object: inout OrderedJSON) {
    guard let name = parts.first else { return object = OrderedJSON(sorting: value) }
    var members = object.members ?? []
    let place = members.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
    var inner = place.map { members[$0].value } ?? .object([])
    set(value, parts.dropFirst(), &inner)
    if let place { members[place].value = inner } else { members.append(.init(name: name, value: inner)) }
    object = .object(members)
  }
}
