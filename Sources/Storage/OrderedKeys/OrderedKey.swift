// Ordered keys: tuples of values as bytes whose unsigned byte order is the order of the values.
//
//   key       = value* documentID           document ID: raw UTF-8, to the end of the key
//   value     = 0x08                        missing
//             | 0x10                        null
//             | 0x18 | 0x19                 false, true
//             | number                      codes 0x25 … 0x3A, see OrderedKey+Number.swift
//             | 0x50 text                   string, UTF-8
//             | 0x51 text                   collation key of a string, made by a collator
//             | 0x60 value* 0x00            array
//             | 0x68 (0x50 text value)* 0x00  object: names and values in turn
//             | 0x70 text                   bytes
//   text      = (0x02 … 0xFF | 0x01 0x01 | 0x01 0x02)* 0x00     0x01 0x01 is byte 0, 0x01 0x02 is byte 1
//
// No value's encoding begins another's, and equal values have equal bytes. docs/ordered-keys.md has the order,
// worked examples, and what to do with keys that are too long.

/// The first byte of each value.
@usableFromInline
enum OrderedKeyCode {
  @usableFromInline static let end: UInt8 = 0x00
  @usableFromInline static let missing: UInt8 = 0x08
  @usableFromInline static let null: UInt8 = 0x10
  @usableFromInline static let `false`: UInt8 = 0x18
  @usableFromInline static let `true`: UInt8 = 0x19
  /// At or below -2^64, -infinity included.
  @usableFromInline static let hugeNegative: UInt8 = 0x25
  /// Less by one for each byte of the magnitude.
  @usableFromInline static let negative: UInt8 = 0x2F
  /// Zero; more by one for each byte of the magnitude.
  @usableFromInline static let positive: UInt8 = 0x30
  /// At or above 2^64, infinity included.
  @usableFromInline static let hugePositive: UInt8 = 0x3A
  @usableFromInline static let string: UInt8 = 0x50
  @usableFromInline static let collationKey: UInt8 = 0x51
  @usableFromInline static let array: UInt8 = 0x60
  @usableFromInline static let object: UInt8 = 0x68
  @usableFromInline static let bytes: UInt8 = 0x70

  /// Inside of text: before what stands for a byte 0 or 1.
  @usableFromInline static let escape: UInt8 = 0x01
}

/// The types of values, in their order.
@frozen
public enum OrderedKeyType: Sendable, CaseIterable {
  case missing
  case null
  case boolean
  case number
  /// Strings, and collation keys in their place.
  case string
  case array
  case object
  case bytes

  /// The codes with which values of the type begin: the first, and the one after the last.
  var codes: (first: UInt8, end: UInt8) {
    switch self {
    case .missing: (0x08, 0x09)
    case .null: (0x10, 0x11)
    case .boolean: (0x18, 0x1A)
    case .number: (0x20, 0x40)
    case .string: (0x50, 0x52)
    case .array: (0x60, 0x61)
    case .object: (0x68, 0x69)
    case .bytes: (0x70, 0x71)
    }
  }
}

/// Why a value can't be encoded, or bytes aren't an ordered key.
public struct OrderedKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Code: String, Sendable {
    /// NaN has no place in the order.
    case notANumber
    /// The key ends inside a value.
    case truncated
    /// A byte that begins no value.
    case unknownCode
    /// Bytes that no value is encoded as.
    case notCanonical
    /// The end of an array or object that was never begun.
    case unexpectedEnd
  }

  /// What is wrong.
  public let code: Code
  /// Where in the key, in bytes.
  public let offset: Int

  /// An error at a byte of the key.
  public init(_ code: Code, at offset: Int) {
    self.code = code
    self.offset = offset
  }

  /// For people.
  public var description: String {
    switch code {
    case .notANumber: "NaN can't be part of a key"
    case .truncated: "the key ends inside the value at byte \(offset)"
    case .unknownCode: "no value begins with the byte at \(offset)"
    case .notCanonical: "the value at byte \(offset) is encoded in no way that a value is"
    case .unexpectedEnd: "byte \(offset) ends an array or object that was never begun"
    }
  }
}

/// Keys that are too long to be kept whole (docs/ordered-keys.md, "Long keys").
public enum OrderedKeyLimits {
  /// The longest key that is kept as it is. A key of `StorageLimits.maximumKeyBytes` is always a cut one.
  public static let maximumWholeKeyBytes = StorageLimits.maximumKeyBytes - 1
  /// How much of the values' encoding a cut key begins with.
  public static let cutPrefixBytes = StorageLimits.maximumKeyBytes - cutDigestBytes
  /// The digest with which a cut key ends.
  public static let cutDigestBytes = 32
}

extension KeyRange {
  /// Where a range of ordered keys begins or ends: at encoded values, which stand for all keys that begin with
  /// them.
  public enum Edge: Hashable, Sendable {
    case unbounded
    case including([UInt8])
    case excluding([UInt8])
  }

  /// The keys from `lower` to `upper`. The edges are whole encoded values, as many as are bound:
  /// `name = "x" AND size > 5` is from `.excluding(("x", 5))` to `.including(("x"))`.
  public static func orderedKeys(from lower: Edge, to upper: Edge) -> KeyRange {
    var range = KeyRange()
    switch lower {
    case .unbounded: break
    case .including(let values): range.lower = .inclusive(values)
    case .excluding(let values):
      if case .exclusive(let bound) = upperBound(ofPrefix: values) { range.lower = .inclusive(bound) }
    }
    switch upper {
    case .unbounded: break
    case .including(let values): range.upper = upperBound(ofPrefix: values)
    case .excluding(let values): range.upper = .exclusive(values)
    }
    return range
  }

  /// The keys whose value after the encoded `values` is of a type.
  public static func orderedKeys(beginningWith values: [UInt8] = [], then type: OrderedKeyType) -> KeyRange {
    KeyRange(lower: .inclusive(values + [type.codes.first]), upper: .exclusive(values + [type.codes.end]))
  }
}
