// The value from which users build documents.

/// A JSON value in memory. It can also hold binary data.
///
/// The members of an object have no order, as in a body. Values are equal if their bodies are equal: integers
/// and doubles are different values (`1` is not `1.0`), and strings are compared by their bytes.
public enum JSONValue: Sendable {
  /// JSON null.
  case null
  /// True or false.
  case bool(Bool)
  /// An integer in the range of `Int64`.
  case int(Int64)
  /// An integer above `Int64.max`. Smaller ones are encoded as `int` and read back as `int`.
  case uint(UInt64)
  /// A finite double. NaN and infinities can't be encoded.
  case double(Double)
  /// Text.
  case string(String)
  /// Binary data. In JSON text it is a base64 string.
  case data([UInt8])
  /// An array.
  case array([JSONValue])
  /// An object.
  case object(JSONObject)
}

extension JSONValue: Hashable {
  /// Returns whether both are the same value. `0.0` and `-0.0` differ. An `int` equals a `uint` of the same
  /// number.
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.int(let left), .int(let right)): left == right
    case (.uint(let left), .uint(let right)): left == right
    case (.int(let int), .uint(let uint)), (.uint(let uint), .int(let int)): Int64(exactly: uint) == int
    case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
    case (.data(let left), .data(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)): left == right
    default: false
    }
  }

  /// Hashes the parts of the value that `==` compares.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .bool(let value): hasher.combine(value)
    case .int(let value): hasher.combine(value)
    case .uint(let value):
      if let int = Int64(exactly: value) { hasher.combine(int) } else { hasher.combine(value) }
    case .double(let value): hasher.combine(value.bitPattern)
    case .string(let value): value.hashBytes(into: &hasher)
    case .data(let value): hasher.combine(value)
    case .array(let items): hasher.combine(items)
    case .object(let members): hasher.combine(members)
    }
  }
}

// There is no nil literal: nil removes a member, and null is written as `.null`.
extension JSONValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a boolean.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates an integer.
  public init(integerLiteral value: Int64) { self = .int(value) }
  /// Creates a double.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates an array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Creates an object. If several members have the same name, the last one wins.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    var members = JSONObject()
    for (name, value) in elements { members[name] = value }
    self = .object(members)
  }

  /// Creates an integer: `int` if it fits, otherwise `uint`. An integer beyond 64 bits becomes the nearest
  /// double, as in JSON text.
  public init(_ value: some BinaryInteger) { self = JSONValue(exactly: value) ?? .double(Double(value)) }

  /// Creates an integer: `int` if it fits, otherwise `uint`. Nil for an integer beyond 64 bits.
  public init?(exactly value: some BinaryInteger) {
    if let int = Int64(exactly: value) {
      self = .int(int)
    } else if let uint = UInt64(exactly: value) {
      self = .uint(uint)
    } else {
      return nil
    }
  }

  /// Creates a double.
  public init(_ value: Double) { self = .double(value) }
  /// Creates a string.
  public init(_ value: String) { self = .string(value) }
  /// Creates a boolean.
  public init(_ value: Bool) { self = .bool(value) }
  /// Creates an object.
  public init(_ members: [String: JSONValue]) { self = .object(JSONObject(members)) }
}

extension JSONValue {
  /// Whether the value is null. A missing member or item also reads as null.
  public var isNull: Bool { if case .null = self { true } else { false } }

  /// The boolean, or nil for other kinds of value.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The integer, or nil for doubles, other kinds of value and integers above `Int64.max`.
  public var int: Int64? {
    switch self {
    case .int(let value): value
    case .uint(let value): Int64(exactly: value)
    default: nil
    }
  }

  /// The integer, or nil if it is negative and for other kinds of value.
  public var uint: UInt64? {
    switch self {
    case .int(let value): UInt64(exactly: value)
    case .uint(let value): value
    default: nil
    }
  }

  /// The number as a double, or nil for other kinds of value. Integers are converted.
  public var double: Double? {
    switch self {
    case .double(let value): value
    case .int(let value): Double(value)
    case .uint(let value): Double(value)
    default: nil
    }
  }

