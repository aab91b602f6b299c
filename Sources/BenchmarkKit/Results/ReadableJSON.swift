import Foundation

extension JSONEncoder {
  /// JSON that people read and compare: indented, members in alphabetical order, so that the same values give the same
  /// bytes.
  public static var readable: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
