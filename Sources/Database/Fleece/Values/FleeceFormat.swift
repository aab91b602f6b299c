// The constants of the Fleece format, as docs/fleece.md lays it out.
//
//   value    = header byte (tag in the high nibble) ...; values start at even offsets
//   tag 0    0000iiii iiiiiiii                 integer -2048...2047
//   tag 1    0001uccc, c+1 bytes               little-endian integer, u = unsigned
//   tag 2    0010sx00 00, 4 or 8 bytes         little-endian float (s=0) or double (s=1)
//   tag 3    0011ss00 00                       null, false, true, undefined
//   tag 4, 5 0100cccc / 0101cccc, bytes        string, data; c = 15: a varint length follows
//   tag 6, 7 0110wccc cc, slots                array, dict; c = 2047: a varint of count - 2047 follows;
//                                              w = 1: slots are 4 bytes, else 2
//   tag 8+   1ooooooo oooooooo                 pointer: distance back in units of 2 bytes

#if _endian(big)
  #error("The Fleece reader and encoder are written for little-endian machines.")
#endif

/// Limits of the format and of this implementation.
@usableFromInline package enum FleeceLimits {
  /// The maximum nesting depth of arrays and objects. One more level is an error everywhere.
  package static let depth = 200
  /// The maximum number of names in a shared key table.
  @inlinable package static var sharedKeys: Int { 2048 }
  /// The maximum length of a shared key in bytes.
  package static let sharedKeyLength = 16
  /// The maximum size in bytes of one JSON text, or of the strings of one value: 1 GiB.
  package static let text = 1 << 30
  /// The maximum size in bytes of one encoded body: 2 GiB - 2. The reach of a wide pointer limits it.
  package static let body = (1 << 31) - 2
}

@usableFromInline
enum Tag {
  @inlinable static var smallInt: UInt8 { 0 }
  @inlinable static var int: UInt8 { 1 }
  @inlinable static var float: UInt8 { 2 }
  @inlinable static var special: UInt8 { 3 }
  @inlinable static var string: UInt8 { 4 }
  @inlinable static var data: UInt8 { 5 }
  @inlinable static var array: UInt8 { 6 }
  @inlinable static var dict: UInt8 { 7 }
}

/// Values of two bytes, as stored in a slot.
enum Inline {
  static let null: UInt32 = 0x3000
  static let `false`: UInt32 = 0x3400
  static let `true`: UInt32 = 0x3800
  static let emptyString: UInt32 = 0x4000
  static let emptyData: UInt32 = 0x5000
  static let emptyArray: UInt32 = 0x6000
  static let emptyDict: UInt32 = 0x7000
}

/// The largest count that a collection's header can hold. From this count on, a varint holds the rest.
@inlinable var longCount: Int { 2047 }
/// The reach of a narrow pointer in units of 2 bytes: 32,766 bytes. Both variants of the format read it
/// alike.
let narrowReach: UInt32 = 16383
