import Bytes

/// Encodes values into a key whose byte order is the order of the values (docs/ordered-keys.md).
///
/// Append the values one after another, and optionally a document ID at the end. The buffer grows to the
/// longest key and is reused after `removeAll()`, so appending a value normally allocates nothing. One thread
/// at a time.
///
/// ```swift
/// var key = OrderedKeyEncoder()
/// key.append(string: "hotel")
/// try key.append(4.5)
/// key.append(documentID: "hotel_1")
/// try key.withUnsafeBytes { try transaction.put($0, value, in: index) }
/// key.removeAll()
/// ```
@usableFromInline package struct OrderedKeyEncoder: ~Copyable, @unchecked Sendable {
  @usableFromInline var buffer: ByteBuffer
  @usableFromInline var depth = 0
  @usableFromInline var lossy: UInt64 = 0
  @usableFromInline var valueIndex = 0

  /// The length of the key so far, in bytes. It may exceed `StorageLimits.maximumKeyBytes`. The caller
  /// decides how to store such keys.
  @inlinable package var count: Int { buffer.count }

  /// The values that decode to something else than was encoded, as a bit set. Bit 0 is the first value, bit
  /// 63 is the 64th and all later ones.
  ///
  /// An integral double decodes to an integer, also inside arrays and objects. A collation key never decodes
  /// to its string.
  @inlinable package var lossyValues: UInt64 { lossy }

  /// An empty key.
  package init(capacity: Int = 256) {
    buffer = ByteBuffer(capacity: capacity)
  }

  /// Empties the key and keeps the buffer.
  @inlinable
  package mutating func removeAll() {
    buffer.removeAll()
    depth = 0
    valueIndex = 0
    lossy = 0
  }

  /// The key so far. The bytes are valid until `body` returns.
  @inlinable
  package func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(buffer.bytes)
  }

  /// A copy of the key so far.
  package var bytes: [UInt8] { [UInt8](buffer.bytes) }

  /// Appends the value of a property that is missing.
  @inlinable
  package mutating func appendMissing() { append(code: OrderedKeyCode.missing) }

  /// Appends a JSON null.
  @inlinable
  package mutating func appendNull() { append(code: OrderedKeyCode.null) }

  /// Appends a boolean.
  @inlinable
  package mutating func append(_ value: Bool) {
    append(code: value ? OrderedKeyCode.true : OrderedKeyCode.false)
  }

  /// Appends a string as UTF-8. The UTF-8 isn't validated.
  @inlinable
  package mutating func append(utf8: UnsafeRawBufferPointer) { append(utf8, code: OrderedKeyCode.string) }

  /// Appends a string.
  package mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(utf8: UnsafeRawBufferPointer($0)) }
  }

  /// Appends a collation key: bytes, made from a string by a collator, whose order is the collator's. The
  /// string can't be decoded from it.
  package mutating func append(collationKey: UnsafeRawBufferPointer) {
    append(collationKey, code: OrderedKeyCode.collationKey, isLossy: true)
  }

  /// Appends binary data.
  @inlinable
  package mutating func append(bytes: UnsafeRawBufferPointer) { append(bytes, code: OrderedKeyCode.bytes) }

  /// Begins an array. Append its items, then call `endArray()`.
  package mutating func beginArray() { begin(OrderedKeyCode.array) }

  /// Ends the innermost array.
  package mutating func endArray() { end() }

  /// Begins an object. Append each name with `append(utf8:)`, then its value; at last call `endObject()`.
  ///
  /// Append the names in byte order, so that equal objects have equal keys.
  package mutating func beginObject() { begin(OrderedKeyCode.object) }

  /// Ends the innermost object.
  package mutating func endObject() { end() }

  /// Appends the ID of the document that the key refers to. It must be the last part of the key.
  @inlinable
  package mutating func append(documentID utf8: UnsafeRawBufferPointer) {
    buffer.append(utf8)
  }

  /// Appends the ID of the document that the key refers to. It must be the last part of the key.
  package mutating func append(documentID: String) {
    var documentID = documentID
    documentID.withUTF8 { append(documentID: UnsafeRawBufferPointer($0)) }
  }

  @inlinable
  mutating func append(code: UInt8) {
    buffer.append(code)
    valueEnded(isLossy: false)
  }

  private mutating func begin(_ code: UInt8) {
    buffer.append(code)
    depth += 1
  }

  private mutating func end() {
    precondition(depth > 0, "the end of an array or object that has no beginning")
    depth -= 1
    append(code: OrderedKeyCode.end)
  }

  @usableFromInline
  mutating func append(_ text: UnsafeRawBufferPointer, code: UInt8, isLossy: Bool = false) {
    // In the worst case every byte is escaped.
    buffer.reserve(text.count * 2 + 10)
    var to = UnsafeMutableRawPointer(buffer.base + count)
    to.storeBytes(of: code, as: UInt8.self)
    to += 1
    if var from = text.baseAddress {
      let end = from + text.count
      // Copies eight bytes at a time while none of them is 0 or 1, which is the usual case.
      while end - from >= 8 {
        let word = from.loadUnaligned(as: UInt64.self)
        let high = word & 0xFEFE_FEFE_FEFE_FEFE
        if (high &- 0x0101_0101_0101_0101) & ~high & 0x8080_8080_8080_8080 != 0 { break }
        to.storeBytes(of: word, as: UInt64.self)
        to += 8
        from += 8
      }
      while from < end {
        let byte = from.load(as: UInt8.self)
        from += 1
        if byte < 2 {
          to.storeBytes(of: OrderedKeyCode.escape, as: UInt8.self)
          to.storeBytes(of: byte + 1, toByteOffset: 1, as: UInt8.self)
          to += 2
        } else {
          to.storeBytes(of: byte, as: UInt8.self)
          to += 1
        }
      }
    }
    to.storeBytes(of: OrderedKeyCode.end, as: UInt8.self)
    buffer.count = to + 1 - UnsafeMutableRawPointer(buffer.base)
    valueEnded(isLossy: isLossy)
  }

  /// Marks the current value as lossy if needed. Counts a value that isn't inside an array or object.
  @inlinable
  mutating func valueEnded(isLossy: Bool) {
    if isLossy { lossy |= 1 << UInt64(min(valueIndex, 63)) }
    if depth == 0 { valueIndex += 1 }
  }

  /// Stores eight bytes, big-endian. The caller has reserved the room.
  @inlinable
  func store(_ word: UInt64, at offset: Int) {
    UnsafeMutableRawPointer(buffer.base + offset).storeBytes(of: word.bigEndian, as: UInt64.self)
  }
}
