// Keys of views: a JSON value as bytes whose unsigned byte order is the order of a collation (docs/view-keys.md).
//
//   value     = null | false | true       one byte
//             | number                    25 … 3A, as in docs/ordered-keys.md
//             | string
//             | array value* 00
//             | object (string value)* 00
//   string    = 50 text | 4C text         the bytes of the UTF-8: collations ascii, raw
//             | 52 sortKey 00             ICU's sort key, which has no byte 00: collations unicode, root
//   text      = (02 … FF | 01 01 | 01 02)* 00    01 01 is byte 00, 01 02 is byte 01, FF is U+FFFF
//
// No value's encoding begins with another's. The first bytes say where a value ends, whatever the collation.

/// The first bytes of values in a collation.
struct ViewKeyCodes: Sendable {
  let null: UInt8
  let `false`: UInt8
  let `true`: UInt8
  let string: UInt8
  let array: UInt8
  let object: UInt8

  init(_ collation: ViewCollation) {
    switch collation {
    case .unicode, .root:
      self.init(null: 0x10, false: 0x18, true: 0x19, string: 0x52, array: 0x60, object: 0x68)
    case .ascii: self.init(null: 0x10, false: 0x18, true: 0x19, string: 0x50, array: 0x60, object: 0x68)
    case .raw: self.init(null: 0x41, false: 0x40, true: 0x42, string: 0x4C, array: 0x4A, object: 0x48)
    }
  }

  private init(null: UInt8, false: UInt8, true: UInt8, string: UInt8, array: UInt8, object: UInt8) {
    self.null = null
    self.false = `false`
    self.true = `true`
    self.string = string
    self.array = array
    self.object = object
  }

  /// Ends an array, an object and a string.
  static let end: UInt8 = 0x00
}
