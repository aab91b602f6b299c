import Fleece
import FoundationEssentials

/// `Decimal` as a number of a document. A stored number is an integer of 64 bits or a double, so that queries find it by
/// its value.
enum DecimalNumber {
  /// Returns the number that reads as the same decimal, nil if there is none.
  static func value(of decimal: Decimal) -> JSONValue? {
    let text = decimal.description
    if let int = Int64(text) { return .int(int) }
    if let uint = UInt64(text) { return .uint(uint) }
    guard let double = Double(text), self.decimal(of: double) == decimal else { return nil }
    return .double(double)
  }

  /// Returns the decimal of a number: of a double, the shortest one that is nearer to it than to any other double. Nil
  /// if the value isn't a number, or if it is too large.
  static func decimal(of value: JSONValue) -> Decimal? {
    switch value {
    case .int(let int): Decimal(int)
    case .uint(let uint): Decimal(uint)
    case .double(let double): decimal(of: double)
    default: nil
    }
  }

  private static func decimal(of double: Double) -> Decimal? {
    guard double.isFinite, let decimal = Decimal(string: double.description), decimal.isFinite else {
      return nil
    }
    return decimal
  }
}
