import Bytes
import Expectations
import Testing

@Suite("Strings compared by bytes") struct ByteStringTests {
  /// One letter to a reader, and equal to Swift: U+00E9, and `e` followed by U+0301.
  private let composed = "caf\u{E9}"
  private let decomposed = "cafe\u{301}"

  @Test("strings that differ in normalization are different") func differ() {
    expect(composed, equals: decomposed)
    expect(ByteString(composed) != ByteString(decomposed))
    expect(Set([ByteString(composed), ByteString(decomposed), ByteString(composed)]).count, equals: 2)
    expect(!composed.hasSameBytes(as: decomposed))
    expect(composed.hasSameBytes(as: String(decoding: Array(composed.utf8), as: UTF8.self)))
  }

  @Test("a dictionary keeps a value for each of them") func dictionary() {
    let numbers: [ByteString: Int] = [ByteString(composed): 1, ByteString(decomposed): 2]
    expect(numbers[ByteString(composed)], equals: 1)
    expect(numbers[ByteString(decomposed)], equals: 2)
  }

  @Test("equal bytes are equal, wherever they came from") func sources() {
    let literal: ByteString = "caf\u{E9}"
    let bytes = ByteString([0x63, 0x61, 0x66, 0xC3, 0xA9])
    let substring = ByteString(("a " + composed).dropFirst(2).utf8)
    expect(literal, equals: bytes)
    expect(substring, equals: bytes)
    expect(Set([literal, bytes, substring, ByteString(composed)]).count, equals: 1)
    expect(bytes.string.utf8.elementsEqual(composed.utf8))
    expect("\(bytes)".utf8.elementsEqual(composed.utf8))
  }

  @Test("the order is that of the bytes") func order() {
    let strings = ["", "a", "aa", "b", decomposed, composed, "\u{FB01}", "\u{1F600}"]
    let sorted = strings.shuffled().sortedByBytes()
    expect(sorted.map { Array($0.utf8) }, equals: strings.map { Array($0.utf8) })
    expect(strings.map { ByteString($0) }.shuffled().sorted(), equals: strings.map { ByteString($0) })
    expect(ByteString([0x7F]) < ByteString([0x80]))
    expect(decomposed.precedesInBytes(composed))
    expect(!composed.precedesInBytes(decomposed))
    expect(!composed.precedesInBytes(composed))
  }

  @Test("bytes that are no text are kept") func notText() {
    let first = ByteString([0xFF])
    expect(first != ByteString([0xFE]))
    expect(first.bytes, equals: [0xFF])
    expect(first.string, equals: "\u{FFFD}")
  }
}
