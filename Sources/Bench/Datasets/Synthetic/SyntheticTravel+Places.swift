/// Hotels and landmarks.
extension SyntheticTravel {
  private static let title = Quantiles([3, 7, 9, 18, 25, 33, 37, 45, 59])
  private static let name = Quantiles([3, 10, 13, 17, 22, 29, 33, 44, 62])
  private static let address = Quantiles([6, 12, 14, 18, 25, 36, 42, 54, 75])
  private static let description = Quantiles([5, 36, 70, 127, 217, 349, 440, 730, 952])
  private static let content = Quantiles([4, 44, 86, 168, 295, 459, 618, 1_039, 2_959])
  private static let directions = Quantiles([6, 11, 17, 26, 40, 80, 110, 300, 900])
  private static let url = Quantiles([20, 24, 27, 32, 41, 62, 76, 103, 130])
  private static let price = Quantiles([2, 5, 7, 12, 30, 60, 90, 160, 220])
  private static let hours = Quantiles([5, 13, 15, 31, 49, 81, 108, 155, 275])
  private static let review = Quantiles([13, 246, 436, 749, 1_258, 2_068, 2_878, 5_217, 17_733])
  private static let image = Quantiles([47, 57, 62, 72, 81, 103, 122, 150, 150])

  func writeHotel(_ random: inout SeededRandom) {
    let city = random.skewed(below: cityCount)
    let country = TravelPlaces.country(ofCity: city)
    text.raw(#","type":"hotel","title":"#)
    writeName(SyntheticTravel.title.draw(&random), &random)
    text.raw(#","name":"#)
    writeName(SyntheticTravel.name.draw(&random), &random)
    text.raw(#","address":"#)
    writeOptional(88, &random) { writeAddress(SyntheticTravel.address.draw(&$0), &$0) }
    text.raw(#","alias":"#)
    writeOptional(6, &random) { writeName(SyntheticTravel.name.draw(&$0), &$0) }
    text.raw(#","checkin":"#)
    writeOptional(19, &random) { writeTerms(5, &$0) }
    text.raw(#","checkout":"#)
    writeOptional(18, &random) { writeTerms(5, &$0) }
    text.raw(#","city":"#)
    writeOptional(97, &random) { _ in writeCity(city) }
    text.raw(#","country":"#)
    writeQuoted(country.name)
    text.raw(#","description":"#)
    writeProse(SyntheticTravel.description.draw(&random), &random)
    text.raw(#","directions":"#)
    writeOptional(41, &random) { writeProse(SyntheticTravel.directions.draw(&$0), &$0) }
    text.raw(#","email":"#)
    writeOptional(36, &random) { writeEmail(&$0) }
    text.raw(#","fax":"#)
    writeOptional(27, &random) { writePhone(country, &$0) }
    text.raw(#","free_breakfast":"#)
    text.boolean(random.chance(70))
    text.raw(#","free_internet":"#)
    text.boolean(random.chance(80))
    text.raw(#","free_parking":"#)
    text.boolean(random.chance(35))
    text.raw(#","geo":"#)
    writeGeo(city, country, &random)
    text.raw(#","pets_ok":"#)
    text.boolean(random.chance(50))
    text.raw(#","phone":"#)
    writeOptional(81, &random) { writePhone(country, &$0) }
    text.raw(#","price":"#)
    writeOptional(52, &random) { writeTerms(SyntheticTravel.price.draw(&$0), &$0) }
    text.raw(#","public_likes":["#)
    let likes = random.below(10)
    for like in 0..<likes {
      if like > 0 { text.byte(0x2C) }
      writePerson(&random)
    }
    text.raw(#"],"reviews":["#)
    let reviews = random.below(10)
    for review in 0..<reviews {
      if review > 0 { text.byte(0x2C) }
      writeReview(&random)
    }
    text.raw(#"],"state":"#)
    writeOptional(54, &random) { writeState(country, &$0) }
    text.raw(#","tollfree":"#)
    writeOptional(8, &random) { writePhone(country, &$0) }
    text.raw(#","url":"#)
    writeOptional(87, &random) { writeURL(SyntheticTravel.url.draw(&$0), &$0) }
    text.raw(#","vacancy":"#)
    text.boolean(random.chance(50))
  }

  private static let ratings: [StaticString] = [
    "Service", "Cleanliness", "Value", "Location", "Rooms", "Sleep Quality", "Check in / front desk",
    "Business service", "Business service (e.g., internet access)",
  ]
  /// The percentage of reviews that have each rating.
  private static let ratingPercents = [94, 94, 93, 88, 85, 48, 20, 12, 2]

  private func writeReview(_ random: inout SeededRandom) {
    text.raw(#"{"author":"#)
    writePerson(&random)
    text.raw(#","content":"#)
    writeProse(SyntheticTravel.review.draw(&random), &random)
    text.raw(#","date":""#)
    text.integer(2_012 + random.below(4))
    text.byte(0x2D)
    text.digits(1 + random.below(12), 2)
    text.byte(0x2D)
    text.digits(1 + random.below(28), 2)
    text.byte(0x20)
    text.digits(random.below(24), 2)
    text.byte(0x3A)
    text.digits(random.below(60), 2)
    text.byte(0x3A)
    text.digits(random.below(60), 2)
    text.raw(#" +0300","ratings":{"Overall":"#)
    text.byte(0x31 + UInt8(random.below(5)))
    for (rating, percent) in zip(SyntheticTravel.ratings, SyntheticTravel.ratingPercents)
    where random.chance(percent) {
      text.byte(0x2C)
      writeQuoted(rating)
      text.byte(0x3A)
      text.byte(0x31 + UInt8(random.below(5)))
    }
    text.raw("}}")
  }

  private static let activities: [StaticString] = ["see", "eat", "do", "buy", "drink", "listing"]

  func writeLandmark(_ random: inout SeededRandom) {
    let city = random.skewed(below: cityCount)
    let country = TravelPlaces.country(ofCity: city)
    text.raw(#","type":"landmark","activity":"#)
    writeQuoted(SyntheticTravel.activities[random.skewed(below: SyntheticTravel.activities.count)])
    text.raw(#","address":"#)
    writeOptional(82, &random) { writeAddress(SyntheticTravel.address.draw(&$0), &$0) }
    text.raw(#","alt":"#)
    writeOptional(6, &random) { writeName(SyntheticTravel.name.draw(&$0), &$0) }
    text.raw(#","city":"#)
    if random.below(500) == 0 { text.raw("null") } else { writeCity(city) }
    text.raw(#","content":"#)
    writeProse(SyntheticTravel.content.draw(&random), &random)
    text.raw(#","country":"#)
    writeQuoted(country.name)
    text.raw(#","directions":"#)
    writeOptional(43, &random) { writeProse(SyntheticTravel.directions.draw(&$0), &$0) }
    text.raw(#","email":"#)
    writeOptional(14, &random) { writeEmail(&$0) }
    text.raw(#","geo":"#)
    writeGeo(city, country, &random)
    text.raw(#","hours":"#)
    writeOptional(42, &random) { writeTerms(SyntheticTravel.hours.draw(&$0), &$0) }
    text.raw(#","image":"#)
    let hasImage = random.below(44) == 0
    if hasImage { writeURL(SyntheticTravel.image.draw(&random), &random) } else { text.raw("null") }
    if hasImage {
      text.raw(#","image_direct_url":"#)
      writeURL(SyntheticTravel.image.draw(&random), &random)
    }
    text.raw(#","name":"#)
    writeName(SyntheticTravel.name.draw(&random), &random)
    text.raw(#","phone":"#)
    writeOptional(66, &random) { writePhone(country, &$0) }
    text.raw(#","price":"#)
    writeOptional(31, &random) { writeTerms(SyntheticTravel.price.draw(&$0), &$0) }
    text.raw(#","state":"#)
    writeOptional(57, &random) { writeState(country, &$0) }
    text.raw(#","title":"#)
    writeName(SyntheticTravel.title.draw(&random), &random)
    text.raw(#","tollfree":"#)
    writeOptional(1, &random) { writePhone(country, &$0) }
    text.raw(#","url":"#)
    writeOptional(72, &random) { writeURL(SyntheticTravel.url.draw(&$0), &$0) }
  }
}
