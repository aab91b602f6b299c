#if canImport(Glibc)
  import Glibc
#endif

/// Builds JSON text in a buffer of fixed size.
///
/// The writer knows the length of its longest document (`SyntheticTravel.maximumLineBytes`) and allocates a
/// buffer of that size. Only assertions check the bounds.
struct JSONText {
  private let base: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private(set) var count = 0

  init(base: UnsafeMutablePointer<UInt8>, capacity: Int) {
    self.base = base
    self.capacity = capacity
  }

  mutating func clear() { count = 0 }

  @inline(__always)
  mutating func byte(_ byte: UInt8) {
    assert(count < capacity)
    base[count] = byte
    count += 1
  }

  /// Appends JSON text unchanged.
  @inline(__always)
  mutating func raw(_ text: StaticString) {
    assert(count + text.utf8CodeUnitCount <= capacity)
    memcpy(base + count, text.utf8Start, text.utf8CodeUnitCount)
    count += text.utf8CodeUnitCount
  }

  mutating func bytes(_ pointer: UnsafePointer<UInt8>, _ length: Int) {
    assert(count + length <= capacity)
    memcpy(base + count, pointer, length)
    count += length
  }

  /// Appends a word of the vocabulary.
  @inline(__always)
  mutating func word(_ word: Int, of vocabulary: Vocabulary) {
    assert(count + Vocabulary.slotBytes <= capacity)
    memcpy(base + count, vocabulary.slot(word), Vocabulary.slotBytes)
    count += vocabulary.length(word)
  }

  /// Appends a word with its first letter in upper case, if that letter is ASCII.
  @inline(__always)
  mutating func capitalizedWord(_ word: Int, of vocabulary: Vocabulary) {
    let start = count
    self.word(word, of: vocabulary)
    if base[start] >= 0x61, base[start] <= 0x7A { base[start] -= 0x20 }
  }

  mutating func integer(_ value: Int) {
    var rest = value.magnitude
    if value < 0 { byte(0x2D) }
    var digits = 1
    var bound: UInt = 10
    while rest >= bound, digits < 19 {
      digits += 1
      bound *= 10
    }
    assert(count + digits <= capacity)
    var position = count + digits
    repeat {
      position -= 1
      base[position] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while position > count
    count += digits
  }

  /// Appends `value` with `digits` digits, padded with zeros.
  @inline(__always)
  mutating func digits(_ value: Int, _ digits: Int) {
    assert(count + digits <= capacity)
    var rest = value
    var position = count + digits
    while position > count {
      position -= 1
      base[position] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
    count += digits
  }

  /// Appends the number `value` / 10^`decimals`. It has no trailing zeros but always a fraction, so that it
  /// is read as a double.
  mutating func decimal(_ value: Int, _ decimals: Int) {
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    if value < 0 { byte(0x2D) }
    integer(Int(value.magnitude) / scale)
    byte(0x2E)
    digits(Int(value.magnitude) % scale, decimals)
    while base[count - 1] == 0x30, base[count - 2] != 0x2E { count -= 1 }
  }

  @inline(__always)
  mutating func boolean(_ value: Bool) {
    if value { raw("true") } else { raw("false") }
  }

  /// Appends a copy of the text at `range`.
  @inline(__always)
  mutating func copy(_ range: Range<Int>) {
    assert(count + range.count <= capacity)
    memcpy(base + count, base + range.lowerBound, range.count)
    count += range.count
  }

  /// Replaces the last byte.
  @inline(__always)
  mutating func replaceLast(with byte: UInt8) { base[count - 1] = byte }

  /// Removes a trailing space.
  mutating func trimSpace() {
    if base[count - 1] == 0x20 { count -= 1 }
  }
}
