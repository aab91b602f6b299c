// Ordered keys: tuples of values as bytes whose unsigned byte order is the order of the values.
//
//   key       = value* documentID           document ID: raw UTF-8, to the end of the key
//   value     = 0x08                        missing
//             | 0x10                        null
//             | 0x18 | 0x19                 false, true
//             | number                      codes 0x25 … 0x3A, see OrderedKeyNumber.swift
//             | 0x50 text                   string, UTF-8
//             | 0x51 text                   collation key of a string, made by a collator
//             | 0x60 value* 0x00            array
//             | 0x68 (0x50 text value)* 0x00  object: names and values in turn
//             | 0x70 text                   bytes
//   text      = (0x02 … 0xFF | 0x01 0x01 | 0x01 0x02)* 0x00     0x01 0x01 is byte 0, 0x01 0x02 is byte 1
//
// No value's encoding is a prefix of another's, and equal values have equal bytes. docs/ordered-keys.md has
// the order, worked examples, and the treatment of long keys.

/// The first byte of each value.
@usableFromInline
enum OrderedKeyCode {
  @usableFromInline static let end: UInt8 = 0x00
  @usableFromInline static let missing: UInt8 = 0x08
  @usableFromInline static let null: UInt8 = 0x10
  @usableFromInline static let `false`: UInt8 = 0x18
  @usableFromInline static let `true`: UInt8 = 0x19
  /// A number at or below -2^64, or -infinity.
  @usableFromInline static let hugeNegative: UInt8 = 0x25
  /// A negative number above -2^64, minus one for each byte of the magnitude.
  @usableFromInline static let negative: UInt8 = 0x2F
  /// Zero, plus one for each byte of the magnitude.
  @usableFromInline static let positive: UInt8 = 0x30
  /// A number at or above 2^64, or infinity.
  @usableFromInline static let hugePositive: UInt8 = 0x3A
  @usableFromInline static let string: UInt8 = 0x50
  @usableFromInline static let collationKey: UInt8 = 0x51
  @usableFromInline static let array: UInt8 = 0x60
  @usableFromInline static let object: UInt8 = 0x68
  @usableFromInline static let bytes: UInt8 = 0x70

  /// The byte inside text that precedes the replacement of a byte 0 or 1.
  @usableFromInline static let escape: UInt8 = 0x01
}

/// The types of values, in sort order.
@frozen
package enum OrderedKeyType: Sendable, CaseIterable {
  case missing
  case null
  case boolean
  case number
  /// Strings and collation keys.
  case string
  case array
  case object
  case bytes

  /// The range of first bytes of the type: the first one, and the one after the last.
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

/// The reason why a value can't be encoded or bytes aren't an ordered key.
@usableFromInline package struct OrderedKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  @usableFromInline package enum Code: String, Sendable {
    /// The value is NaN, which has no place in the order.
    case notANumber
    /// The key ends inside a value.
    case truncated
    /// A byte at which no value can begin.
    case unknownCode
    /// Bytes that no encoder writes.
    case notCanonical
    /// The end of an array or object that was never begun.
    case unexpectedEnd
  }

  /// The kind of failure.
  package let code: Code
  /// The position in the key, in bytes.
  package let offset: Int

  /// Makes an error for a byte of the key.
  @usableFromInline package init(_ code: Code, at offset: Int) {
    self.code = code
    self.offset = offset
  }

  /// The failure in words, for people.
  @usableFromInline package var description: String {
    switch code {
    case .notANumber: "NaN can't be part of a key"
    case .truncated: "the key ends inside the value at byte \(offset)"
    case .unknownCode: "no value begins with the byte at \(offset)"
    case .notCanonical: "the value at byte \(offset) has an invalid encoding"
    case .unexpectedEnd: "byte \(offset) ends an array or object that has no beginning"
    }
  }
}

/// The limits of long keys (docs/ordered-keys.md, "Long keys").
package enum OrderedKeyLimits {
  /// The maximum length of a key that is stored whole, in bytes. A key of `StorageLimits.maximumKeyBytes` is
  /// always truncated.
  package static let maximumWholeKeyBytes = StorageLimits.maximumKeyBytes - 1
  /// The number of bytes of the encoded values at the start of a truncated key.
  package static let cutPrefixBytes = StorageLimits.maximumKeyBytes - cutDigestBytes
  /// The number of bytes of the digest at the end of a truncated key.
  package static let cutDigestBytes = 32
}

extension KeyRange {
  /// An end of a range of ordered keys, given as encoded values. The values stand for all keys that begin
  /// with them.
  package enum Edge: Hashable, Sendable {
    /// No bound.
    case unbounded
    /// The range contains the keys that begin with the values.
    case including([UInt8])
    /// The range doesn't contain the keys that begin with the values.
    case excluding([UInt8])
  }

  /// Returns the range of keys from `lower` to `upper`.
  ///
  /// The edges are whole encoded values, one per bound column: `name = "x" AND size > 5` is from
  /// `.excluding(("x", 5))` to `.including(("x"))`.
  package static func orderedKeys(from lower: Edge, to upper: Edge) -> KeyRange {
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

  /// Returns the range of keys in which the value after the encoded `values` has a certain type.
  package static func orderedKeys(beginningWith values: [UInt8] = [], then type: OrderedKeyType) -> KeyRange {
    KeyRange(lower: .inclusive(values + [type.codes.first]), upper: .exclusive(values + [type.codes.end]))
  }
}
