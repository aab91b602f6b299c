import Fleece

/// A hash of values. Values that `ValueOrder` treats as equal have the same hash, such as 1 and 1.0, or texts
/// that a collator treats as equal.
///
/// It doesn't resist inputs chosen by an attacker. Tables compare the full hashes before they compare values,
/// which limits the cost of a long chain.
struct ValueHash {
  private var state: UInt64 = 0x51ED_270B_9F6A_3C47

  var value: UInt64 {
    var hash = state
    hash ^= hash >> 32
    hash &*= 0xD6E8_FEB8_6659_FD93
    return hash ^ hash >> 32
  }

  @inline(__always)
  private mutating func combine(_ word: UInt64) {
    let product = (state ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    state = product.low ^ product.high ^ 0xA076_1D64_78BD_642F
  }

  /// Adds bytes, such as those of text.
  @inline(__always)
  mutating func combine(_ bytes: UnsafeRawBufferPointer) {
    combine(UInt64(truncatingIfNeeded: bytes.count) ^ 0xE703_7ED1_A0B4_28DB)
    guard var from = bytes.baseAddress else { return }
    var left = bytes.count
    while left >= 8 {
      combine(from.loadUnaligned(as: UInt64.self))
      from += 8
      left -= 8
    }
    if left > 0, bytes.count >= 8 {
      // Reads the last eight bytes. Some of them were already read.
      return combine((from - (8 - left)).loadUnaligned(as: UInt64.self))
    }
    // Some of the last bytes are read twice, which their count tells apart.
    if left >= 4 {
      let last = UInt64((from + (left - 4)).loadUnaligned(as: UInt32.self))
      combine(UInt64(from.loadUnaligned(as: UInt32.self)) | last << 32)
    } else if left > 0 {
      let byte = { (offset: Int) in UInt64(from.load(fromByteOffset: offset, as: UInt8.self)) }
      combine(byte(0) | byte(left >> 1) << 8 | byte(left - 1) << 16)
    }
  }

  /// Adds a value.
  mutating func combine(_ value: QueryValue, _ order: ValueOrder, depth: Int = 0) {
    switch value {
    case .missing: combine(1)
    case .null: combine(2)
    case .bool(let value): combine(value ? 4 : 3)
    case .int(let value): combine(integer: value)
    case .uint(let value): combine(value ^ 0x8EBC_6AF0_9C88_C6E3)
    case .double(let value):
      if let integer = Int64(exactly: value) {
        combine(integer: integer)
      } else if let unsigned = UInt64(exactly: value) {
        combine(unsigned ^ 0x8EBC_6AF0_9C88_C6E3)
      } else {
        combine(value.bitPattern)
      }
    case .string(let text):
      if let collator = order.collator, !collator.collation.comparesBytes {
        var copy = self
        collator.withSortKey(of: text) { copy.combine($0) }
        self = copy
      } else {
        combine(text.bytes)
      }
    case .data(let bytes):
      combine(5)
      combine(bytes.bytes)
    case .array, .computedArray:
      combine(6 ^ UInt64(value.count) << 8)
      guard depth < FleeceLimits.depth else { return }
      var copy = self
      value.forEachItem {
        copy.combine($0.isMissing ? .null : $0, order, depth: depth + 1)
        return true
      }
      self = copy
    case .object, .computedObject:
      combine(7)
      guard depth < FleeceLimits.depth else { return }
      for member in value.sortedMembers(order.sharedKeys) {
        combine(member.name.bytes)
        combine(member.value, order, depth: depth + 1)
      }
    }
  }

  @inline(__always)
  private mutating func combine(integer: Int64) {
    combine(UInt64(bitPattern: integer) &+ 0x5895_65A2_C3B7_A2D1)
  }
}

extension ValueOrder {
  /// The hash of one value.
  func hash(_ value: QueryValue) -> UInt64 {
    var hash = ValueHash()
    hash.combine(value, self)
    return hash.value
  }
}
