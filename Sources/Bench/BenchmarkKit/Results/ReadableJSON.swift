import Foundation

extension JSONEncoder {
  /// An encoder for readable JSON: indented, with members in alphabetical order, so that equal values have
  /// equal bytes.
  package static var readable: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
