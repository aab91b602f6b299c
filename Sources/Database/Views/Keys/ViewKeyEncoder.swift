import Bytes
import Fleece
import FoundationEssentials
import Storage

/// Encodes JSON values so that the order of their bytes is a collation's order. ViewKeyCodes.swift has the grammar.
///
/// Values that collate as equal have equal bytes. No value's bytes begin with another's. An encoder is for one thread at a
/// time. What it appends to isn't changed by an error.
package final class ViewKeyEncoder {
  /// The longest encoded value, in bytes. It leaves room for a document ID in the key of a row.
  package static let maximumBytes = LongKeyspace.maximumKeyBytes - 1_024

  /// The order of the keys.
  package let collation: ViewCollation
  /// The version of ICU's data and of the rule that the encoder adds; empty if it uses none. Keys of another version
  /// aren't in the same order.
  package var collatorVersion: String { collator?.version ?? "" }

  /// The same of an encoder that would be made; empty, too, if ICU has no collator.
  static func collatorVersion(_ collation: ViewCollation) -> String {
    switch collation {
    case .unicode: ViewCollator.version(hasGuideOrder: true)
    case .root: ViewCollator.version(hasGuideOrder: false)
    case .ascii, .raw: ""
    }
  }

  let codes: ViewKeyCodes
  let collator: ViewCollator?
  /// The order of numbers is that of index keys.
  @exclusivity(unchecked) var number = OrderedKeyEncoder(capacity: 64)
  /// A string whose escapes are decoded.
  @exclusivity(unchecked) var text = ByteBuffer(capacity: 256)
  /// The closing bytes of arrays and objects that are open in a JSON text.
  @exclusivity(unchecked) var closers: [UInt8] = []

  /// No encoding goes on behind this length of what it is appended to, until the value's own length is known.
  @exclusivity(unchecked) private var farthest = 0

  /// Throws `ViewKeyError.collator` if ICU has no collator.
  package init(_ collation: ViewCollation) throws {
    self.collation = collation
    codes = ViewKeyCodes(collation)
    switch collation {
    case .unicode: collator = try ViewCollator(hasGuideOrder: true)
    case .root: collator = try ViewCollator(hasGuideOrder: false)
    case .ascii, .raw: collator = nil
    }
  }

  /// Appends the value of a JSON text. Members of objects keep their order. Half of a surrogate pair, and bytes that aren't
  /// UTF-8, are U+FFFD. Throws `ViewKeyError`.
  package func append(json: UnsafeRawBufferPointer, to key: inout ByteBuffer) throws {
    try append(to: &key) { key in try read(json, to: &key) }
  }

  /// Appends a value. Members of objects are in the order of their names' bytes. Throws `ViewKeyError`.
  package func append(_ value: JSONValue, to key: inout ByteBuffer) throws {
    try append(to: &key) { key in try append(value, depth: 0, to: &key) }
  }

  /// Appends a value in place. Members of objects are in the order of their names' bytes. Throws `ViewKeyError`.
  package func append(_ value: UnsafeValue, sharedKeys: SharedKeys, to key: inout ByteBuffer) throws {
    if value.type == .int, let int = value.int { return append(int, to: &key) }
    try append(to: &key) { key in try append(value, sharedKeys, depth: 0, to: &key) }
  }

  private func append(to key: inout ByteBuffer, _ body: (inout ByteBuffer) throws -> Void) throws {
    let start = key.count
    farthest = start + 4 * LongKeyspace.maximumKeyBytes
    // Memory for one long text isn't kept.
    defer { text.removeAll(keepingAtMost: 1 << 16) }
    do {
      try body(&key)
      try checkLength(from: start, of: key)
    } catch {
      key.truncate(to: start)
      throw error
    }
  }

  private func checkLength(from start: Int, of key: borrowing ByteBuffer) throws {
    if key.count - start > Self.maximumBytes { throw ViewKeyError.tooLong(limit: Self.maximumBytes) }
  }

  // MARK: Values

  private func append(_ value: JSONValue, depth: Int, to key: inout ByteBuffer) throws {
    switch value {
    case .null: key.append(codes.null)
    case .bool(let value): key.append(value ? codes.true : codes.false)
    case .int(let value): append(value, to: &key)
    case .uint(let value): append(value, to: &key)
    case .double(let value): try append(value, to: &key)
    case .string(var string): try string.withUTF8 { try append(text: UnsafeRawBufferPointer($0), to: &key) }
    case .data(let data): try data.withUnsafeBytes { try append(data: $0, to: &key) }
    case .array(let items):
      try checkDepth(depth)
      key.append(codes.array)
      for item in items { try append(item, depth: depth + 1, to: &key) }
      key.append(ViewKeyCodes.end)
    case .object(let members):
      try checkDepth(depth)
      key.append(codes.object)
      for var name in members.keys.sortedByBytes() {
        let member = members[name] ?? .null
        try name.withUTF8 { try append(text: UnsafeRawBufferPointer($0), to: &key) }
        try append(member, depth: depth + 1, to: &key)
      }
      key.append(ViewKeyCodes.end)
    }
    try checkStep(key)
  }

  private func append(
    _ value: UnsafeValue, _ sharedKeys: SharedKeys, depth: Int, to key: inout ByteBuffer
  ) throws {
    switch value.type {
    case .null: key.append(codes.null)
    case .bool: key.append(value.bool == true ? codes.true : codes.false)
    case .int:
      if let int = value.int {
        append(int, to: &key)
      } else if let uint = value.uint {
        append(uint, to: &key)
      } else {
        throw ViewKeyError.damaged
      }
    case .double:
      guard let double = value.double else { throw ViewKeyError.damaged }
      try append(double, to: &key)
    case .string:
      guard let utf8 = value.utf8 else { throw ViewKeyError.damaged }
      try append(text: utf8, to: &key)
    case .data:
      guard let data = value.data else { throw ViewKeyError.damaged }
      try append(data: data, to: &key)
    case .array:
      try checkDepth(depth)
      key.append(codes.array)
      for index in 0..<value.count {
        guard let item = value[index] else { throw ViewKeyError.damaged }
        try append(item, sharedKeys, depth: depth + 1, to: &key)
      }
      key.append(ViewKeyCodes.end)
    case .dict:
      try checkDepth(depth)
      key.append(codes.object)
      var members: [(name: UnsafeRawBufferPointer, value: UnsafeValue)] = []
      for entry in value.entries {
        guard let name = entry.utf8(in: sharedKeys) else { throw ViewKeyError.damaged }
        members.append((name, entry.value))
      }
      members.sort { compareBytes($0.name, $1.name) < 0 }
      for (name, member) in members {
        try append(text: name, to: &key)
        try append(member, sharedKeys, depth: depth + 1, to: &key)
      }
      key.append(ViewKeyCodes.end)
    }
    try checkStep(key)
  }

  private func checkDepth(_ depth: Int) throws {
    if depth >= FleeceLimits.depth { throw ViewKeyError.tooDeep(limit: FleeceLimits.depth) }
  }

  /// Ends the encoding of a value that is far too large before it takes all memory.
  func checkStep(_ key: borrowing ByteBuffer) throws {
    if key.count > farthest { throw ViewKeyError.tooLong(limit: Self.maximumBytes) }
  }

  // MARK: Scalars

  func append(_ value: Int64, to key: inout ByteBuffer) {
    number.removeAll()
    number.append(value)
    number.withUnsafeBytes { key.append($0) }
  }

  func append(_ value: UInt64, to key: inout ByteBuffer) {
    number.removeAll()
    number.append(value)
    number.withUnsafeBytes { key.append($0) }
  }

  func append(_ value: Double, to key: inout ByteBuffer) throws {
    guard value.isFinite else { throw ViewKeyError.notFinite }
    number.removeAll()
    try number.append(value)
    number.withUnsafeBytes { key.append($0) }
  }

  /// Appends a string.
  func append(text utf8: UnsafeRawBufferPointer, to key: inout ByteBuffer) throws {
    // Few characters have no weight, so no usual text of this length fits a key.
    guard utf8.count <= 4 * LongKeyspace.maximumKeyBytes else {
      throw ViewKeyError.tooLong(limit: Self.maximumBytes)
    }
    key.append(codes.string)
    if let collator { return try collator.append(utf8, to: &key) }
    if isASCII(utf8) || String(validating: utf8, as: UTF8.self) != nil {
      append(escaping: utf8, to: &key)
    } else {
      var repaired = String(decoding: utf8, as: UTF8.self)
      repaired.withUTF8 { append(escaping: UnsafeRawBufferPointer($0), to: &key) }
    }
  }

  private func append(escaping utf8: UnsafeRawBufferPointer, to key: inout ByteBuffer) {
    key.reserve(2 * utf8.count + 1)
    var index = 0
    while index < utf8.count {
      let byte = utf8[index]
      if byte < 2 {
        key.append(1)
        key.append(byte + 1)
      } else if byte == 0xEF, index + 2 < utf8.count, utf8[index + 1] == 0xBF, utf8[index + 2] == 0xBF {
        key.append(0xFF)
        index += 2
      } else {
        key.append(byte)
      }
      index += 1
    }
    key.append(ViewKeyCodes.end)
  }

  /// Appends binary data as the string that it is in JSON.
  private func append(data: UnsafeRawBufferPointer, to key: inout ByteBuffer) throws {
    guard data.count <= LongKeyspace.maximumKeyBytes else {
      throw ViewKeyError.tooLong(limit: Self.maximumBytes)
    }
    let base64 = Array(Data(data).base64EncodedString().utf8)
    try base64.withUnsafeBytes { try append(text: $0, to: &key) }
  }
}

/// Whether all bytes are ASCII.
func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
  var index = 0
  while index + 8 <= bytes.count {
    if bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
      return false
    }
    index += 8
  }
  while index < bytes.count {
    if bytes[index] >= 0x80 { return false }
    index += 1
  }
  return true
}
