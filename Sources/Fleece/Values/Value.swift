/// A value in place inside lent bytes.
///
/// It can't leave the closure that its bytes are lent to: the compiler refuses. `jsonValue` copies it. Nothing is
/// allocated to read it (but for `string`). What is malformed reads as missing.
///
/// `UnsafeValue` is the same without the compiler's guard.
public struct Value: ~Escapable {
  /// The same value for code that keeps it where the compiler can't follow, and shows another way that it ends in time.
  public let unsafeValue: UnsafeValue

  /// The root value of a body, or nil when the bytes don't end in one. Only what is needed to find it is checked:
  /// a damaged value further in reads as missing when it is met.
  @inlinable @inline(__always)
  @_lifetime(copy body)
  public init?(rootOf body: RawSpan) {
    guard let value = body.withUnsafeBytes({ FleeceReader.root(of: $0) }) else { return nil }
    self = Value(value, copying: body)
  }

  /// The value of a place in memory that lives as long as `bytes`, which needn't hold it.
  @inlinable @inline(__always)
  @_lifetime(copy bytes)
  public init(_ value: UnsafeValue, copying bytes: RawSpan) { unsafeValue = value }

  /// A value that lies in the same bytes as `other`.
  @inlinable @inline(__always)
  @_lifetime(copy other)
  init(_ value: UnsafeValue, in other: borrowing Value) { unsafeValue = value }

  /// The kind of this value.
  @inlinable public var type: ValueType { unsafeValue.type }
  /// Whether this is null (or undefined).
  @inlinable public var isNull: Bool { unsafeValue.isNull }
  /// The boolean, or nil for another kind of value.
  @inlinable public var bool: Bool? { unsafeValue.bool }
  /// The integer, or nil for doubles, other kinds of value and integers above `Int64.max`.
  @inlinable public var int: Int64? { unsafeValue.int }
  /// The integer when it isn't negative, or nil.
  @inlinable public var uint: UInt64? { unsafeValue.uint }
  /// The number, an integer converted, or nil for another kind of value.
  @inlinable public var double: Double? { unsafeValue.double }
  /// A copy of the string, or nil for another kind of value and for bytes that aren't UTF-8.
  public var string: String? { unsafeValue.string }

  /// The string's UTF-8 bytes in place, or nil for another kind of value. They are as stored: not checked.
  @inlinable
  public var utf8: RawSpan? {
    @_lifetime(copy self)
    get { span(unsafeValue.utf8) }
  }

  /// The binary data in place, or nil for another kind of value.
  @inlinable
  public var data: RawSpan? {
    @_lifetime(copy self)
    get { span(unsafeValue.data) }
  }

  @inlinable @inline(__always)
  @_lifetime(copy self)
  func span(_ bytes: UnsafeRawBufferPointer?) -> RawSpan? {
    guard let bytes else { return nil }
    let span = bytes.bytes
    return _overrideLifetime(span, copying: self)
  }

  /// The number of items of an array or of entries of a dictionary; 0 for anything else, or damaged.
  @inlinable public var count: Int { unsafeValue.count }

  /// An item of an array; nil out of bounds, when damaged, and for other kinds of value.
  @inlinable
  public subscript(index: Int) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[index]) }
  }

  /// The entry of a resolved key; nil when there is none (or `undefined`), and for other kinds of value.
  public subscript(key: Key) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[key]) }
  }

  /// What a path leads to, or nil.
  public subscript(path: PropertyPath) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[path]) }
  }

  /// The entry of a name; resolve a `Key` once instead where the same name is looked up again.
  @_lifetime(copy self)
  public func value(of name: String, sharedKeys: SharedKeys) -> Value? {
    inSameBytes(unsafeValue.value(of: name, sharedKeys: sharedKeys))
  }

  @inlinable @inline(__always)
  @_lifetime(copy self)
  func inSameBytes(_ value: UnsafeValue?) -> Value? {
    guard let value else { return nil }
    return Value(value, in: self)
  }

  /// Calls `body` with the items of an array, in order, until it returns false; never for other kinds of value. A
  /// damaged item reads as null.
  @inlinable
  public func forEachItem(_ body: (Value) throws -> Bool) rethrows {
    for item in unsafeValue.items {
      guard try body(Value(item, in: self)) else { return }
    }
  }

  /// Calls `body` with the entries of a dictionary, in its own order, until it returns false; never for other kinds of
  /// value. Damaged entries, and those whose name `sharedKeys` doesn't know, are left out.
  @inlinable
  public func forEachEntry(
    _ sharedKeys: SharedKeys, _ body: (_ name: RawSpan, _ value: Value) throws -> Bool
  ) rethrows {
    for entry in unsafeValue.entries {
      guard let name = entry.utf8(in: sharedKeys) else { continue }
      guard try body(name.bytes, Value(entry.value, in: self)) else { return }
    }
  }

  /// Appends this value's JSON text (`UnsafeValue.writeJSON`).
  public func writeJSON(
    sharedKeys: SharedKeys, canonical: Bool = true, into output: inout [UInt8]
  ) throws(FleeceError) {
    try unsafeValue.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &output)
  }

  /// This value's JSON text.
  public func json(sharedKeys: SharedKeys, canonical: Bool = true) throws(FleeceError) -> String {
    try unsafeValue.json(sharedKeys: sharedKeys, canonical: canonical)
  }

  /// A copy of this value in memory.
  public func jsonValue(sharedKeys: SharedKeys) throws(FleeceError) -> JSONValue {
    try unsafeValue.jsonValue(sharedKeys: sharedKeys)
  }
}
