import Bytes
import Fleece

// An exact sum, stored in one form only, so that equal sums are equal bytes:
//
//   sum       := head:varint  [place:varint  digit*]       head = 2·(number of digits) + 1 if the sum is negative
//   digit     := u32 little-endian, the least one first; neither the first nor the last one is 0
//   place     := zigzag of p: the first digit counts 2^(32·p)
//
// Zero has no digits.

extension ExactSum {
  func write(to buffer: inout ByteBuffer) {
    let (value, isNegative) = magnitude
    buffer.append(varint: UInt64(value.digits.count * 2 + (isNegative ? 1 : 0)))
    guard !value.digits.isEmpty else { return }
    let place = Int64(value.place)
    buffer.append(varint: UInt64(bitPattern: place << 1 ^ place >> 63))
    for digit in value.digits { buffer.append(littleEndian: digit) }
  }

  /// Adds a stored sum. Throws `damaged`.
  mutating func merge(_ reader: inout ByteReader) throws {
    guard let head = reader.varint() else { throw ViewReduceError.damaged }
    guard head > 1 else {
      if head == 1 { throw ViewReduceError.damaged }
      return
    }
    guard let zigzag = reader.varint(), head < 2 * UInt64(ExactSum.digitCount) + 2, zigzag < 1024 else {
      throw ViewReduceError.damaged
    }
    let count = Int(head >> 1)
    let isNegative = head & 1 == 1
    let place = Int(zigzag >> 1) ^ -Int(zigzag & 1)
    let first = place + ExactSum.digitsBelowPoint
    guard first >= 0, first + count <= ExactSum.digitCount, let bytes = reader.bytes(4 * count) else {
      throw ViewReduceError.damaged
    }
    func digit(_ index: Int) -> UInt32 {
      UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
    }
    if place >= 0, place + count <= 3 {
      var value: Int128 = 0
      for index in 0..<count { value |= Int128(digit(index)) << (32 * (place + index)) }
      return isNegative ? subtract(value) : add(value)
    }
    for index in 0..<count { add(digit: digit(index), at: first + index, isNegative) }
  }
}
