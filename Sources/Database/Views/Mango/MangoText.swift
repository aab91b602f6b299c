import Bytes

/// The order of strings in ICU's root collation, for those where ASCII decides: without their sort keys, which take ICU half a microsecond.
///
/// Every printable character of ASCII has a weight of its own on the first level, which a letter and its capital share. The first level is
/// compared before all others. So the first place with different weights there decides, if the characters up to it, and those behind
/// it, stand for themselves.
struct MangoText: Sendable {
  /// The weight on the first level; 0 for what isn't printable ASCII.
  private var weights = [UInt8](repeating: 0, count: 256)
  /// Whether a byte may follow a character without changing its weight: ASCII, and the first bytes of letters in Latin, Cyrillic and
  /// Chinese, which no collation element of ASCII characters goes on with. Marks have other first bytes.
  private var separates = [Bool](repeating: false, count: 256)

  /// The weights that ICU has. Without any, nothing is decided.
  static let shared = MangoText()

  private init() {
    guard let collation = try? MangoCollation() else { return }
    let levelEnd: UInt8 = 1
    var first: [(weight: ArraySlice<UInt8>, byte: UInt8)] = []
    for byte in UInt8(0x20)...0x7E {
      let key = collation.sortKey(of: String(Unicode.Scalar(byte)))
      first.append((key.prefix { $0 != levelEnd }, byte))
      separates[Int(byte)] = true
    }
    first.sort { $0.weight.lexicographicallyPrecedes($1.weight) }
    var weight: UInt8 = 0
    for (place, one) in first.enumerated() {
      // One without a weight would be ignored.
      guard !one.weight.isEmpty else { continue }
      if place == 0 || first[place - 1].weight != one.weight { weight += 1 }
      weights[Int(one.byte)] = weight
    }
    for bytes in [0xC3...0xC5, 0xD0...0xD1, 0xE4...0xE9] { for byte in bytes { separates[byte] = true } }
  }

  /// Below 0, 0 or above 0; nil if ICU has to compare them.
  func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int? {
    weights.withUnsafeBufferPointer { weights in
      let shared = min(left.count, right.count)
      // The first difference between letters that are the same but for their case: small ones come first.
      var inCase = 0
      for place in 0..<shared {
        let (byte, other) = (left[place], right[place])
        let (weight, otherWeight) = (weights[Int(byte)], weights[Int(other)])
        guard weight != 0, otherWeight != 0 else { return nil }
        if weight != otherWeight {
          guard isAlone(left, place), isAlone(right, place) else { return nil }
          return Int(weight) - Int(otherWeight)
        }
        if inCase == 0, byte != other { inCase = byte > other ? -1 : 1 }
      }
      if left.count == right.count { return inCase }
      // What is longer comes behind, unless its rest is ignored.
      let (longer, order) = left.count > shared ? (left, 1) : (right, -1)
      return weights[Int(longer[shared])] != 0 && isAlone(longer, shared) ? order : nil
    }
  }

  @inline(__always)
  private func isAlone(_ text: UnsafeRawBufferPointer, _ place: Int) -> Bool {
    place + 1 >= text.count || separates[Int(text[place + 1])]
  }
}
