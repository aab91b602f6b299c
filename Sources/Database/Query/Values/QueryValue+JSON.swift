import Fleece

// Conversions between query values and JSON.

extension EvaluationArena {
  /// Makes a value in this arena, for parameters.
  func value(of json: JSONValue) -> QueryValue {
    switch json {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return QueryValue(value)
    case .double(let value): return QueryValue(finite: value)
    case .string(let value): return .string(copy(value))
    case .data(let bytes): return .data(bytes.withUnsafeBytes { copy(TextSlice($0)) })
    case .array(let items): return array(items.map { value(of: $0) })
    case .object(let object):
      let members = allocate(object.count, of: ComputedObject.Member.self)
      for (index, member) in object.enumerated() {
        members[index] = ComputedObject.Member(name: copy(member.key), value: value(of: member.value))
      }
      return self.object(members, object.count)
    }
  }
}

extension QueryValue {
  /// The value as a `JSONValue`. Nil when it is missing.
  ///
  /// - Throws: `FleeceError` when a body is damaged.
  func jsonValue(_ sharedKeys: SharedKeys) throws(FleeceError) -> JSONValue? {
    switch self {
    case .missing: return nil
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return .uint(value)
    case .double(let value): return .double(value)
    case .string(let text): return .string(text.string)
    case .data(let bytes): return .data(Array(bytes.utf8))
    case .array(let value), .object(let value): return try value.jsonValue(sharedKeys: sharedKeys)
    case .computedArray(let array):
      var items: [JSONValue] = []
      items.reserveCapacity(array.count)
      for index in 0..<array.count { items.append(try array.items[index].jsonValue(sharedKeys) ?? .null) }
      return .array(items)
    case .computedObject(let object):
      var members = JSONObject()
      for index in 0..<object.count {
        let member = object.members[index]
        if let value = try member.value.jsonValue(sharedKeys) { members[member.name.string] = value }
      }
      return .object(members)
    }
  }

  /// Appends the value as JSON text. A missing value is written as null. Members of objects are in the order
  /// of their names' bytes.
  ///
  /// - Throws: `FleeceError` when a body is damaged. Then `output` is unchanged.
  func writeJSON(_ sharedKeys: SharedKeys, into output: inout [UInt8]) throws(FleeceError) {
    var writer = JSONWriter()
    try writeJSON(sharedKeys, into: &writer)
    writer.write(to: &output)
  }

  /// The same for a writer.
  func writeJSON(_ sharedKeys: SharedKeys, into writer: inout JSONWriter) throws(FleeceError) {
    switch self {
    case .missing, .null: writer.appendNull()
    case .bool(let value): writer.append(value)
    case .int(let value): writer.append(value)
    case .uint(let value): writer.append(value)
    case .double(let value): writer.append(value)
    case .string(let text): writer.append(string: text.bytes)
    case .data(let bytes): writer.append(base64: bytes.bytes)
    case .array(let value), .object(let value): try writer.append(value, sharedKeys: sharedKeys)
    case .computedArray(let array):
      writer.append(byte: UInt8(ascii: "["))
      for index in 0..<array.count {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        try array.items[index].writeJSON(sharedKeys, into: &writer)
      }
      writer.append(byte: UInt8(ascii: "]"))
    case .computedObject(let object):
      writer.append(byte: UInt8(ascii: "{"))
      for index in 0..<object.count {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        writer.append(string: object.members[index].name.bytes)
        writer.append(byte: UInt8(ascii: ":"))
        try object.members[index].value.writeJSON(sharedKeys, into: &writer)
      }
      writer.append(byte: UInt8(ascii: "}"))
    }
  }
}

extension Literal {
  /// The value as a `JSONValue`. Nil for MISSING.
  var jsonValue: JSONValue? {
    switch self {
    case .missing: nil
    case .null: .null
    case .bool(let value): .bool(value)
    case .int(let value): .int(value)
    case .uint(let value): .uint(value)
    case .double(let value): value.isFinite ? .double(value) : .null
    case .string(let text): .string(text.string)
    }
  }
}
