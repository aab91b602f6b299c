import TestTools

@testable import FullText

/// The words by the rule's letter: ICU's breaks of the whole text, each piece split at what is no letter or mark.
private func wordsByICU(_ text: [UInt8], _ scanner: WordScanner) -> [FoundTerm] {
  var found: [FoundTerm] = []
  text.withUnsafeBytes { raw in
    let bytes = raw.bindMemory(to: UInt8.self)
    guard let base = bytes.baseAddress else { return }
    func kind(_ index: Int) -> (kind: UInt32, width: Int) {
      let (scalar, width) = decodeScalar(base + index, text.count - index)
      return width == 0 ? (0, 1) : (scanner.table.kind(scalar), width)
    }
    func isHangul(_ index: Int) -> Bool {
      var index = index
      while index < text.count, kind(index).kind == CharacterTable.Class.mark { index += kind(index).width }
      return index < text.count && kind(index).kind == CharacterTable.Class.hangul
    }
    // Hangul is a word of its own, which ICU's breaks don't divide.
    func add(_ start: Int, _ end: Int) {
      var runStart = start
      var index = start
      while index < end {
        if kind(index).kind != CharacterTable.Class.mark, isHangul(index) != isHangul(runStart) {
          addWord(runStart, index)
          runStart = index
        }
        index += kind(index).width
      }
      addWord(runStart, end)
    }
    func addWord(_ start: Int, _ end: Int) {
      var start = start
      if let last = found.last, last.end == start, isHangul(last.start), start < end, isHangul(start) {
        start = last.start
        found.removeLast()
      }
      guard start < end, scanner.fold(base, from: start, to: end) else { return }
      let term = String(decoding: scanner.folded, as: UTF8.self)
      found.append(FoundTerm(term: term, position: found.count, start: start, end: end))
    }
    WordBreaker().forEachPiece(in: raw) { pieceStart, pieceEnd in
      var start = pieceEnd
      var index = pieceStart
      while index < pieceEnd {
        let (kind, width) = kind(index)
        if kind == CharacterTable.Class.separator {
          add(start, index)
          start = pieceEnd
        } else if start == pieceEnd, kind != CharacterTable.Class.mark {
          start = index
        }
        index += width
      }
      add(start, pieceEnd)
    }
  }
  return found
}

@Suite struct WordBreakTests {
  private static let pieces: [String] = [
    "a", "Z", "I", "7", "the", "don't", "3.14", "a.b", "a:b", "x_y", "_", ".", ",", "'", "’", "-", " ", " ",
    "\n",
    "\r\n", "é", "e\u{301}", "\u{301}", "ß", "İ", "ı", "Ж", "й", "и\u{306}", "ω", "א", "א\"ב", "א'", "ب", "ـ",
    "५",
    "हि", "क्ष", "한", "\u{1112}\u{1161}", "北京", "大学", "の", "カ", "ー", "ｶﾞ", "ひらがな", "\u{3005}", "々", "ไทย",
    "ภาษา", "ง่าย", "ລາວ", "မြန်", "ខ្មែរ", "👩‍👧", "🇫🇷", "☎️", "²", "½", "Ⅷ", "\u{AD}", "\u{200D}", "\u{200C}",
    "\u{200B}", "\u{FE0F}", "𝒜", "𠀀", "\u{E000}", "。", "・", "@", "#", "\0", "\u{1F3FD}", "\u{2060}",
  ]

  @Test(arguments: [false, true])
  func whatIsReadWithoutICUIsWhatICUFinds(ignoresAccents: Bool) throws {
    var random = SeededGenerator(seed: testSeed)
    let scanner = WordScanner(isTurkish: false, ignoresAccents: ignoresAccents)
    let analyzer = try analyzer(ignoresAccents: ignoresAccents)
    for round in 0..<20_000 {
      var text: [UInt8] = []
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        if Int.random(in: 0..<40, using: &random) == 0 {
          text.append(UInt8.random(in: 0...255, using: &random))
        } else if let piece = Self.pieces.randomElement(using: &random) {
          text += Array(piece.utf8)
        }
      }
      let found = analyzer.found(text)
      let expected = wordsByICU(text, scanner)
      if found != expected {
        Issue.record(
          "seed \(testSeed), round \(round): \(String(decoding: text, as: UTF8.self).debugDescription): \(found), \(expected)"
        )
        return
      }
    }
  }

  @Test func asciiIsWhatICUFinds() throws {
    var random = SeededGenerator(seed: testSeed)
    let scanner = WordScanner(isTurkish: false, ignoresAccents: false)
    let analyzer = try analyzer()
    for round in 0..<20_000 {
      let text = (0..<Int.random(in: 0...40, using: &random)).map { _ -> UInt8 in
        Int.random(in: 0..<3, using: &random) == 0
          ? UInt8.random(in: 0...127, using: &random) : UInt8.random(in: 97...122, using: &random)
      }
      let found = analyzer.found(text)
      let expected = wordsByICU(text, scanner)
      if found != expected {
        Issue.record("seed \(testSeed), round \(round): \(text): \(found), \(expected)")
        return
      }
    }
  }
}
