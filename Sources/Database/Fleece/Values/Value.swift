/// A value in place inside lent bytes.
///
/// The compiler prevents it from leaving the closure that the bytes are lent to. `jsonValue` copies it.
/// Reading allocates nothing, except for `string`, `value(of:sharedKeys:)`, and the functions that make JSON.
/// A malformed value reads as missing.
///
/// `UnsafeValue` is the same without the compiler's checks.
public struct Value: ~Escapable {
  /// The same value, without lifetime checks by the compiler. Its user must ensure that it isn't used after
  /// the bytes.
  @usableFromInline package let unsafeValue: UnsafeValue

  /// Creates the root value of a body. The result is nil if the bytes don't end in one.
  ///
  /// Only the bytes that lead to the root are checked. A damaged value inside the body reads as missing.
  @inlinable @inline(__always)
  @_lifetime(copy body)
  package init?(rootOf body: RawSpan) {
    guard let value = body.withUnsafeBytes({ FleeceReader.root(of: $0) }) else { return nil }
    self = Value(value, copying: body)
  }

  /// Creates a value with the lifetime of `bytes`. The value can be in other memory that lives as long.
  @inlinable @inline(__always)
  @_lifetime(copy bytes)
  package init(_ value: UnsafeValue, copying bytes: RawSpan) { unsafeValue = value }

  /// Creates a value in the same bytes as `other`.
  @inlinable @inline(__always)
  @_lifetime(copy other)
  init(_ value: UnsafeValue, in other: borrowing Value) { unsafeValue = value }

  /// The kind of this value.
  @inlinable public var type: ValueType { unsafeValue.type }
  /// Whether this is null or undefined.
  @inlinable public var isNull: Bool { unsafeValue.isNull }
  /// The boolean, or nil for other kinds of value.
  @inlinable public var bool: Bool? { unsafeValue.bool }
  /// The integer, or nil for doubles, other kinds of value and integers above `Int64.max`.
  @inlinable public var int: Int64? { unsafeValue.int }
  /// The integer, or nil if it is negative and for other kinds of value.
  @inlinable public var uint: UInt64? { unsafeValue.uint }
  /// The number as a double, or nil for other kinds of value. Integers are converted.
  @inlinable public var double: Double? { unsafeValue.double }
  /// A copy of the string, or nil for other kinds of value and for bytes that aren't UTF-8.
  public var string: String? { unsafeValue.string }

  /// The UTF-8 bytes of the string in place, or nil for other kinds of value. The bytes aren't checked.
  @inlinable
  public var utf8: RawSpan? {
    @_lifetime(copy self)
    get { span(unsafeValue.utf8) }
  }

  /// The binary data in place, or nil for other kinds of value.
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

  /// The number of items of an array or of entries of a dictionary. 0 for other kinds of value and damaged
  /// values.
  @inlinable public var count: Int { unsafeValue.count }

  /// The item at an index of an array. Nil if it is out of bounds or damaged, and for other kinds of value.
  @inlinable
  public subscript(index: Int) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[index]) }
  }

  /// The entry of a resolved key. Nil if it is missing or `undefined`, and for other kinds of value.
  public subscript(key: Key) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[key]) }
  }

  /// The value at the end of a path, or nil if a step finds nothing.
  package subscript(path: PropertyPath) -> Value? {
    @_lifetime(copy self)
    get { inSameBytes(unsafeValue[path]) }
  }

  /// Returns the entry of a name. To look up a name repeatedly, resolve a `Key` once instead.
  @_lifetime(copy self)
  package func value(of name: String, sharedKeys: SharedKeys) -> Value? {
    inSameBytes(unsafeValue.value(of: name, sharedKeys: sharedKeys))
  }

  @inlinable @inline(__always)
  @_lifetime(copy self)
  func inSameBytes(_ value: UnsafeValue?) -> Value? {
    guard let value else { return nil }
    return Value(value, in: self)
  }

  /// Calls `body` with the items of an array, in order, until it returns false. It isn't called for other
  /// kinds of value. A damaged item reads as null.
  @inlinable
  public func forEachItem(_ body: (Value) throws -> Bool) rethrows {
    for item in unsafeValue.items {
      guard try body(Value(item, in: self)) else { return }
    }
  }

  /// Calls `body` with the entries of a dictionary in stored order, until it returns false. It isn't called
  /// for other kinds of value. Damaged entries and entries whose names aren't in `sharedKeys` are left out.
  @inlinable
  package func forEachEntry(
    _ sharedKeys: SharedKeys, _ body: (_ name: RawSpan, _ value: Value) throws -> Bool
  ) rethrows {
    for entry in unsafeValue.entries {
      guard let name = entry.utf8(in: sharedKeys) else { continue }
      guard try body(name.bytes, Value(entry.value, in: self)) else { return }
    }
  }

  /// Appends the JSON text of this value (see `UnsafeValue.writeJSON`).
  package func writeJSON(
    sharedKeys: SharedKeys, canonical: Bool = true, into output: inout [UInt8]
  ) throws(FleeceError) {
    try unsafeValue.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &output)
  }

  /// Returns the JSON text of this value. Throws the errors of `UnsafeValue.writeJSON`.
  package func json(sharedKeys: SharedKeys, canonical: Bool = true) throws(FleeceError) -> String {
    try unsafeValue.json(sharedKeys: sharedKeys, canonical: canonical)
  }

  /// Returns a copy of this value in memory. Throws the errors of `UnsafeValue.writeJSON`.
  package func jsonValue(sharedKeys: SharedKeys) throws(FleeceError) -> JSONValue {
    try unsafeValue.jsonValue(sharedKeys: sharedKeys)
  }
}
