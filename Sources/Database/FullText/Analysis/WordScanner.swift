/// Finds the words of a text and folds them. For one thread at a time.
final class WordScanner {
  /// The maximum length in bytes of a stretch without separators that ICU divides. A longer stretch is cut
  /// first.
  static let longestStretch = 32 << 10

  let table: CharacterTable
  /// The folded byte for each byte, or `separator`, or `closerLook`.
  private let ascii: UnsafeMutablePointer<UInt8>
  private let breaker = WordBreaker()
  private let buffer: UnsafeMutablePointer<FoldedWord>

  private static let separator: UInt8 = 0
  private static let closerLook: UInt8 = 0xFF

  init(isTurkish: Bool, ignoresAccents: Bool) {
    table = CharacterTable(isTurkish: isTurkish, ignoresAccents: ignoresAccents)
    ascii = .allocate(capacity: 256)
    for byte in 0..<256 {
      switch UInt8(byte) {
      case 0x80...: ascii[byte] = Self.closerLook
      case UInt8(ascii: "I") where isTurkish: ascii[byte] = Self.closerLook
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): ascii[byte] = UInt8(byte) | 0x20
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        ascii[byte] = UInt8(byte)
      default: ascii[byte] = Self.separator
      }
    }
    buffer = .allocate(capacity: 1)
    buffer.initialize(to: FoldedWord())
  }

  deinit {
    table.free()
    ascii.deallocate()
    buffer.pointee.free()
    buffer.deallocate()
  }

  /// Calls `body` with the place of each word and its folded bytes. The bytes are valid until `body` returns.
  @inline(__always)
  func forEachWord(
    in text: UnsafeRawBufferPointer,
    _ body: (_ start: Int, _ end: Int, _ folded: UnsafeRawBufferPointer) throws -> Void
  ) rethrows {
    guard let base = text.baseAddress else { return }
    let count = text.count
    let bytes = base.assumingMemoryBound(to: UInt8.self)
    let ascii = ascii
    let buffer = buffer
    var index = 0
    while true {
      while index < count, ascii[Int(bytes[index])] == Self.separator { index += 1 }
      guard index < count else { return }
      let start = index
      // ASCII is folded as it is read, up to the buffer's minimum capacity, so the loop needs no capacity
      // checks.
      let to = buffer.pointee.start
      let limit = min(count, index + FoldedWord.smallest)
      var folded: UInt8 = 0
      while index < limit {
        folded = ascii[Int(bytes[index])]
        guard folded &- 1 < Self.closerLook - 1 else { break }
        to[index - start] = folded
        index += 1
      }
      if index == count || (index < limit && folded == Self.separator) {
        try body(start, index, UnsafeRawBufferPointer(start: to, count: index - start))
        continue
      }
      buffer.pointee.count = index - start
      switch scan(bytes, count, &index) {
      case .word:
        try body(start, index, buffer.pointee.bytes)
      case .nothing:
        break
      case .stretch:
        index = stretchEnd(bytes, count, from: start)
        let stretch = UnsafeRawBufferPointer(start: base + start, count: index - start)
        try breaker.forEachPiece(in: stretch) { pieceStart, pieceEnd in
          let end = start + pieceEnd
          let first = firstLetter(bytes, from: start + pieceStart, to: end)
          guard first < end, fold(bytes, from: first, to: end) else { return }
          try body(first, end, buffer.pointee.bytes)
        }
      }
    }
  }

  private enum Scanned {
    case word
    /// Only separators. The index is after them.
    case nothing
    /// A stretch of text in which ICU has to find the words.
    case stretch
  }

  /// Continues a word whose beginning is already in the buffer.
  @inline(never)
  private func scan(_ bytes: UnsafePointer<UInt8>, _ count: Int, _ index: inout Int) -> Scanned {
    let start = index - buffer.pointee.count
    var composes = false
    var isHangul = false
    while index < count {
      let folded = ascii[Int(bytes[index])]
      if folded == Self.separator { break }
      if folded != Self.closerLook {
        if isHangul { break }
        buffer.pointee.append(folded)
        index += 1
        continue
      }
      let (scalar, width) = decodeScalar(bytes + index, count - index)
      let entry = width == 0 ? 0 : table[scalar]
      let kind = entry >> CharacterTable.classShift & 7
      if kind == CharacterTable.Class.separator || (index == start && kind == CharacterTable.Class.mark) {
        if index == start {
          index += max(width, 1)
          return .nothing
        }
        break
      }
      if kind != CharacterTable.Class.mark {
        if index > start, isHangul != (kind == CharacterTable.Class.hangul) { break }
        if kind == CharacterTable.Class.complexLetter { return .stretch }
        isHangul = kind == CharacterTable.Class.hangul
      }
      if entry & CharacterTable.composingFlag != 0 { composes = true }
      if entry & CharacterTable.droppedFlag == 0 {
        buffer.pointee.append(scalar: entry & CharacterTable.scalarMask)
      }
      index += width
    }
    if composes { compose(bytes, from: start, to: index) }
    return buffer.pointee.count > 0 ? .word : .nothing
  }

  /// Returns the end of the run of letters and marks from `start`, without Hangul.
  private func stretchEnd(_ bytes: UnsafePointer<UInt8>, _ count: Int, from start: Int) -> Int {
    let limit = min(count, start + Self.longestStretch)
    var index = start
    while index < limit {
      let (scalar, width) = decodeScalar(bytes + index, count - index)
      guard width > 0 else { break }
      let kind = table.kind(scalar)
      if kind == CharacterTable.Class.separator || kind == CharacterTable.Class.hangul { break }
      index += width
    }
    return index
  }

  /// Returns the offset of the first letter in a piece of letters and marks, or `end` if there is none.
  private func firstLetter(_ bytes: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Int {
    var index = start
    while index < end {
      let (scalar, width) = decodeScalar(bytes + index, end - index)
      if table.kind(scalar) != CharacterTable.Class.mark { return index }
      index += max(width, 1)
    }
    return end
  }

  /// Folds a word into the buffer. Returns whether the buffer has any bytes.
  func fold(_ bytes: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Bool {
    buffer.pointee.count = 0
    var composes = false
    var index = start
    while index < end {
      let (scalar, width) = decodeScalar(bytes + index, end - index)
      guard width > 0 else { break }
      let entry = table[scalar]
      if entry & CharacterTable.composingFlag != 0 { composes = true }
      if entry & CharacterTable.droppedFlag == 0 {
        buffer.pointee.append(scalar: entry & CharacterTable.scalarMask)
      }
      index += width
    }
    if composes { compose(bytes, from: start, to: end) }
    return buffer.pointee.count > 0
  }

  var folded: UnsafeRawBufferPointer { buffer.pointee.bytes }

  /// Folds a word again after converting it to normal form C. Accents are removed after the composition, so
  /// that marks that compose a letter of another script stay.
  private func compose(_ bytes: UnsafePointer<UInt8>, from start: Int, to end: Int) {
    let text = String(decoding: UnsafeBufferPointer(start: bytes + start, count: end - start), as: UTF8.self)
    buffer.pointee.count = 0
    for scalar in NormalForm.composed(text).unicodeScalars {
      let entry = table[scalar.value]
      if entry & CharacterTable.droppedFlag == 0 {
        buffer.pointee.append(scalar: entry & CharacterTable.scalarMask)
      }
    }
  }
}

/// Decodes the code point at the beginning of the bytes. The width is 0 if the bytes don't begin with a
/// well-formed sequence.
@inline(__always)
func decodeScalar(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> (scalar: UInt32, width: Int) {
  let first = UInt32(bytes[0])
  if first < 0x80 { return (first, 1) }
  if first < 0xE0 {
    guard first >= 0xC2, count >= 2, bytes[1] & 0xC0 == 0x80 else { return (0, 0) }
    return ((first & 0x1F) << 6 | UInt32(bytes[1] & 0x3F), 2)
  }
  if first < 0xF0 {
    guard count >= 3, bytes[1] & 0xC0 == 0x80, bytes[2] & 0xC0 == 0x80 else { return (0, 0) }
    let scalar = (first & 0x0F) << 12 | UInt32(bytes[1] & 0x3F) << 6 | UInt32(bytes[2] & 0x3F)
    guard scalar >= 0x800, scalar & 0xF800 != 0xD800 else { return (0, 0) }
    return (scalar, 3)
  }
  guard first < 0xF5, count >= 4, bytes[1] & 0xC0 == 0x80, bytes[2] & 0xC0 == 0x80, bytes[3] & 0xC0 == 0x80
  else {
    return (0, 0)
  }
  let high = (first & 0x07) << 18 | UInt32(bytes[1] & 0x3F) << 12
  let scalar = high | UInt32(bytes[2] & 0x3F) << 6 | UInt32(bytes[3] & 0x3F)
  guard scalar >= 0x1_0000, scalar < 0x11_0000 else { return (0, 0) }
  return (scalar, 4)
}
