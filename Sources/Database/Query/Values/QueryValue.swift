import Fleece

// The value type of expressions. It is plain memory of four words and a byte. Reading a property, comparing
// it and refusing a row needs no allocation, retain or release.
//
// A value doesn't own the memory that it points at. That is the body of the row (valid until the row is
// left), the arena it was computed in (until its scope ends or it is reset), or the program (for constants).
// `EvaluationArena.copy` makes a copy that lives longer.

/// A value of the query language.
enum QueryValue: BitwiseCopyable {
  /// No value, such as a property that doesn't exist.
  case missing
  /// JSON's null.
  case null
  case bool(Bool)
  case int(Int64)
  /// An integer above `Int64.max`.
  case uint(UInt64)
  /// A finite number.
  case double(Double)
  case string(TextSlice)
  /// Binary data.
  case data(TextSlice)
  /// An array inside a body.
  case array(UnsafeValue)
  /// An object inside a body. The context has the shared keys of its names.
  case object(UnsafeValue)
  /// A computed array.
  case computedArray(ComputedArray)
  /// A computed object.
  case computedObject(ComputedObject)
}

/// An array of items in an arena. Arrays and objects may share parts.
struct ComputedArray: BitwiseCopyable {
  let items: UnsafePointer<QueryValue>
  private let storedCount: UInt32
  /// What a copy of the array without shared parts weighs.
  let weight: ValueWeight
  var count: Int { Int(storedCount) }

  /// - Parameter count: at most 2³² - 1.
  init(items: UnsafePointer<QueryValue>, count: Int, weight: ValueWeight) {
    self.items = items
    self.weight = weight
    storedCount = UInt32(count)
  }
}

/// How large a value is with everything in it, parts that it shares with itself once for each time: about the number of values, and of every
/// 32 bytes of their texts. An array or object in a body counts only with its own items. It ends at the greatest `UInt32`.
struct ValueWeight: BitwiseCopyable {
  private(set) var units: UInt32 = 1

  init() {}

  @inline(__always)
  mutating func add(_ value: QueryValue) {
    let more: UInt32 =
      switch value {
      case .string(let text), .data(let text): 1 &+ UInt32(clamping: text.count >> 5)
      case .computedArray(let array): array.weight.units
      case .computedObject(let object): object.weight.units
      case .array, .object: 1 &+ UInt32(clamping: value.count)
      default: 1
      }
    let (sum, overflow) = units.addingReportingOverflow(more)
    units = overflow ? .max : sum
  }
}

/// An object of members in an arena. They are in the order of their names' bytes, and names are unique.
struct ComputedObject: BitwiseCopyable {
  struct Member: BitwiseCopyable {
    var name: TextSlice
    var value: QueryValue
  }
  let members: UnsafePointer<Member>
  private let storedCount: UInt32
  /// What a copy of the object without shared parts weighs.
  let weight: ValueWeight
  var count: Int { Int(storedCount) }

  /// - Parameter count: at most 2³² - 1.
  init(members: UnsafePointer<Member>, count: Int, weight: ValueWeight) {
    self.members = members
    self.weight = weight
    storedCount = UInt32(count)
  }
}

/// The types of values, in N1QL's order.
enum QueryType: UInt8, Comparable {
  case missing, null, boolean, number, string, array, object, binary

  static func < (left: QueryType, right: QueryType) -> Bool { left.rawValue < right.rawValue }

  /// The name that TYPE() returns.
  var name: StaticString {
    switch self {
    case .missing: "missing"
    case .null: "null"
    case .boolean: "boolean"
    case .number: "number"
    case .string: "string"
    case .array: "array"
    case .object: "object"
    case .binary: "binary"
    }
  }
}

extension QueryValue {
  /// A value inside a body. Malformed values are missing.
  @inline(__always)
  init(_ value: UnsafeValue) {
    switch value.type {
    case .string: self = value.utf8.map { .string(TextSlice($0)) } ?? .missing
    case .int:
      if let int = value.int {
        self = .int(int)
      } else {
        self = value.uint.map { .uint($0) } ?? .missing
      }
    case .double:
      let double = value.double
      self = double.map { $0.isFinite ? .double($0) : .null } ?? .missing
    case .bool: self = .bool(value.bool == true)
    case .null: self = .null
    case .array: self = .array(value)
    case .dict: self = .object(value)
    case .data: self = value.data.map { .data(TextSlice($0)) } ?? .missing
    }
  }

  /// A value inside a body, or missing.
  @inline(__always)
  init(_ value: UnsafeValue?) {
    guard let value else {
      self = .missing
      return
    }
    self.init(value)
  }

  /// A boolean.
  @inline(__always)
  init(_ value: Bool) { self = .bool(value) }

