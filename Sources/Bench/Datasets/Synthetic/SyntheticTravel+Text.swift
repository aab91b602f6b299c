/// The parts that all types of documents are made of.
extension SyntheticTravel {
  /// Writes a string of prose of about `length` bytes: sentences with commas, and sometimes quotation marks,
  /// a line break or a number.
  func writeProse(_ length: Int, _ random: inout SeededRandom) {
    let vocabulary = vocabulary
    var text = text
    text.byte(0x22)
    let end = text.count + length
    var wordsLeft = 0
    while true {
      let bits = random.next()
      let word = vocabulary.draw(bits)
      if text.count + vocabulary.length(word) / 2 > end { break }
      if wordsLeft == 0 {
        wordsLeft = 5 + Int(bits >> 16 & 15)
        text.capitalizedWord(word, of: vocabulary)
      } else {
        text.word(word, of: vocabulary)
      }
      wordsLeft -= 1
      let mark = bits >> 24 & 255
      if wordsLeft == 0 {
        if mark < 4 { text.raw(".\\n") } else { text.raw(". ") }
      } else if mark < 16 {
        text.raw(", ")
      } else if mark < 18 {
        text.raw(" \\\"")
        text.word(vocabulary.draw(bits >> 32), of: vocabulary)
        text.raw("\\\" ")
      } else if mark < 20 {
        text.byte(0x20)
        text.integer(Int(bits >> 48 & 127))
        text.byte(0x20)
      } else {
        text.byte(0x20)
      }
    }
    text.trimSpace()
    text.byte(0x22)
    self.text = text
  }

  /// Writes a name: a string of capitalised words of about `length` bytes.
  func writeName(_ length: Int, _ random: inout SeededRandom) {
    text.byte(0x22)
    writeWords(length, &random)
    text.byte(0x22)
  }

  func writeWords(_ length: Int, _ random: inout SeededRandom) {
    let end = text.count + length
    var isFirst = true
    while true {
      let word = rareWord(&random)
      if !isFirst, text.count + vocabulary.length(word) / 2 > end { return }
      if !isFirst { text.byte(0x20) }
      isFirst = false
      text.capitalizedWord(word, of: vocabulary)
    }
  }

  /// Writes a given name and a surname.
  func writePerson(_ random: inout SeededRandom) {
    text.byte(0x22)
    text.capitalizedWord(rareWord(&random), of: vocabulary)
    text.byte(0x20)
    text.capitalizedWord(rareWord(&random), of: vocabulary)
    text.byte(0x22)
  }

  /// A word that isn't one of the most frequent, for use in names.
  private func rareWord(_ random: inout SeededRandom) -> Int {
    100 + random.below(vocabulary.wordCount - 100)
  }

  func writeCity(_ city: Int) {
    text.byte(0x22)
    text.capitalizedWord(600 + city * 3 % 5_000, of: vocabulary)
    text.byte(0x22)
  }

  /// Writes the output of `body` in `percent` of 100 cases, and null otherwise.
  @inline(__always)
  func writeOptional(
    _ percent: Int, _ random: inout SeededRandom, _ body: (inout SeededRandom) -> Void
  ) {
    if random.chance(percent) { body(&random) } else { text.raw("null") }
  }

  func writeQuoted(_ string: StaticString) {
    text.byte(0x22)
    text.raw(string)
    text.byte(0x22)
  }

  func writePhone(_ country: TravelPlaces.Country, _ random: inout SeededRandom) {
    text.byte(0x22)
    text.raw(country.dialling)
    text.digits(200 + random.below(800), 3)
    text.byte(0x20)
    text.digits(random.below(1_000), 3)
    text.byte(0x2D)
    text.digits(random.below(10_000), 4)
    text.byte(0x22)
  }

  func writeEmail(_ random: inout SeededRandom) {
    text.raw(#""info@"#)
    text.word(rareWord(&random), of: vocabulary)
    text.word(rareWord(&random), of: vocabulary)
    text.raw(#".example""#)
  }

  func writeURL(_ length: Int, _ random: inout SeededRandom) {
    text.raw(#""http://www."#)
    let end = text.count + length - 20
    text.word(rareWord(&random), of: vocabulary)
    text.raw(".example/")
    while text.count < end {
      text.word(rareWord(&random), of: vocabulary)
      text.byte(0x2F)
    }
    text.byte(0x22)
  }

  func writeAddress(_ length: Int, _ random: inout SeededRandom) {
    text.byte(0x22)
    text.integer(1 + random.below(400))
    text.byte(0x20)
    writeWords(max(4, length - 4), &random)
    text.byte(0x22)
  }

  /// Writes a price, opening hours or a time: words and numbers of about `length` bytes.
  func writeTerms(_ length: Int, _ random: inout SeededRandom) {
    text.byte(0x22)
    let end = text.count + length
    text.digits(1 + random.below(23), 2)
    text.raw(":00")
    while text.count + 4 < end {
      text.byte(0x20)
      text.word(vocabulary.draw(random.next()), of: vocabulary)
      if text.count + 4 < end {
        text.byte(0x20)
        text.integer(1 + random.below(99))
      }
    }
    text.byte(0x22)
  }

  /// Writes the latitude and longitude of a place near a city, without braces.
  func writePosition(_ city: Int, _ country: TravelPlaces.Country, _ random: inout SeededRandom) {
    var place = SeededRandom(seed: seed, stream: 0x200, index: UInt64(truncatingIfNeeded: city))
    text.raw(#""lat":"#)
    text.decimal(country.latitude + place.below(country.height) + random.below(60_000), 6)
    text.raw(#","lon":"#)
    text.decimal(country.longitude + place.below(country.width) + random.below(60_000), 6)
  }

  /// Writes the `geo` object of hotels and landmarks.
  func writeGeo(_ city: Int, _ country: TravelPlaces.Country, _ random: inout SeededRandom) {
    text.byte(0x7B)
    writePosition(city, country, &random)
    switch random.below(4) {
    case 0: text.raw(#","accuracy":"ROOFTOP"}"#)
    case 1: text.raw(#","accuracy":"APPROXIMATE"}"#)
    default: text.raw(#","accuracy":"RANGE_INTERPOLATED"}"#)
    }
  }

  func writeState(_ country: TravelPlaces.Country, _ random: inout SeededRandom) {
    writeQuoted(country.states[random.below(country.states.count)])
  }
}
