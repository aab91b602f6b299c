// A parsed value as a flat tape in simdjson's layout. The encoding pass reads it.
//
//   word  = tag (top byte), payload (56 bits); word 0 is the root, the value starts at word 1
//   { [     payload: index after the end word (32 bits), count saturated at 0xFFFFFF (24 bits)
//   } ]     payload: index of the opening word
//   "       payload: offset of a string: u32 length, the bytes, a NUL; 32 readable bytes follow the last
//   l u d   the next word is an Int64, UInt64 (above Int64.max only) or Double
//   t f n   true, false, null
//   b       payload: offset of binary data, laid out as a string (our addition: never made from JSON text)

enum TapeTag {
  static let object = UInt8(ascii: "{")
  static let objectEnd = UInt8(ascii: "}")
  static let array = UInt8(ascii: "[")
  static let arrayEnd = UInt8(ascii: "]")
  static let string = UInt8(ascii: "\"")
  static let int = UInt8(ascii: "l")
  static let uint = UInt8(ascii: "u")
  static let double = UInt8(ascii: "d")
  static let `true` = UInt8(ascii: "t")
  static let `false` = UInt8(ascii: "f")
  static let null = UInt8(ascii: "n")
  static let data = UInt8(ascii: "b")
}

/// A borrowed tape and its strings.
struct JSONTape {
  var words: UnsafePointer<UInt64>
  var strings: UnsafePointer<UInt8>

  @inline(__always)
  static func tag(_ word: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: word &>> 56) }

  @inline(__always)
  static func payload(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word & 0x00FF_FFFF_FFFF_FFFF) }

  /// The index after the end word of a collection.
  @inline(__always)
  static func end(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word & 0xFFFF_FFFF) }

  /// The index of the value after the one at `index`.
  @inline(__always)
  func next(_ index: Int) -> Int {
    let word = words[index]
    switch JSONTape.tag(word) {
    case TapeTag.object, TapeTag.array: return JSONTape.end(word)
    case TapeTag.int, TapeTag.uint, TapeTag.double: return index &+ 2
    default: return index &+ 1
    }
  }

  /// Returns the string or data of a word.
  @inline(__always)
  func string(_ word: UInt64) -> UnsafeBufferPointer<UInt8> {
    let header = strings + JSONTape.payload(word)
    let length = UnsafeRawPointer(header).loadUnaligned(as: UInt32.self)
    return UnsafeBufferPointer(start: header + 4, count: Int(length))
  }
}
