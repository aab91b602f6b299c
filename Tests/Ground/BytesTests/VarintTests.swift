import Bytes
import Expectations
import Testing

@Suite("Varints") struct VarintTests {
  static let known: [(UInt64, [UInt8])] = [
    (0, [0x00]), (1, [0x01]), (0x7F, [0x7F]), (0x80, [0x80, 0x01]), (300, [0xAC, 0x02]),
    (0x3FFF, [0xFF, 0x7F]), (0x4000, [0x80, 0x80, 0x01]),
    (UInt64(UInt32.max), [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
    (UInt64(Int64.max), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
    (UInt64.max, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
  ]

  @Test("each writer and reader knows the same bytes", arguments: known) func same(
    _ value: UInt64, _ stored: [UInt8]
  ) {
    var buffer = ByteBuffer(capacity: 0)
    buffer.append(varint: value)
    expect([UInt8](buffer.bytes), equals: stored)
    if let short = UInt32(exactly: value) { buffer.append(varint: short) }
    var array: [UInt8] = [9]
    array.append(varint: value)
    expect(array, equals: [9] + stored)
    var offset = 1
    expect(array.varint(at: &offset), equals: value)
    expect(offset, equals: array.count)
    expect(reader(stored + [5]), equals: value)
    expect(taken(stored + [5]), equals: value)
  }

  @Test("every length is read back", arguments: 0..<64) func lengths(_ bit: Int) {
    for value in [UInt64(1) << UInt64(bit), (UInt64(1) << UInt64(bit)) &- 1, ~0 << UInt64(bit)] {
      var stored: [UInt8] = []
      stored.append(varint: value)
      expect(reader(stored), equals: value)
    }
  }

  @Test("a cut varint is none, and the reader stays") func truncated() {
    for (_, stored) in Self.known {
      for count in 0..<stored.count {
        let cut = Array(stored[..<count])
        expect(reader(cut) == nil)
        expect(taken(cut) == nil)
        var offset = 0
        expect(cut.varint(at: &offset) == nil)
        expect(offset, equals: 0)
      }
    }
  }

  @Test("more than 64 bits are none") func tooLarge() {
    let ones = [UInt8](repeating: 0xFF, count: 9)
    expect(reader(ones + [0x02]) == nil)
    expect(reader(ones + [0x81, 0x00]) == nil)
    expect(reader(ones + [0xFF, 0x01]) == nil)
    expect(reader([UInt8](repeating: 0x80, count: 10) + [0x00]) == nil)
    expect(reader([UInt8](repeating: 0xFF, count: 100)) == nil)
  }

  @Test("needless zeros are read up to ten bytes") func overlong() {
    expect(reader([0x80, 0x00]), equals: 0)
    expect(reader([0xFF, 0x80, 0x00]), equals: 0x7F)
    expect(reader([UInt8](repeating: 0x80, count: 9) + [0x00]), equals: 0)
  }

  @Test("a limit of bytes ends a longer varint") func limited() {
    let stored: [UInt8] = [0x80, 0x80, 0x80, 0x80, 0x80, 0x01]
    stored.withUnsafeBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return }
      expect(Varint.read(start, before: start + bytes.count, atMost: 5) == nil)
      expect(Varint.read(start, before: start + bytes.count)?.value, equals: 1 << 35)
      expect(Varint.read(start, before: start + bytes.count)?.length, equals: 6)
      expect(Varint.read(start, before: start) == nil)
    }
  }

  @Test("an offset outside the bytes finds none", arguments: [-1, 2, 3, Int.max]) func outside(_ place: Int) {
    var offset = place
    expect([1, 2].varint(at: &offset) == nil)
    expect(offset, equals: place)
  }

  private func reader(_ bytes: [UInt8]) -> UInt64? {
    var reader = ByteReader(bytes.span.bytes)
    let value = reader.varint()
    if value == nil { expect(reader.rest.byteCount, equals: bytes.count) }
    return value
  }

  private func taken(_ bytes: [UInt8]) -> UInt64? {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes
      let value = rest.takeVarint()
      if value == nil { expect(rest.count, equals: bytes.count) }
      return value
    }
  }
}

@Suite("Reading lent bytes") struct ByteReaderTests {
  /// A copy of what the reader lends.
  private func read(_ count: Int, of reader: inout ByteReader) -> [UInt8]? {
    guard let bytes = reader.bytes(count) else { return nil }
    return [UInt8](copying: bytes)
  }

  @Test("reads go on from each other") func sequence() {
    let bytes: [UInt8] = [7, 0xAC, 0x02, 1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 0, 9]
    var reader = ByteReader(bytes.span.bytes)
    expect(reader.byte(), equals: 7)
    expect(reader.varint(), equals: 300)
    expect(read(3, of: &reader), equals: [1, 2, 3])
    expect(reader.bigEndian(), equals: 256)
    expect(reader.rest.byteCount, equals: 1)
    expect(reader.byte(), equals: 9)
    expect(reader.byte() == nil)
    expect(reader.varint() == nil)
  }

  @Test("a read of more than is left takes nothing") func tooShort() {
    let bytes: [UInt8] = [1, 2, 3]
    var reader = ByteReader(bytes.span.bytes)
    expect(read(4, of: &reader) == nil)
    expect(read(-1, of: &reader) == nil)
    expect(reader.bigEndian() == nil)
    expect(reader.rest.byteCount, equals: 3)
    expect(read(0, of: &reader), equals: [])
    expect(read(3, of: &reader), equals: bytes)
    expect(read(0, of: &reader), equals: [])
  }

  @Test("no bytes are none of anything") func empty() {
    var reader = ByteReader([UInt8]().span.bytes)
    expect(reader.byte() == nil)
    expect(reader.varint() == nil)
    expect(reader.bigEndian() == nil)
  }
}
