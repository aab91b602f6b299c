/// Airlines, airports and routes.
extension SyntheticTravel {
  private static let airlineName = Quantiles([3, 8, 11, 15, 19, 26, 29, 37, 39])
  private static let airportName = Quantiles([4, 8, 11, 17, 23, 29, 33, 41, 54])
  private static let callsign = Quantiles([2, 4, 6, 7, 10, 12, 13, 16, 18])

  func writeAirline(_ index: Int, _ random: inout SeededRandom) {
    text.raw(#","type":"airline","name":"#)
    writeName(SyntheticTravel.airlineName.draw(&random), &random)
    text.raw(#","iata":"#)
    if hasShortCode(airline: index) { writeAirlineCode(index) } else { text.raw("null") }
    text.raw(#","icao":""#)
    TravelCodes.letters(index, salt: 4_321) { text.byte($0) }
    text.raw(#"","callsign":"#)
    writeOptional(89, &random) { writeName(SyntheticTravel.callsign.draw(&$0), &$0) }
    text.raw(#","country":"#)
    writeQuoted(TravelPlaces.country(ofCity: random.below(100)).name)
  }

  private func hasShortCode(airline index: Int) -> Bool {
    var random = SeededRandom(seed: seed, stream: 0x300, index: UInt64(truncatingIfNeeded: index))
    return random.chance(80)
  }

  /// Writes the airline code that routes use: two characters, or the three letters if it has no short code.
  private func writeAirlineCode(_ index: Int) {
    text.byte(0x22)
    writeBareAirlineCode(index)
    text.byte(0x22)
  }

  private func writeBareAirlineCode(_ index: Int) {
    if hasShortCode(airline: index) {
      TravelCodes.short(index) { text.byte($0) }
    } else {
      TravelCodes.letters(index, salt: 4_321) { text.byte($0) }
    }
  }

  func writeAirport(_ index: Int, _ random: inout SeededRandom) {
    let city = random.skewed(below: cityCount)
    let country = TravelPlaces.country(ofCity: city)
    text.raw(#","type":"airport","airportname":"#)
    writeName(SyntheticTravel.airportName.draw(&random), &random)
    text.raw(#","city":"#)
    writeCity(city)
    text.raw(#","country":"#)
    writeQuoted(country.name)
    text.raw(#","faa":"#)
    if hasCode(airport: index) { writeAirportCode(index) } else { text.raw("null") }
    text.raw(#","icao":"#)
    writeOptional(86, &random) { _ in
      text.byte(0x22)
      text.byte(country.airportPrefix)
      TravelCodes.letters(index, salt: 77) { text.byte($0) }
      text.byte(0x22)
    }
    text.raw(#","tz":"#)
    writeQuoted(country.zones[random.below(country.zones.count)])
    text.raw(#","geo":{"#)
    writePosition(city, country, &random)
    text.raw(#","alt":"#)
    text.integer(random.skewed(below: 5_000))
    text.byte(0x7D)
  }

  /// The first airport always has a code, so that there is one to fly to.
  private func hasCode(airport index: Int) -> Bool {
    if index == 0 { return true }
    var random = SeededRandom(seed: seed, stream: 0x301, index: UInt64(truncatingIfNeeded: index))
    return random.chance(87)
  }

  private func writeAirportCode(_ index: Int) {
    text.byte(0x22)
    TravelCodes.letters(index, salt: 1_234) { text.byte($0) }
    text.byte(0x22)
  }

  private func drawAirport(_ random: inout SeededRandom) -> Int {
    var airport = random.skewed(below: max(1, counts[TravelType.airport.rawValue]))
    while !hasCode(airport: airport) { airport -= 1 }
    return airport
  }

  private static let equipment: [StaticString] = [
    "320", "738", "319", "73H", "321", "CRJ", "E70", "73W 73H", "CR9", "DH4", "M88", "757", "320 319", "ERJ",
    "CR7 CRJ", "733", "AT7", "752", "763", "320 321 319", "73G", "E90", "M80 738", "717", "777",
  ]

  func writeRoute(_ random: inout SeededRandom) {
    let airline = random.skewed(below: max(1, counts[TravelType.airline.rawValue]))
    text.raw(#","type":"route","airline":""#)
    let codeStart = text.count
    writeBareAirlineCode(airline)
    let code = codeStart..<text.count
    text.raw(#"","airlineid":""#)
    writeID(.airline, airline)
    text.raw(#"","sourceairport":"#)
    writeAirportCode(drawAirport(&random))
    text.raw(#","destinationairport":"#)
    writeAirportCode(drawAirport(&random))
    text.raw(#","stops":"#)
    text.byte(random.below(4_000) == 0 ? 0x31 : 0x30)
    text.raw(#","equipment":"#)
    if random.below(1_000) == 0 {
      text.raw("null")
    } else {
      writeQuoted(SyntheticTravel.equipment[random.skewed(below: SyntheticTravel.equipment.count)])
    }
    writeSchedule(code, &random)
    text.raw(#","distance":"#)
    // At most 15 digits, so that the text is the shortest form of the double.
    text.decimal(random.below(9_500) * 100_000_000_000 + 5_000_000_000_000 + random.below(1 << 32) * 23, 11)
  }

  private func writeSchedule(_ code: Range<Int>, _ random: inout SeededRandom) {
    var text = text
    text.raw(#","schedule":["#)
    for day in 0..<7 {
      for _ in 0...random.below(5) {
        let bits = random.next()
        text.raw(#"{"day":"#)
        text.byte(0x30 + UInt8(day))
        text.raw(#","utc":""#)
        text.digits(Int(((bits & 0xFFFF) * 24) >> 16), 2)
        text.byte(0x3A)
        text.digits(Int(((bits >> 16 & 0xFFFF) * 60) >> 16), 2)
        text.raw(#":00","flight":""#)
        text.copy(code)
        text.digits(Int(((bits >> 32 & 0xFFFF) * 1_000) >> 16), 3)
        text.raw(#""},"#)
      }
    }
    text.replaceLast(with: 0x5D)
    self.text = text
  }
}
