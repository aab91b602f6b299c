import Fleece

/// A JSON value whose objects keep the order of their members. A selector's conditions, the columns of an index and the fields of a
/// request have an order, which `JSONValue` doesn't keep.
package indirect enum OrderedJSON: Sendable {
  /// Null, a boolean, a number or a string.
  case scalar(JSONValue)
  case array([OrderedJSON])
  /// Of members with the same name, only the last one is left.
  case object([Member])

  package struct Member: Sendable {
    package var name: String
    package var value: OrderedJSON

    package init(name: String, value: OrderedJSON) {
      self.name = name
      self.value = value
    }
  }

  /// Parses a text. Throws CouchDB's error for what isn't JSON.
  package init(parsing text: [UInt8]) throws {
    // The parser bounds the depth, and so the recursion.
    _ = try CouchDBParameter.parsed(text)
    self = try text.withUnsafeBytes { text in
      var scanner = JSONScanner(text, nil, invalid: CouchDBError.invalidJSON)
      return try OrderedJSON(&scanner)
    }
  }

  private init(_ scanner: inout JSONScanner) throws {
    switch scanner.kind {
    case UInt8(ascii: "["):
      var items: [OrderedJSON] = []
      try scanner.array { items.append(try OrderedJSON(&$0)) }
      self = .array(items)
    case UInt8(ascii: "{"):
      var members: [Member] = []
      try scanner.object { scanner, member in
        let quoted = member.name.lowerBound - 1..<member.name.upperBound + 1
        let name = try Self.scalar(scanner.text, quoted).string ?? ""
        members.removeAll { $0.name.utf8.elementsEqual(name.utf8) }
        members.append(Member(name: name, value: try OrderedJSON(&scanner)))
      }
      self = .object(members)
    default: self = .scalar(try Self.scalar(scanner.text, scanner.value()))
    }
  }

  private static func scalar(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) throws -> JSONValue {
    let bytes = UnsafeRawBufferPointer(rebasing: text[range])
    if bytes.count >= 2, bytes[0] == UInt8(ascii: "\""), !bytes.contains(UInt8(ascii: "\\")) {
      return .string(String(decoding: bytes[1..<bytes.count - 1], as: UTF8.self))
    }
    return try CouchDBParameter.parsed(Array(bytes))
  }

  /// A value whose objects have their members in the order of their names' bytes.
  package init(sorting value: JSONValue) {
    switch value {
    case .array(let items): self = .array(items.map { OrderedJSON(sorting: $0) })
    case .object(let members):
      self = .object(
        members.keys.sortedByBytes().map { name in
          Member(name: name, value: OrderedJSON(sorting: members[name] ?? .null))
        })
    default: self = .scalar(value)
    }
  }

  /// The value without the order.
  package var value: JSONValue {
    switch self {
    case .scalar(let value): value
    case .array(let items): .array(items.map(\.value))
    case .object(let members): .object(JSONObject(members.map { ($0.name, $0.value.value) }))
    }
  }

  package var string: String? { if case .scalar(let value) = self { value.string } else { nil } }
  package var bool: Bool? { if case .scalar(let value) = self { value.bool } else { nil } }
  package var int: Int64? {
    if case .scalar(let value) = self, value.isInteger { value.int } else { nil }
  }
  package var isNull: Bool { if case .scalar(.null) = self { true } else { false } }
  package var array: [OrderedJSON]? { if case .array(let items) = self { items } else { nil } }
  package var members: [Member]? { if case .object(let members) = self { members } else { nil } }

  /// The member of an object; nil if there is none.
  package subscript(name: String) -> OrderedJSON? {
    members?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The value as CouchDB's messages show it: an Erlang term. Strings are lists of bytes, and objects are pairs in braces.
  package var term: String {
    switch self {
    case .scalar(.null): "null"
    case .scalar(.bool(let value)): value ? "true" : "false"
    case .scalar(.string(let text)): "<<\(text.utf8.map(String.init).joined(separator: ","))>>"
    case .scalar(let number): (try? number.jsonText()).map { String(decoding: $0, as: UTF8.self) } ?? ""
    case .array(let items): "[\(items.map(\.term).joined(separator: ","))]"
    case .object(let members):
      "{[\(members.map { "{\(OrderedJSON.scalar(.string($0.name)).term),\($0.value.term)}" }.joined(separator: ","))]}"
    }
  }

  /// The same where printable strings are shown as such.
  package var shortTerm: String {
    switch self {
    case .scalar(.string(let text))
    where !text.isEmpty && text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }):
      "<<\"\(text.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined())\">>"
    case .scalar: term
    case .array(let items): "[\(items.map(\.shortTerm).joined(separator: ","))]"
    case .object(let members):
      "{[\(members.map { "{\(OrderedJSON.scalar(.string($0.name)).shortTerm),\($0.value.shortTerm)}" }.joined(separator: ","))]}"
    }
  }

  /// Appends the JSON.
  package func write(to json: inout JSONWriter) {
    switch self {
    case .scalar(let value): try? json.append(value)
    case .array(let items):
      json.append(byte: UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { json.append(byte: UInt8(ascii: ",")) }
        item.write(to: &json)
      }
      json.append(byte: UInt8(ascii: "]"))
    case .object(let members):
      json.append(byte: UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { json.append(byte: UInt8(ascii: ",")) }
        json.append(string: member.name)
        json.append(byte: UInt8(ascii: ":"))
        member.value.write(to: &json)
      }
      json.append(byte: UInt8(ascii: "}"))
    }
  }

  /// The JSON text.
  package var jsonText: [UInt8] {
    var json = JSONWriter()
    write(to: &json)
    var text: [UInt8] = []
    json.write(to: &text)
    return text
  }
}

extension OrderedJSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .scalar(.string(value)) }
  package init(booleanLiteral value: Bool) { self = .scalar(.bool(value)) }
  package init(integerLiteral value: Int64) { self = .scalar(.int(value)) }
  package init(nilLiteral: ()) { self = .scalar(.null) }
  package init(arrayLiteral elements: OrderedJSON...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, OrderedJSON)...) {
    self = .object(elements.map { Member(name: $0.0, value: $0.1) })
  }
}

extension JSONValue {
  /// Whether it is a number without a fraction or an exponent.
  var isInteger: Bool {
    switch self {
    case .int, .uint: true
    default: false
    }
  }
}
