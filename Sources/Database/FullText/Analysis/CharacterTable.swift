import CICU

/// The properties of every code point that text analysis needs. For one thread at a time.
///
/// A block of 256 entries is filled from ICU's properties when a text has a character of the block.
///
/// An entry, from its low bits:
///
///     21 bits   the character folded (and without accents, if they are ignored)
///      3 bits   unused
///      3 bits   its class
///      1 bit    the character is dropped
///      1 bit    a word with this character must be composed (normal form C)
struct CharacterTable {
  /// The class of a character.
  enum Class {
    /// A character between words.
    static let separator: UInt32 = 0
    /// Word breaks never divide these letters from the letters and marks next to them.
    static let letter: UInt32 = 1
    static let mark: UInt32 = 2
    /// A letter of a script that needs ICU to find its words.
    static let complexLetter: UInt32 = 3
    /// A run of Hangul is one word, and other letters next to it are other words. ICU isn't used for Hangul:
    /// its word breaks there depend on later text. If its dictionaries are needed later in the text, it
    /// divides Korean words.
    static let hangul: UInt32 = 4
  }

  static let scalarMask: UInt32 = 0x1F_FFFF
  static let classShift: UInt32 = 24
  static let droppedFlag: UInt32 = 1 << 27
  static let composingFlag: UInt32 = 1 << 28

  private static let blockCount = 0x11_0000 >> 8

  private let blocks: UnsafeMutablePointer<UnsafeMutablePointer<UInt32>?>
  private let isTurkish: Bool
  private let ignoresAccents: Bool

  /// Creates an empty table. Call `free` when it is no longer used.
  init(isTurkish: Bool, ignoresAccents: Bool) {
    self.isTurkish = isTurkish
    self.ignoresAccents = ignoresAccents
    blocks = .allocate(capacity: Self.blockCount)
    blocks.initialize(repeating: nil, count: Self.blockCount)
  }

  func free() {
    for block in 0..<Self.blockCount { blocks[block]?.deallocate() }
    blocks.deallocate()
  }

  /// The entry of a code point. The code point must be at most 10FFFF.
  @inline(__always)
  subscript(scalar: UInt32) -> UInt32 {
    if let block = blocks[Int(scalar >> 8)] { return block[Int(scalar & 0xFF)] }
    return fill(Int(scalar >> 8))[Int(scalar & 0xFF)]
  }

  /// The class of a code point.
  @inline(__always)
  func kind(_ scalar: UInt32) -> UInt32 { self[scalar] >> Self.classShift & 7 }

  @inline(never)
  private func fill(_ number: Int) -> UnsafeMutablePointer<UInt32> {
    let block = UnsafeMutablePointer<UInt32>.allocate(capacity: 256)
    for low in 0..<256 { block[low] = entry(Int32(number << 8 | low)) }
    blocks[number] = block
    return block
  }

  private func entry(_ scalar: Int32) -> UInt32 {
    let kind: UInt32
    if icu_is_word(scalar) != 0 {
      if icu_never_breaks(scalar) == 0 {
        kind = Class.complexLetter
      } else {
        kind = icu_is_hangul(scalar) != 0 ? Class.hangul : Class.letter
      }
    } else if icu_is_any_mark(scalar) != 0 {
      kind = Class.mark
    } else {
      return UInt32(scalar)
    }
    var folded = fold(scalar)
    var flags = icu_may_compose(scalar) != 0 ? Self.composingFlag : 0
    if ignoresAccents {
      if Self.isDiacritic(scalar) {
        flags |= Self.droppedFlag
      } else if let base = Self.base(of: folded) {
        folded = fold(base)
      }
    }
    return UInt32(folded) | kind << Self.classShift | flags
  }

  private func fold(_ scalar: Int32) -> Int32 { isTurkish ? icu_fold_turkic(scalar) : icu_fold(scalar) }

  /// Whether a mark is in one of the blocks of combining diacritical marks. These marks belong to no script.
  private static func isDiacritic(_ scalar: Int32) -> Bool {
    switch scalar {
    case 0x300...0x36F, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF, 0xFE20...0xFE2F: true
    default: false
    }
  }

  /// Returns the Latin or Greek base letter if the character decomposes into it and marks, otherwise nil.
  private static func base(of scalar: Int32) -> Int32? {
    guard let unicode = Unicode.Scalar(UInt32(scalar)) else { return nil }
    let units = Array(String(Character(unicode)).utf16)
    var decomposed = [UInt16](repeating: 0, count: 32)
    let count = icu_nfd(units, Int32(units.count), &decomposed, Int32(decomposed.count))
    guard count > 1, Int(count) <= decomposed.count else { return nil }
    let scalars = String(decoding: decomposed[..<Int(count)], as: UTF16.self).unicodeScalars
    guard scalars.count > 1, let first = scalars.first else { return nil }
    let base = Int32(first.value)
    let hasOnlyMarks = scalars.dropFirst().allSatisfy { icu_is_any_mark(Int32($0.value)) != 0 }
    return hasOnlyMarks && icu_is_latin_or_greek(base) != 0 ? base : nil
  }
}
