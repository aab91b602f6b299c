import Fleece

// Values from and to those in memory, and to JSON text.

extension EvaluationArena {
  /// A value in this arena, as parameters are given.
  func value(of json: JSONValue) -> QueryValue {
    switch json {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return QueryValue(value)
    case .double(let value): return QueryValue(finite: value)
    case .string(let value): return .string(copy(value))
    case .data(let bytes): return .data(bytes.withUnsafeBytes { copy(TextSlice($0)) })
    case .array(let items):
      let copies = allocate(items.count, of: QueryValue.self)
      for (index, item) in items.enumerated() { copies[index] = value(of: item) }
      return array(copies, items.count)
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
  /// The value in memory, nil when it is missing.
  ///
  /// - Throws: `FleeceError` where a body is damaged.
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

  /// Appends the value's JSON text; what is missing is written as null. Members are in order of their names' bytes.
  ///
  /// - Throws: `FleeceError` where a body is damaged.
  func writeJSON(_ sharedKeys: SharedKeys, into output: inout [UInt8]) throws(FleeceError) {
    switch self {
    case .missing, .null: output.append(contentsOf: "null".utf8)
    case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
    case .int(let value): output.append(contentsOf: String(value).utf8)
    case .uint(let value): output.append(contentsOf: String(value).utf8)
    case .double(let value): appendJSON(value, to: &output)
    case .string(let text): appendJSON(text, to: &output)
    case .data(let bytes): appendBase64(bytes, to: &output)
    case .array(let value), .object(let value):
      try value.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &output)
    case .computedArray(let array):
      output.append(0x5B)
      for index in 0..<array.count {
        if index > 0 { output.append(0x2C) }
        try array.items[index].writeJSON(sharedKeys, into: &output)
      }
      output.append(0x5D)
    case .computedObject(let object):
      output.append(0x7B)
      for index in 0..<object.count {
        if index > 0 { output.append(0x2C) }
        appendJSON(object.members[index].name, to: &output)
        output.append(0x3A)
        try object.members[index].value.writeJSON(sharedKeys, into: &output)
      }
      output.append(0x7D)
    }
  }
}

/// A number as canonical JSON has it: 1.0 is `1.0`, so that it stays a double.
private func appendJSON(_ value: Double, to output: inout [UInt8]) {
  output.append(contentsOf: value.description.utf8)
}

/// Text between quotes, with escapes; bytes that aren't UTF-8 stay as they are.
func appendJSON(_ text: TextSlice, to output: inout [UInt8]) {
  output.append(0x22)
  for byte in text.utf8 {
    switch byte {
    case 0x22, 0x5C:
      output.append(0x5C)
      output.append(byte)
    case 0x08: output.append(contentsOf: "\\b".utf8)
    case 0x09: output.append(contentsOf: "\\t".utf8)
    case 0x0A: output.append(contentsOf: "\\n".utf8)
    case 0x0C: output.append(contentsOf: "\\f".utf8)
    case 0x0D: output.append(contentsOf: "\\r".utf8)
    case 0..<0x20:
      let digits = Array("0123456789abcdef".utf8)
      output.append(contentsOf: "\\u00".utf8)
      output.append(digits[Int(byte >> 4)])
      output.append(digits[Int(byte & 15)])
    default: output.append(byte)
    }
  }
  output.append(0x22)
}

private func appendBase64(_ bytes: TextSlice, to output: inout [UInt8]) {
  let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  output.append(0x22)
  var index = 0
  while index < bytes.count {
    let left = bytes.count - index
    let word =
      UInt32(bytes.start[index]) << 16 | (left > 1 ? UInt32(bytes.start[index + 1]) << 8 : 0)
      | (left > 2 ? UInt32(bytes.start[index + 2]) : 0)
    output.append(digits[Int(word >> 18)])
    output.append(digits[Int(word >> 12 & 63)])
    output.append(left > 1 ? digits[Int(word >> 6 & 63)] : 0x3D)
    output.append(left > 2 ? digits[Int(word & 63)] : 0x3D)
    index += 3
  }
  output.append(0x22)
}
