/// Writes values into a key whose byte order is the order of the values (docs/ordered-keys.md).
///
/// Values are appended one after the other, and a document ID may close the key. The buffer grows to the
/// longest key and is used again after `removeAll()`: nothing is allocated a value. One thread at a time.
///
/// ```swift
/// var key = OrderedKeyEncoder()
/// key.append(string: "hotel")
/// try key.append(4.5)
/// key.append(documentID: "hotel_1")
/// try key.withUnsafeBytes { try transaction.put($0, value, in: index) }
/// key.removeAll()
/// ```
public struct OrderedKeyEncoder: ~Copyable, @unchecked Sendable {
  @usableFromInline var base: UnsafeMutablePointer<UInt8>
  @usableFromInline var capacity: Int
  @usableFromInline var length = 0
  @usableFromInline var depth = 0
  @usableFromInline var lossy: UInt64 = 0
  @usableFromInline var valueIndex = 0

  /// The length of the key so far, in bytes. It may be above `StorageLimits.maximumKeyBytes`: what becomes of
  /// such keys is up to whoever keeps them.
  @inlinable public var count: Int { length }

  /// The values (bit 0 for the first, bit 63 for the 64th and all after it) that aren't read back as what they
  /// were: integral doubles are read back as integers, and so are those inside of arrays and objects;
  /// collation keys never give the string back.
  @inlinable public var lossyValues: UInt64 { lossy }

  /// An empty key.
  public init(capacity: Int = 256) {
    self.capacity = max(capacity, 32)
    base = .allocate(capacity: self.capacity)
  }

  deinit { base.deallocate() }

  /// Begins a new key.
  @inlinable
  public mutating func removeAll() {
    length = 0
    depth = 0
    valueIndex = 0
    lossy = 0
  }

  /// The key so far. The bytes are valid until `body` returns.
  @inlinable
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  /// The key so far, as an array of its own.
  public var bytes: [UInt8] { [UInt8](UnsafeBufferPointer(start: base, count: count)) }

  /// A property that isn't there.
  @inlinable
  public mutating func appendMissing() { append(code: OrderedKeyCode.missing) }

  /// A JSON null.
  @inlinable
  public mutating func appendNull() { append(code: OrderedKeyCode.null) }

  /// A boolean.
  @inlinable
  public mutating func append(_ value: Bool) {
    append(code: value ? OrderedKeyCode.true : OrderedKeyCode.false)
  }

  /// A string by its UTF-8, of which nothing is checked.
  @inlinable
  public mutating func append(utf8: UnsafeRawBufferPointer) { append(utf8, code: OrderedKeyCode.string) }

  /// A string.
  public mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(utf8: UnsafeRawBufferPointer($0)) }
  }

  /// What a collator made of a string so that byte order is its order. The string isn't given back.
  public mutating func append(collationKey: UnsafeRawBufferPointer) {
    append(collationKey, code: OrderedKeyCode.collationKey, isLossy: true)
  }

  /// Binary data.
  @inlinable
  public mutating func append(bytes: UnsafeRawBufferPointer) { append(bytes, code: OrderedKeyCode.bytes) }

  /// Begins an array, whose items are appended until `endArray()`.
  public mutating func beginArray() { begin(OrderedKeyCode.array) }

  /// Ends the array begun last.
  public mutating func endArray() { end() }

  /// Begins an object, whose members are appended until `endObject()`: each a name, by `append(utf8:)`, and a
  /// value. For objects to be equal whatever the order they were written in, append names in byte order.
  public mutating func beginObject() { begin(OrderedKeyCode.object) }

  /// Ends the object begun last.
  public mutating func endObject() { end() }

  /// The ID of the document that the key leads to: the last thing in a key.
  @inlinable
  public mutating func append(documentID utf8: UnsafeRawBufferPointer) {
    reserve(utf8.count)
    if let source = utf8.baseAddress {
      UnsafeMutableRawPointer(base + count).copyMemory(from: source, byteCount: utf8.count)
    }
    length += utf8.count
  }

  /// The ID of the document that the key leads to: the last thing in a key.
  public mutating func append(documentID: String) {
    var documentID = documentID
    documentID.withUTF8 { append(documentID: UnsafeRawBufferPointer($0)) }
  }

  @inlinable
  mutating func append(code: UInt8) {
    reserve(1)
    base[count] = code
    length += 1
    valueEnded(isLossy: false)
  }

  private mutating func begin(_ code: UInt8) {
    reserve(1)
    base[count] = code
    length += 1
    depth += 1
  }

  private mutating func end() {
    precondition(depth > 0, "the end of an array or object that was not begun")
    depth -= 1
    append(code: OrderedKeyCode.end)
  }

  @usableFromInline
  mutating func append(_ text: UnsafeRawBufferPointer, code: UInt8, isLossy: Bool = false) {
    // Every byte may have to be escaped.
    reserve(text.count * 2 + 10)
    var to = UnsafeMutableRawPointer(base + count)
    to.storeBytes(of: code, as: UInt8.self)
    to += 1
    if var from = text.baseAddress {
      let end = from + text.count
      // Eight bytes at a time as long as none is 0 or 1, which is nearly always.
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
    length = to + 1 - UnsafeMutableRawPointer(base)
    valueEnded(isLossy: isLossy)
  }

  /// Counts a value of the tuple itself, and what it loses.
  @inlinable
  mutating func valueEnded(isLossy: Bool) {
    if isLossy { lossy |= 1 << UInt64(min(valueIndex, 63)) }
    if depth == 0 { valueIndex += 1 }
  }

  /// Eight bytes, big-endian, for which there must be room.
  @inlinable
  func store(_ word: UInt64, at offset: Int) {
    UnsafeMutableRawPointer(base + offset).storeBytes(of: word.bigEndian, as: UInt64.self)
  }

  @inlinable
  mutating func reserve(_ bytes: Int) {
    if capacity - count < bytes { grow(bytes) }
  }

  @usableFromInline
  mutating func grow(_ bytes: Int) {
    let larger = max(capacity * 2, count + bytes)
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    copy.update(from: base, count: count)
    base.deallocate()
    base = copy
    capacity = larger
  }
}
