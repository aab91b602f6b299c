import Bytes
import Expectations
import Testing

@Suite("The order and the hash of bytes") struct ByteOrderTests {
  /// In order.
  static let sorted: [[UInt8]] = [
    [], [0], [0, 0], [0, 1], [1], [0x7F], [0x80], [0x80, 0], [0xFF], [0xFF, 0xFF],
  ]

  @Test("bytes are unsigned, and a prefix comes first") func order() {
    for (place, left) in Self.sorted.enumerated() {
      for (other, right) in Self.sorted.enumerated() {
        let found = left.withUnsafeBytes { left in right.withUnsafeBytes { compareBytes(left, $0) } }
        expect(found.signum(), equals: (place - other).signum())
        expect(left.span.bytes.compare(right.span.bytes).signum(), equals: (place - other).signum())
        let areEqual = left.withUnsafeBytes { left in right.withUnsafeBytes { equalBytes(left, $0) } }
        expect(areEqual, equals: (place == other))
        expect(left.span.bytes.isEqual(to: right.span.bytes), equals: (place == other))
      }
    }
  }

  @Test("no address is no bytes") func nothing() {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    expect(compareBytes(nothing, nothing), equals: 0)
    expect(equalBytes(nothing, nothing))
    [UInt8]([1]).withUnsafeBytes {
      expect(compareBytes(nothing, $0) < 0)
      expect(compareBytes($0, nothing) > 0)
      expect(!equalBytes(nothing, $0))
    }
  }

  @Test("copies have the same bytes") func copies() {
    let bytes = Array("caf\u{E9}".utf8)
    expect([UInt8](copying: bytes.span.bytes), equals: bytes)
    expect(String(copying: bytes.span.bytes), equals: "caf\u{E9}")
    expect(String(copying: [UInt8]([0x61, 0xFF]).span.bytes), equals: "a\u{FFFD}")
  }

  @Test("equal bytes have equal hashes, wherever they lie") func hash() {
    let text = Array("a key that is longer than two words".utf8)
    for length in 0...text.count {
      let shifted = [9] + text[..<length]
      let hash = text[..<length].withUnsafeBytes { ByteHash.of($0, 3) }
      shifted.withUnsafeBytes {
        expect(ByteHash.of(UnsafeRawBufferPointer(rebasing: $0[1...]), 3), equals: hash)
      }
      expect(length == 0 || text[..<length].withUnsafeBytes { ByteHash.of($0, 4) } != hash)
    }
  }

  @Test("zeros at the end change the hash") func zeros() {
    let hashes = (0..<32).map { count in
      [UInt8](repeating: 0, count: count).withUnsafeBytes { ByteHash.of($0, 1) }
    }
    expect(Set(hashes).count, equals: 32)
  }
}
