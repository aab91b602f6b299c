import Bytes
import Datasets

/// A generated document of about 400 bytes of JSON. It depends only on its number.
///
/// IDs are in no order, like UUIDs. A hundred documents with consecutive numbers have the same city, so a
/// query for a city finds the same number of documents at every size of the database.
enum HotelDocument {
  /// The number of documents per city.
  static let perCity = 100

  /// The ID. Different numbers have different IDs.
  static func id(_ number: Int) -> String {
    var random = SeededRandom(seed: UInt64(number))
    // `next()` of a new generator is a bijection of the seed.
    return "hotel-" + Hex.text(random.next(), digits: 16)
  }

  /// The city of a document.
  static func city(_ number: Int) -> String { "Town \(number / perCity)" }

  /// 1 to 5. Each value occurs in every fifth document.
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
}