  /// The string, or nil for other kinds of value.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The binary data, or nil for other kinds of value.
  public var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }

  /// The items, or nil for other kinds of value.
  public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

  /// The members, or nil for other kinds of value.
  public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

  /// The number of items or members, or 0 for scalars.
  public var count: Int {
    switch self {
    case .array(let items): items.count
    case .object(let members): members.count
    default: 0
    }
  }

  /// The member with a name. A missing member reads as null.
  ///
  /// Setting a member replaces any other kind of value by an object first, so that `value["geo"]["lat"] =
  /// 51.5` works on an empty value. Setting `.null` stores null. Setting nil removes the member.
  public subscript(name: String) -> JSONValue {
    get {
      if case .object(let members) = self { members[name] ?? .null } else { .null }
    }
    set {
      var members = takeMembers() ?? JSONObject()
      members[name] = newValue
      self = .object(members)
    }
    _modify {
      let isObject = object != nil
      var members = takeMembers() ?? JSONObject()
      let isNew = !members.contains(name)
      defer {
        // A change that set nothing, such as the removal of a nested member, adds nothing.
        if isNew, members[name]?.isNull ?? true {
          members.removeValue(forKey: name)
          if isObject { self = .object(members) }
        } else {
          self = .object(members)
        }
      }
      yield &members[name, default: .null]
    }
  }

  /// The member with a name, or nil. Setting nil removes the member.
  ///
  /// Swift takes this subscript where the value is optional: `value["name"] = nil`.
  @_disfavoredOverload
  public subscript(name: String) -> JSONValue? {
    get { object?[name] }
    set {
      if let newValue { self[name] = newValue as JSONValue } else { remove(name) }
    }
  }

  /// Moves the members out of `self`, which is null then, so that a change doesn't copy them. Nil if this
  /// isn't an object.
  private mutating func takeMembers() -> JSONObject? {
    guard case .object(let members) = self else { return nil }
    self = .null
    return members
  }

  /// The item at an index. An index out of bounds reads as null.
  ///
  /// Setting at the index `count` appends an item. Setting at other indexes out of bounds, or on another kind
  /// of value, does nothing.
  public subscript(index: Int) -> JSONValue {
    get {
      if case .array(let items) = self, items.indices.contains(index) { items[index] } else { .null }
    }
    _modify {
      guard case .array(var items) = self, index >= 0, index <= items.count else {
        var discarded = JSONValue.null
        yield &discarded
        return
      }
      self = .null
      if index == items.count { items.append(.null) }
      defer { self = .array(items) }
      yield &items[index]
    }
  }

  /// Removes a member of an object and returns it, or returns nil if there is none.
  @discardableResult
  public mutating func remove(_ name: String) -> JSONValue? {
    guard var members = takeMembers() else { return nil }
    defer { self = .object(members) }
    return members.removeValue(forKey: name)
  }
}

extension JSONValue {
  /// Parses a JSON text. If several members have the same name, the last one wins.
  ///
  /// - Throws: `FleeceError.invalidJSON` with the offset of the fault, `.tooDeep`, `.tooLarge`,
  ///   `.outOfMemory`.
  public init(json: UnsafeRawBufferPointer) throws(FleeceError) {
    let parser = JSONParser()
    self = try JSONValue(parser.parse(json), at: 1, depth: 0)
    withExtendedLifetime(parser) {}
  }

  /// Parses a JSON text. If several members have the same name, the last one wins.
  ///
  /// - Throws: `FleeceError.invalidJSON` with the offset of the fault, `.tooDeep`, `.tooLarge`,
  ///   `.outOfMemory`.
  public init(json: String) throws(FleeceError) {
    var result = Result<JSONValue, FleeceError>.success(.null)
    var json = json
    json.withUTF8 { utf8 in
      do throws(FleeceError) {
        result = .success(try JSONValue(json: UnsafeRawBufferPointer(utf8)))
      } catch {
        result = .failure(error)
      }
    }
    self = try result.get()
  }

  private init(_ tape: JSONTape, at index: Int, depth: Int) throws(FleeceError) {
    let word = tape.words[index]
    let end = JSONTape.end(word) - 1
    switch JSONTape.tag(word) {
    case TapeTag.true: self = .bool(true)
    case TapeTag.false: self = .bool(false)
    case TapeTag.int: self = .int(Int64(bitPattern: tape.words[index + 1]))
    case TapeTag.uint: self = .uint(tape.words[index + 1])
    case TapeTag.double: self = .double(Double(bitPattern: tape.words[index + 1]))
    case TapeTag.string: self = .string(String(decoding: tape.string(word), as: UTF8.self))
    case TapeTag.array:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      var items: [JSONValue] = []
      var item = index + 1
      while item < end {
        items.append(try JSONValue(tape, at: item, depth: depth + 1))
        item = tape.next(item)
      }
      self = .array(items)
    case TapeTag.object:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      var members = JSONObject()
      var name = index + 1
      while name < end {
        let key = String(decoding: tape.string(tape.words[name]), as: UTF8.self)
        members[key] = try JSONValue(tape, at: name + 1, depth: depth + 1)
        name = tape.next(name + 1)
      }
      self = .object(members)
    default: self = .null
    }
  }

  /// Returns the canonical JSON text of this value: names sorted by their bytes, no spaces.
  ///
  /// - Throws: `FleeceError.tooDeep`, `.notFinite`, `.tooLarge`.
  public func canonicalJSON() throws(FleeceError) -> String {
    let encoder = BodyEncoder()
    try encoder.encode(self, keys: SharedKeysBuilder(.empty))
    return String(decoding: encoder.canonicalJSON, as: UTF8.self)
  }
}
