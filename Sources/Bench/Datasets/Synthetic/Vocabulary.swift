/// Made-up words, composed of syllables. Frequent words are short. Words are drawn with frequencies by Zipf's
/// law.
///
/// Every word has its own slot of fixed size, so that writing a word is a copy of fixed length. About one
/// word in forty has a letter outside ASCII.
final class Vocabulary: Sendable {
  /// The size of a slot in bytes. A word isn't longer.
  static let slotBytes = 16
  /// A draw uses 16 random bits.
  private static let drawCount = 1 << 16

  let wordCount: Int
  private nonisolated(unsafe) let slots: UnsafeMutablePointer<UInt8>
  private nonisolated(unsafe) let lengths: UnsafeMutablePointer<UInt8>
  /// The word of each draw. The number of entries of a word is proportional to its frequency.
  private nonisolated(unsafe) let draws: UnsafeMutablePointer<UInt16>

  /// Makes `wordCount` words, at most 65,536, from `seed`.
  init(seed: UInt64, wordCount: Int) {
    self.wordCount = wordCount
    slots = .allocate(capacity: wordCount * Vocabulary.slotBytes)
    slots.initialize(repeating: 0, count: wordCount * Vocabulary.slotBytes)
    lengths = .allocate(capacity: wordCount)
    draws = .allocate(capacity: Vocabulary.drawCount)

    var random = SeededRandom(seed: seed, stream: 0, index: 0)
    var taken: Set<[UInt8]> = []
    for rank in 0..<wordCount {
      var word = Vocabulary.word(rank, &random)
      while !taken.insert(word).inserted { word = Vocabulary.word(rank, &random) }
      for (offset, byte) in word.enumerated() { slots[rank * Vocabulary.slotBytes + offset] = byte }
      lengths[rank] = UInt8(word.count)
    }

    // The Zipf-Mandelbrot law, weight 1 / (rank + 3), in integers.
    let scale = 1 << 40
    let total = (0..<wordCount).reduce(0) { $0 + scale / ($1 + 3) }
    var upTo = 0
    var draw = 0
    for rank in 0..<wordCount {
      upTo += scale / (rank + 3)
      let end = upTo * Vocabulary.drawCount / total
      while draw < end {
        draws[draw] = UInt16(rank)
        draw += 1
      }
    }
    while draw < Vocabulary.drawCount {
      draws[draw] = 0
      draw += 1
    }
  }

  deinit {
    slots.deallocate()
    lengths.deallocate()
    draws.deallocate()
  }

  private static let onsets = [
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "ch", "pl", "gr",
    "", "th", "sh", "br",
  ]
  private static let vowels = ["a", "e", "i", "o", "u", "a", "e", "o", "ea", "ou"]
  private static let accentedVowels = ["é", "è", "ö", "ü", "ñe", "ça"]
  private static let codas = ["", "", "", "n", "r", "s", "l", "t", "nd", "st"]

  private static func word(_ rank: Int, _ random: inout SeededRandom) -> [UInt8] {
    let syllables = rank < 60 ? 1 : rank < 600 ? 1 + random.below(2) : 2 + random.below(2)
    let accented = rank >= 40 && random.below(40) == 0 ? random.below(syllables) : -1
    var word: [UInt8] = []
    for syllable in 0..<syllables {
      word += onsets[random.below(onsets.count)].utf8
      let vowels = syllable == accented ? accentedVowels : vowels
      word += vowels[random.below(vowels.count)].utf8
      if syllable == syllables - 1 { word += codas[random.below(codas.count)].utf8 }
    }
    return word
  }

  /// The word of a draw. Words are drawn with their frequencies.
  @inline(__always)
  func draw(_ bits: UInt64) -> Int { Int(draws[Int(truncatingIfNeeded: bits & 0xFFFF)]) }

  @inline(__always)
  func slot(_ word: Int) -> UnsafePointer<UInt8> { UnsafePointer(slots + word * Vocabulary.slotBytes) }

  @inline(__always)
  func length(_ word: Int) -> Int { Int(lengths[word]) }
}
