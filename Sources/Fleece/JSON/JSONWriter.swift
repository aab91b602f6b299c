/// Puts JSON text together piece by piece. Strings, numbers and data are written as canonical JSON has them
/// (docs/fleece.md), so that a row of a query reads as the document that it came from.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.append(byte: UInt8(ascii: "["))
/// writer.append(string: "a\tb")
/// writer.append(byte: UInt8(ascii: "]"))
/// output.append(contentsOf: writer.bytes)        // ["a\tb"]
/// ```
///
/// The caller writes brackets, braces, colons and commas.
public struct JSONWriter: ~Copyable {
  private var text: ByteBuffer

  /// A writer of nothing yet, with room for `capacity` bytes.
  public init(capacity: Int = 256) { text = ByteBuffer(capacity: max(16, capacity)) }

  deinit { text.free() }

  /// How many bytes were written.
  public var count: Int { text.count }

  /// Calls `body` with what was written, which stays until `body` returns.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(text.bytes)
  }

  /// Appends what was written to `output`.
  public func write(to output: inout [UInt8]) { output.append(contentsOf: text.bytes) }

  /// What was written.
  public var string: String { String(decoding: text.bytes, as: UTF8.self) }

  /// Forgets what was written, and keeps the memory.
  public mutating func removeAll() { text.count = 0 }

  // MARK: Pieces

  /// Appends a byte as it is.
  public mutating func append(byte: UInt8) { text.appendByte(byte) }

  /// Appends JSON text as it is.
  public mutating func append(json: UnsafeRawBufferPointer) {
    guard let start = json.baseAddress else { return }
    text.append(start.assumingMemoryBound(to: UInt8.self), json.count)
  }

  /// Appends `null`.
  public mutating func appendNull() { text.appendWord(0x6C6C_756E, count: 4) }

  /// Appends `true` or `false`.
  public mutating func append(_ value: Bool) {
    value ? text.appendWord(0x6575_7274, count: 4) : text.appendWord(0x65_736C_6166, count: 5)
  }

  /// Appends an integer.
  public mutating func append(_ value: Int64) { text.appendInteger(value) }

  /// Appends an integer.
  public mutating func append(_ value: UInt64) { text.appendInteger(value) }

  /// Appends a number. One that isn't finite has no JSON form and is written as `null`.
  public mutating func append(_ value: Double) {
    value.isFinite ? text.appendDouble(value) : appendNull()
  }

  /// Appends a string between quotes, with escapes. Bytes that aren't UTF-8 stay as they are.
  public mutating func append(string utf8: UnsafeRawBufferPointer) {
    guard let start = utf8.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return text.appendWord(0x2222, count: 2)
    }
    text.appendJSONString(start, utf8.count, readable: start + utf8.count)
  }

  /// Appends a string between quotes, with escapes.
  public mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(string: UnsafeRawBufferPointer($0)) }
  }

  /// Appends binary data as a string of base64.
  public mutating func append(base64 bytes: UnsafeRawBufferPointer) {
    text.appendBase64String(bytes.bindMemory(to: UInt8.self))
  }

  /// Appends a value of a body, its members in the order of their names' bytes.
  ///
  /// - Throws: as `Value.writeJSON`.
  public mutating func append(_ value: UnsafeValue, sharedKeys: SharedKeys) throws(FleeceError) {
    try value.writeJSON(sharedKeys: sharedKeys, into: &text)
  }
}

extension String {
  /// The string as JSON text, between quotes and with escapes.
  public var jsonText: String {
    var writer = JSONWriter(capacity: utf8.count + 32)
    writer.append(string: self)
    return writer.string
  }
}