  /// The text of a constant.
  init(_ text: StaticString) {
    self = .string(TextSlice(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// A number. Null when it isn't finite.
  @inline(__always)
  init(finite value: Double) { self = value.isFinite ? .double(value) : .null }

  /// An integer with the case that fits it.
  init(_ value: UInt64) { self = value <= UInt64(Int64.max) ? .int(Int64(value)) : .uint(value) }

  var type: QueryType {
    switch self {
    case .missing: .missing
    case .null: .null
    case .bool: .boolean
    case .int, .uint, .double: .number
    case .string: .string
    case .array, .computedArray: .array
    case .object, .computedObject: .object
    case .data: .binary
    }
  }

  @inline(__always)
  var isMissing: Bool { if case .missing = self { true } else { false } }

  /// Whether it is null or missing.
  @inline(__always)
  var isUnknown: Bool {
    switch self {
    case .missing, .null: true
    default: false
    }
  }

  /// The number as a double. Nil for other types.
  @inline(__always)
  var number: Double? {
    switch self {
    case .int(let value): Double(value)
    case .double(let value): value
    case .uint(let value): Double(value)
    default: nil
    }
  }

  /// The number as a signed 64-bit integer, without its fraction. Nil for other types and for larger numbers.
  var integer: Int64? {
    switch self {
    case .int(let value): value
    case .double(let value): Int64(exactly: value.rounded(.towardZero))
    default: nil
    }
  }

  @inline(__always)
  var text: TextSlice? { if case .string(let text) = self { text } else { nil } }

  /// The number of items of an array, or of members of an object. 0 for other types.
  var count: Int {
    switch self {
    case .array(let value), .object(let value): value.count
    case .computedArray(let array): array.count
    case .computedObject(let object): object.count
    default: 0
    }
  }
}

extension QueryValue {
  /// Calls `body` with the items of an array or the member values of an object, until it returns false. Other
  /// types have none.
  @inline(__always)
  func forEachItem(_ body: (QueryValue) -> Bool) {
    switch self {
    case .array(let value):
      for item in value.items where !body(QueryValue(item)) { return }
    case .computedArray(let array):
      for index in 0..<array.count where !body(array.items[index]) { return }
    case .object(let value):
      for entry in value.entries where !body(QueryValue(entry.value)) { return }
    case .computedObject(let object):
      for index in 0..<object.count where !body(object.members[index].value) { return }
    default: break
    }
  }

  /// Calls `body` with the members of an object, in no particular order.
  func forEachMember(_ sharedKeys: SharedKeys, _ body: (TextSlice, QueryValue) -> Void) {
    switch self {
    case .object(let value):
      for entry in value.entries {
        if let name = entry.utf8(in: sharedKeys) { body(TextSlice(name), QueryValue(entry.value)) }
      }
    case .computedObject(let object):
      for index in 0..<object.count { body(object.members[index].name, object.members[index].value) }
    default: break
    }
  }

  /// The item at an index. Negative indexes count from the end. Missing when there is none.
  func item(_ index: Int) -> QueryValue {
    switch self {
    case .array(let value): return QueryValue(value[index < 0 ? value.count &+ index : index])
    case .computedArray(let array):
      let index = index < 0 ? array.count &+ index : index
      return index >= 0 && index < array.count ? array.items[index] : .missing
    default: return .missing
    }
  }

  /// The value at the end of a path. Missing when the path leads nowhere.
  @inline(__always)
  func follow(_ moves: UnsafeBufferPointer<PathMove>) -> QueryValue {
    switch self {
    case .array(let value), .object(let value): QueryValue(value.value(at: moves))
    case .computedArray, .computedObject: followComputed(moves)
    default: moves.isEmpty ? self : .missing
    }
  }

  /// The same, for steps that remember where the last value had them.
  @inline(__always)
  func follow(_ moves: UnsafeMutableBufferPointer<PathMove>) -> QueryValue {
    switch self {
    case .array(let value), .object(let value): QueryValue(value.value(at: moves))
    case .computedArray, .computedObject: followComputed(UnsafeBufferPointer(moves))
    default: moves.isEmpty ? self : .missing
    }
  }

  @inline(never)
  private func followComputed(_ moves: UnsafeBufferPointer<PathMove>) -> QueryValue {
    guard let move = moves.first else { return self }
    var next = QueryValue.missing
    if let index = move.index {
      next = item(index)
    } else if case .computedObject(let object) = self {
      next = object.value(of: TextSlice(move.nameBytes))
    }
    return next.follow(UnsafeBufferPointer(rebasing: moves.dropFirst()))
  }
}

extension ComputedObject {
  /// The value of a member. Missing when there is none.
  func value(of name: TextSlice) -> QueryValue { place(of: name)?.pointee ?? .missing }

  /// A pointer to the value of a member, or nil.
  func place(of name: TextSlice) -> UnsafePointer<QueryValue>? {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      let order = name.compare(members[middle].name)
      if order == 0 { return UnsafePointer(members + middle).pointer(to: \.value) }
      if order < 0 { high = middle } else { low = middle + 1 }
    }
    return nil
  }
}
