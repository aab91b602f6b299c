import CICU

/// A growing buffer for the UTF-8 bytes of a folded word.
struct FoldedWord {
  /// The initial capacity in bytes. The capacity never falls below it.
  static let smallest = 256

  private(set) var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  var count = 0

  init() {
    capacity = Self.smallest
    start = .allocate(capacity: capacity)
  }

  func free() { start.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    if count == capacity { grow() }
    start[count] = byte
    count += 1
  }

  @inline(__always)
  mutating func append(scalar: UInt32) {
    if count + 4 > capacity { grow() }
    let to = start + count
    switch scalar {
    case ..<0x80:
      to[0] = UInt8(truncatingIfNeeded: scalar)
      count += 1
    case ..<0x800:
      to[0] = 0xC0 | UInt8(truncatingIfNeeded: scalar >> 6)
      to[1] = 0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F)
      count += 2
    case ..<0x1_0000:
      to[0] = 0xE0 | UInt8(truncatingIfNeeded: scalar >> 12)
      to[1] = 0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F)
      to[2] = 0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F)
      count += 3
    default:
      to[0] = 0xF0 | UInt8(truncatingIfNeeded: scalar >> 18)
      to[1] = 0x80 | UInt8(truncatingIfNeeded: scalar >> 12 & 0x3F)
      to[2] = 0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F)
      to[3] = 0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F)
      count += 4
    }
  }

  @inline(never)
  private mutating func grow() {
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity * 2)
    grown.update(from: start, count: count)
    start.deallocate()
    start = grown
    capacity *= 2
  }
}

/// Unicode's normal forms.
enum NormalForm {
  /// Returns the text in normal form C, or the text itself if ICU fails.
  static func composed(_ text: String) -> String {
    let units = Array(text.utf16)
    // Composition makes a text at most three times as long, in UTF-16 units.
    var composed = [UInt16](repeating: 0, count: units.count * 3 + 16)
    let count = icu_nfc(units, Int32(units.count), &composed, Int32(composed.count))
    guard count >= 0, Int(count) <= composed.count else { return text }
    return String(decoding: composed[..<Int(count)], as: UTF16.self)
  }
}
