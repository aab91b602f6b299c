/// The places of the generated documents: countries with the shares of travel-sample, and made-up cities in
/// them.
struct TravelPlaces: Sendable {
  struct Country: Sendable {
    let name: StaticString
    let dialling: StaticString
    let zones: [StaticString]
    let states: [StaticString]
    /// The country's corner and extent, in microdegrees.
    let latitude: Int
    let longitude: Int
    let height: Int
    let width: Int
    /// The first letter of its airports' four-letter codes.
    let airportPrefix: UInt8
  }

  static let countries: [Country] = [
    Country(
      name: "United States", dialling: "+1 ",
      zones: ["America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"],
      states: ["California", "California", "California", "California", "New York", "Texas"],
      latitude: 30_000_000, longitude: -122_000_000, height: 18_000_000, width: 50_000_000,
      airportPrefix: 0x4B),
    Country(
      name: "United Kingdom", dialling: "+44 ", zones: ["Europe/London"],
      states: ["England", "Scotland", "Wales", "West Dunbartonshire", "Highland"],
      latitude: 50_200_000, longitude: -5_000_000, height: 8_000_000, width: 6_000_000,
      airportPrefix: 0x45),
    Country(
      name: "France", dialling: "+33 ", zones: ["Europe/Paris"],
      states: ["Île-de-France", "Rhône-Alpes", "Provence-Alpes-Côte d'Azur"],
      latitude: 42_800_000, longitude: -1_500_000, height: 7_500_000, width: 8_500_000,
      airportPrefix: 0x4C),
  ]

  /// The country of a city. The three countries have 57, 30 and 13 percent of the cities.
  static func country(ofCity city: Int) -> Country {
    let share = city * 37 % 100
    return countries[share < 57 ? 0 : share < 87 ? 1 : 2]
  }
}
