extension JSONWriter {
  /// Appends a value in memory. Members keep their order, and binary data become base64 strings.
  ///
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`. Some text may have been appended then.
  package mutating func append(_ value: JSONValue) throws(FleeceError) { try append(value, depth: 0) }

  private mutating func append(_ value: JSONValue, depth: Int) throws(FleeceError) {
    switch value {
    case .null: appendNull()
    case .bool(let value): append(value)
    case .int(let value): append(value)
    case .uint(let value): append(value)
    case .double(let value):
      guard value.isFinite else { throw .notFinite }
      append(value)
    case .string(let value): append(string: value)
    case .data(let value): value.withUnsafeBytes { append(base64: $0) }
    case .array(let items):
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      append(byte: UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { append(byte: UInt8(ascii: ",")) }
        try append(item, depth: depth + 1)
      }
      append(byte: UInt8(ascii: "]"))
    case .object(let members):
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      append(byte: UInt8(ascii: "{"))
      var isFirst = true
      for (name, member) in members {
        if !isFirst { append(byte: UInt8(ascii: ",")) }
        isFirst = false
        append(string: name)
        append(byte: UInt8(ascii: ":"))
        try append(member, depth: depth + 1)
      }
      append(byte: UInt8(ascii: "}"))
    }
  }
}

extension JSONValue {
  /// The JSON text of this value. Members keep their order.
  ///
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`.
  package func jsonText() throws(FleeceError) -> [UInt8] {
    var writer = JSONWriter()
    try writer.append(self)
    var text: [UInt8] = []
    writer.write(to: &text)
    return text
  }
}
