import Datasets

/// A made document of about 400 bytes of JSON, by its number: the same on every machine.
///
/// IDs come in no order, as UUIDs do. A hundred documents with consecutive numbers are of one city, so that a query
/// for a city finds as many however large the database is.
enum HotelDocument {
  /// How many documents are of one city.
  static let perCity = 100

  /// The ID; no two numbers have the same.
  static func id(_ number: Int) -> String {
    var random = SeededRandom(seed: UInt64(number))
    // A bijection of the number.
    return "hotel-" + hex(random.next())
  }

  /// The name of the city of a document.
  static func city(_ number: Int) -> String { "Town \(number / perCity)" }

  /// 1 to 5, each of them of every fifth document.
  static func stars(_ number: Int) -> Int { number % 5 + 1 }

  /// The body as JSON.
  static func json(_ number: Int, version: Int = 1) -> [UInt8] {
    let text = """
      {"type":"hotel","number":\(number),"version":\(version),"name":"Hotel \(number % 977) of the Golden Lion",\
      "city":"\(city(number))","country":"\(countries[number % countries.count])","stars":\(stars(number)),\
      "price":\(40 + number % 211),"vacancy":\(number % 3 == 0),"description":"A small house beside the canal with \
      twelve rooms, two of them on the ground floor, and a garden that opens at seven.","geo":{"lat":53.\(number % 89),\
      "lon":-2.\(number % 71)},"public_likes":["Julius","Corrine","Vallie"]}
      """
    return Array(text.utf8)
  }

  private static let countries = ["France", "Portugal", "United Kingdom", "United States", "Uruguay"]

  /// The 16 digits of a number.
  static func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
