import Bytes

/// Builds JSON text piece by piece. Strings, numbers and data are written as in canonical JSON
/// (docs/fleece.md), so that a query row reads like the document that it came from.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.append(byte: UInt8(ascii: "["))
/// writer.append(string: "a\tb")
/// writer.append(byte: UInt8(ascii: "]"))
/// writer.write(to: &output)                      // ["a\tb"]
/// ```
///
/// The caller writes brackets, braces, colons and commas.
package struct JSONWriter: ~Copyable {
  private var text: ByteBuffer

  /// Creates an empty writer with room for `capacity` bytes.
  package init(capacity: Int = 256) { text = ByteBuffer(capacity: capacity) }

  /// The number of bytes written.
  package var count: Int { text.count }

  /// Calls `body` with the written bytes. They are valid until `body` returns.
  package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(text.bytes)
  }

  /// Appends the written bytes to `output`.
  package func write(to output: inout [UInt8]) { output.append(contentsOf: text.bytes) }

  /// The written text.
  package var string: String { String(decoding: text.bytes, as: UTF8.self) }

  /// Removes the written bytes and keeps the memory.
  package mutating func removeAll() { text.removeAll() }

  // MARK: Pieces

  /// Appends a byte without escaping.
  package mutating func append(byte: UInt8) { text.append(byte) }

  /// Appends JSON text without changes.
  package mutating func append(json: UnsafeRawBufferPointer) { text.append(json) }

  /// Appends `null`.
  package mutating func appendNull() { text.append(word: 0x6C6C_756E, count: 4) }

  /// Appends `true` or `false`.
  package mutating func append(_ value: Bool) {
    value ? text.append(word: 0x6575_7274, count: 4) : text.append(word: 0x65_736C_6166, count: 5)
  }

  /// Appends an integer.
  package mutating func append(_ value: Int64) { text.appendInteger(value) }

  /// Appends an integer.
  package mutating func append(_ value: UInt64) { text.appendInteger(value) }

  /// Appends a number. A number that isn't finite has no JSON form and is written as `null`.
  package mutating func append(_ value: Double) {
    value.isFinite ? text.appendDouble(value) : appendNull()
  }

  /// Appends a string between quotes, with escapes. Bytes that aren't UTF-8 are copied.
  package mutating func append(string utf8: UnsafeRawBufferPointer) {
    guard let start = utf8.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return text.append(word: 0x2222, count: 2)
    }
    text.appendJSONString(start, utf8.count, readable: start + utf8.count)
  }

  /// Appends a string between quotes, with escapes.
  package mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(string: UnsafeRawBufferPointer($0)) }
  }

  /// Appends binary data as a base64 string.
  package mutating func append(base64 bytes: UnsafeRawBufferPointer) {
    text.appendBase64String(bytes.bindMemory(to: UInt8.self))
  }

  /// Appends a value of a body. Members are in the byte order of their names.
  ///
  /// - Throws: the errors of `Value.writeJSON`.
  package mutating func append(_ value: UnsafeValue, sharedKeys: SharedKeys) throws(FleeceError) {
    try value.writeJSON(sharedKeys: sharedKeys, into: &text)
  }

  /// Appends the members of an object behind others that have been written: a comma before each, without braces. They
  /// have the order of the body.
  ///
  /// - Throws: the errors of `Value.writeJSON`.
  package mutating func append(membersOf object: Value, sharedKeys: SharedKeys) throws(FleeceError) {
    let start = text.count
    try object.unsafeValue.writeJSON(sharedKeys: sharedKeys, canonical: false, into: &text)
    if text.count <= start + 2 { return text.truncate(to: start) }
    text.base[start] = UInt8(ascii: ",")
    text.truncate(to: text.count - 1)
  }

  /// Appends bytes that `body` writes without escapes.
  package mutating func append<Failure: Error>(
    _ body: (inout ByteBuffer) throws(Failure) -> Void
  ) throws(Failure) {
    try body(&text)
  }
}

extension String {
  /// The string as JSON text: in quotes and with escapes.
  package var jsonText: String {
    var writer = JSONWriter(capacity: utf8.count + 32)
    writer.append(string: self)
    return writer.string
  }
}
