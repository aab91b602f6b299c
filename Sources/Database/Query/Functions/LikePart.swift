import CICU

/// Text that a LIKE pattern is searched in.
struct LikeText {
  let text: TextSlice
  /// Whether ASCII letters are folded as they are read.
  let foldsASCII: Bool

  var count: Int { text.count }

  @inline(__always)
  subscript(offset: Int) -> UInt8 {
    foldsASCII ? asciiFolded(text.start[offset]) : text.start[offset]
  }

  /// The same text, folded in advance.
  func folded(_ arena: EvaluationArena) -> LikeText {
    let bytes = arena.allocate(text.count, of: UInt8.self)
    for index in 0..<text.count { bytes[index] = asciiFolded(text.start[index]) }
    return LikeText(text: TextSlice(start: UnsafePointer(bytes), count: text.count), foldsASCII: false)
  }

  /// The offset of the character after the one at an offset.
  @inline(__always)
  func after(_ offset: Int) -> Int {
    var next = offset &+ 1
    while next < text.count, text.start[next] & 0xC0 == 0x80 { next &+= 1 }
    return next
  }

  /// The offset of the character that ends at an offset.
  @inline(__always)
  func before(_ offset: Int) -> Int {
    var previous = offset &- 1
    while previous > 0, text.start[previous] & 0xC0 == 0x80 { previous &-= 1 }
    return previous
  }
}

/// The part of a pattern between two `%`: folded UTF-8, with the byte `anyOne`, which never occurs in UTF-8,
/// for `_`.
///
/// The search time doesn't grow with pattern length times text length. Plain text is found by the C library's
/// linear search. Text with `_` is found by `WildcardSearch`, which handles 64 characters of the pattern at a
/// time.
// Unchecked: only `init` writes the memory.
final class LikePart: @unchecked Sendable {
  static let anyOne: UInt8 = 0xFF
  /// A search of at most this many steps compares byte by byte, because the faster methods need preparation.
  private static let shortSearch = 2_048

  /// The bytes, in memory of its own, so that a row retains nothing.
  private let part: TextSlice
  private let wildcards: WildcardSearch?
  private let hasAnyOne: Bool

  init(_ bytes: [UInt8]) {
    let start = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, bytes.count))
    for (index, byte) in bytes.enumerated() { (start + index).initialize(to: byte) }
    part = TextSlice(start: UnsafePointer(start), count: bytes.count)
    hasAnyOne = bytes.contains(Self.anyOne)
    wildcards = hasAnyOne ? WildcardSearch(part) : nil
  }

  deinit { part.start.deallocate() }

  /// The end offset of an occurrence that begins at `start`. Nil when there is none.
  @inline(__always)
  func end(in text: LikeText, from start: Int) -> Int? {
    var offset = start
    for byte in part.utf8 {
      guard offset < text.count else { return nil }
      if byte == Self.anyOne {
        offset = text.after(offset)
      } else {
        guard text[offset] == byte else { return nil }
        offset &+= 1
      }
    }
    return offset
  }

  /// The start offset, not before `from`, of an occurrence at the end of the text. Nil when there is none.
  @inline(__always)
  func start(in text: LikeText, from: Int) -> Int? {
    var offset = text.count
    for byte in part.utf8.reversed() {
      guard offset > from else { return nil }
      if byte == Self.anyOne {
        offset = text.before(offset)
      } else {
        offset &-= 1
        guard text[offset] == byte else { return nil }
      }
    }
    return offset >= from ? offset : nil
  }

  /// Whether a search in this many bytes uses a faster method. That method needs the text folded in advance.
  @inline(__always)
  func isLongSearch(_ length: Int) -> Bool { length &* part.count > Self.shortSearch }

  /// The end offset of the first occurrence between two offsets. Nil when there is none.
  func find(in text: LikeText, _ from: Int, _ to: Int, _ context: EvaluationContext) -> Int? {
    let length = to &- from
    if isLongSearch(length) {
      if !hasAnyOne { return part.position(in: text.text, from, to).map { $0 + part.count } }
      if let wildcards { return wildcards.find(in: text.text, from, to, context) }
    }
    // A short search takes at most `shortSearch` steps, so it checks only once whether the query has to stop.
    if !hasAnyOne { return context.goesOn ? end(in: text, from, to) : nil }
    let inner = LikeText(text: TextSlice(start: text.text.start, count: to), foldsASCII: text.foldsASCII)
    var offset = from
    while true {
      if let end = end(in: inner, from: offset) { return end }
      guard offset < to, context.goesOn else { return nil }
      offset = inner.after(offset)
    }
  }

  /// The end offset of the first occurrence of a part without `_` between two offsets, searched byte by byte.
  private func end(in text: LikeText, _ from: Int, _ to: Int) -> Int? {
    guard part.count > 0 else { return from }
    // Most bytes of a text are neither of these two. They aren't folded.
    let first = part.start[0]
    let upper = text.foldsASCII && first &- 0x61 < 26 ? first & ~0x20 : first
    let bytes = text.text.start
    var offset = from
    while offset <= to &- part.count {
      if bytes[offset] == first || bytes[offset] == upper {
        var index = 1
        while index < part.count, text[offset &+ index] == part.start[index] { index &+= 1 }
        if index == part.count { return offset &+ index }
      }
      offset &+= 1
    }
    return nil
  }
}

extension TextSlice {
  /// The offset of the first occurrence of these bytes in a text between two offsets, or nil. Linear time.
  func position(in text: TextSlice, _ from: Int, _ to: Int) -> Int? {
    guard count > 0 else { return from }
    guard to &- from >= count, let found = text_find(text.start + from, to &- from, start, count) else {
      return nil
    }
    return found - UnsafeRawPointer(text.start)
  }

  /// The code point at an offset, and its length in bytes. Invalid UTF-8 gives U+FFFD with a length of one
  /// byte.
  @inline(__always)
  func scalarOrReplacement(at offset: Int) -> (scalar: UInt32, length: Int) {
    let (scalar, length) = scalar(at: offset)
    if _fastPath(scalar < 0x80) { return (scalar, length) }
    let least: UInt32 = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x1_0000
    guard start[offset] >= 0xC0, length > 1, scalar >= least, Unicode.Scalar(scalar) != nil else {
      return (0xFFFD, 1)
    }
    return (scalar, length)
  }
}

extension UInt32 {
  /// Writes a code point as UTF-8. Returns the number of bytes.
  @inline(__always)
  func writeUTF8(to bytes: UnsafeMutablePointer<UInt8>) -> Int {
    if self < 0x80 {
      bytes[0] = UInt8(truncatingIfNeeded: self)
      return 1
    }
    func tail(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: self >> shift & 0x3F | 0x80) }
    if self < 0x800 {
      bytes[0] = UInt8(truncatingIfNeeded: self >> 6 | 0xC0)
      bytes[1] = tail(0)
      return 2
    }
    if self < 0x1_0000 {
      bytes[0] = UInt8(truncatingIfNeeded: self >> 12 | 0xE0)
      bytes[1] = tail(6)
      bytes[2] = tail(0)
      return 3
    }
    bytes[0] = UInt8(truncatingIfNeeded: self >> 18 | 0xF0)
    bytes[1] = tail(12)
    bytes[2] = tail(6)
    bytes[3] = tail(0)
    return 4
  }
}
