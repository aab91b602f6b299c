import FoundationEssentials

extension JSONEncoder {
  /// An encoder for readable JSON: indented, with members in alphabetical order, so that equal values have
  /// equal bytes.
  package static var readable: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

extension Data {
  /// This indented JSON with each array of numbers on one line.
  var withNumbersOnOneLine: Data {
    var result = Data(capacity: count)
    var isInString = false
    var index = startIndex
    while index < endIndex {
      let byte = self[index]
      if isInString {
        result.append(byte)
        if byte == UInt8(ascii: "\\"), index + 1 < endIndex {
          index += 1
          result.append(self[index])
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
      } else if byte == UInt8(ascii: "["), let end = endOfNumbers(from: index + 1) {
        for byte in self[index..<end] where byte > UInt8(ascii: " ") {
          result.append(byte)
          if byte == UInt8(ascii: ",") { result.append(UInt8(ascii: " ")) }
        }
        index = end
        continue
      } else {
        isInString = byte == UInt8(ascii: "\"")
        result.append(byte)
      }
      index += 1
    }
    return result
  }

  /// The index of the bracket that ends an array of numbers; nil if something else comes before it.
  private func endOfNumbers(from start: Int) -> Int? {
    var index = start
    while index < endIndex {
      switch self[index] {
      case UInt8(ascii: "]"): return index
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
        UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "\n"):
        index += 1
      default: return nil
      }
    }
    return nil
  }
}
