/// How much there is in a JSON text, before it is parsed: a value takes many times the memory of its text.
///
/// Nothing is said of a text that isn't JSON.
package struct JSONMeasure: Sendable, Equatable {
  /// The levels of arrays and objects inside each other.
  package private(set) var depth = 0
  /// The most values, members and items included: each but the first one has a comma or an opening bracket before it.
  package private(set) var values = 1

  /// Measures a text in one pass.
  package init(_ text: UnsafeRawBufferPointer) {
    var (index, level) = (0, 0)
    while index < text.count {
      switch text[index] {
      case UInt8(ascii: "\""): index = Self.end(ofString: text, at: index)
      case UInt8(ascii: ","): values &+= 1
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        values &+= 1
        level &+= 1
        depth = max(depth, level)
      case UInt8(ascii: "]"), UInt8(ascii: "}"): level &-= 1
      default: break
      }
      index &+= 1
    }
  }

  /// The place of the quotation mark that ends a string, or the end of the text.
  private static func end(ofString text: UnsafeRawBufferPointer, at start: Int) -> Int {
    var index = start &+ 1
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "\"") { return index }
      index &+= byte == UInt8(ascii: "\\") ? 2 : 1
    }
    return text.count
  }
}
