import Storage

/// The JSON of keys.
enum KeyText {
  /// Returns the JSON of the key of a group: the array of the first `count` items if the key is an array with more,
  /// otherwise the key.
  static func firstItems(_ count: Int, of json: RawSpan) -> [UInt8] {
    let text = [UInt8](copying: json)
    guard text.first == UInt8(ascii: "["), count > 0 else { return text }
    var depth = 0
    var items = 0
    var isInString = false
    var index = 0
    while index < text.count {
      let byte = text[index]
      if isInString {
        if byte == UInt8(ascii: "\\") {
          index += 1
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        case UInt8(ascii: ",") where depth == 1:
          items += 1
          if items == count { return text[..<index] + [UInt8(ascii: "]")] }
        default: break
        }
      }
      index += 1
    }
    return text
  }
}
