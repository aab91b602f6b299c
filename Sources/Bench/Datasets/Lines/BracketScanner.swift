#if canImport(Glibc)
  import Glibc
#endif

/// Scans JSON text by its brackets and strings only. It stays within bounds for any input.
struct BracketScanner {
  private let bytes: UnsafeMutableRawBufferPointer
  private(set) var position = 0

  init(_ bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

  mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default: return
      }
    }
  }

  /// Skips `byte` if it is next, and returns whether it was.
  mutating func take(_ byte: UInt8) -> Bool {
    guard position < bytes.count, bytes[position] == byte else { return false }
    position += 1
    return true
  }

  /// Skips a string and returns the range of its content, including escapes. Nil if there is no string or it
  /// has no end.
  mutating func takeString() -> Range<Int>? {
    guard let base = bytes.baseAddress, take(0x22) else { return nil }
    let start = position
    while position < bytes.count {
      guard let quote = memchr(base + position, 0x22, bytes.count - position) else { break }
      let end = UnsafeMutableRawPointer(quote) - base
      position = end + 1
      // The quote is escaped if the number of backslashes before it is odd.
      var backslashes = 0
      while end - backslashes > start, bytes[end - backslashes - 1] == 0x5C { backslashes += 1 }
      if backslashes & 1 == 0 { return start..<end }
    }
    position = bytes.count
    return nil
  }

  /// Skips a value, up to the comma or bracket after it. Returns false if the text ends inside it.
  mutating func skipValue() -> Bool {
    var depth = 0
    while position < bytes.count {
      switch bytes[position] {
      case 0x22:
        guard takeString() != nil else { return false }
        continue
      case 0x7B, 0x5B: depth += 1
      case 0x7D, 0x5D:
        if depth == 0 { return true }
        depth -= 1
      case 0x2C: if depth == 0 { return true }
      default: break
      }
      position += 1
    }
    return false
  }
}
