import Bytes
import Fleece

extension ViewKeyEncoder {
  /// The number of bytes of the value at the start of `encoded`, which may go on behind it. Throws `ViewKeyError.damaged`.
  package static func length(of encoded: RawSpan) throws -> Int {
    guard let length = encoded.withUnsafeBytes({ end(of: $0, from: 0) }) else { throw ViewKeyError.damaged }
    return length
  }

  /// The number of bytes that tell the group of a key at a level of 1 or more: the keys that begin with these bytes are
  /// the group.
  ///
  /// An array with `level` items or more is grouped by its first `level` items. Other keys are grouped whole. `key` may go
  /// on behind the value.
  package static func groupPrefix(of key: RawSpan, level: Int) -> Int {
    key.withUnsafeBytes { bytes in
      guard let first = bytes.first else { return 0 }
      guard isArray(first) else { return end(of: bytes, from: 0) ?? bytes.count }
      var index = 1
      for _ in 0..<max(level, 0) {
        guard index < bytes.count else { return bytes.count }
        // With fewer items, the array's end belongs to the group.
        if bytes[index] == ViewKeyCodes.end { return index + 1 }
        guard let next = end(of: bytes, from: index) else { return bytes.count }
        index = next
      }
      return index
    }
  }

  /// The greatest key that a prefix match at a level has: a string goes on with any text, and an array with any item but
  /// objects that have members. At level 2 and above the last item of an array is matched at the level below.
  package static func prefixMatch(_ key: JSONValue, level: Int) -> JSONValue {
    guard level >= 1 else { return key }
    switch key {
    case .string(let string): return .string(string + "\u{FFFF}")
    case .array(var items):
      if level == 1 {
        items.append(.object(JSONObject()))
      } else if let last = items.popLast() {
        items.append(prefixMatch(last, level: level - 1))
      }
      return .array(items)
    default: return key
    }
  }

  private static func isArray(_ code: UInt8) -> Bool { code == 0x60 || code == 0x4A }

  /// The end of the value at `start`, or nil if it has none.
  private static func end(of bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    var index = start
    var depth = 0
    repeat {
      guard index < bytes.count else { return nil }
      let code = bytes[index]
      switch code {
      case ViewKeyCodes.end:
        guard depth > 0 else { return nil }
        depth -= 1
        index += 1
      case 0x60, 0x4A, 0x68, 0x48:
        depth += 1
        index += 1
      case 0x10, 0x18, 0x19, 0x40, 0x41, 0x42: index += 1
      case 0x50, 0x52, 0x4C:
        guard let end = bytes[index...].firstIndex(of: ViewKeyCodes.end) else { return nil }
        index = end + 1
      default:
        guard let length = numberLength(bytes, index) else { return nil }
        index += length
      }
    } while depth > 0
    return index <= bytes.count ? index : nil
  }

  /// The length of a number: see Storage's OrderedKeyNumber.swift.
  private static func numberLength(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int? {
    let code = bytes[start]
    switch code {
    case 0x25, 0x3A: return 9
    case 0x30: return 1
    case 0x26, 0x39: return 10
    case 0x27..<0x2F, 0x31..<0x39:
      let isNegative = code < 0x30
      let count = isNegative ? Int(0x2F - code) : Int(code - 0x30)
      guard start + count < bytes.count else { return nil }
      let inversion: UInt8 = isNegative ? 0xFF : 0
      let last = bytes[start + count] ^ inversion
      // The lowest bit of the magnitude says that there is a fraction. A magnitude of 1 has nothing else.
      if last & 1 == 0 { return 1 + count }
      return 1 + count + (count == 1 && last == 1 ? 8 : 7)
    default: return nil
    }
  }
}
