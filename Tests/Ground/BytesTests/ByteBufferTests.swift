import Bytes
import Expectations
import Testing

@Suite("Buffers of bytes") struct ByteBufferTests {
  private func bytes(_ fill: (inout ByteBuffer) -> Void) -> [UInt8] {
    var buffer = ByteBuffer(capacity: 0)
    fill(&buffer)
    return [UInt8](buffer.bytes)
  }

  @Test("a new buffer is empty and has room") func empty() {
    let buffer = ByteBuffer(capacity: 0)
    expect(buffer.count, equals: 0)
    expect(buffer.bytes.isEmpty)
    expect(buffer.capacity, equals: 64)
  }

  @Test("growing keeps the bytes", arguments: [1, 63, 64, 65, 127, 1_000, 100_000]) func growth(_ count: Int)
  {
    var buffer = ByteBuffer(capacity: 0)
    for number in 0..<count { buffer.append(UInt8(truncatingIfNeeded: number)) }
    expect(buffer.bytes.elementsEqual((0..<count).map { UInt8(truncatingIfNeeded: $0) }))
    expect(buffer.capacity >= count)
  }

  @Test("one append can be larger than twice the room") func large() {
    let large = [UInt8](repeating: 7, count: 10_000)
    var buffer = ByteBuffer(capacity: 64)
    buffer.append(1)
    large.withUnsafeBytes { buffer.append($0) }
    buffer.append(large.span.bytes)
    expect([UInt8](buffer.bytes), equals: [1] + large + large)
  }

  @Test("appending nothing changes nothing") func nothing() {
    expect(bytes { $0.append(UnsafeRawBufferPointer(start: nil, count: 0)) }, equals: [])
    expect(bytes { $0.append([UInt8]().span.bytes) }, equals: [])
    expect(bytes { _ = $0.appendUninitialized(0) }, equals: [])
  }

  @Test("removing keeps the memory") func removing() {
    var buffer = ByteBuffer(capacity: 1_000)
    let start = buffer.base
    for number in 0..<10 { buffer.append(UInt8(number)) }
    buffer.truncate(to: 20)
    expect(buffer.count, equals: 10)
    buffer.truncate(to: 3)
    expect([UInt8](buffer.bytes), equals: [0, 1, 2])
    buffer.removeAll()
    expect(buffer.count, equals: 0)
    expect(buffer.base, equals: start)
    expect(buffer.capacity, equals: 1_000)
  }

  @Test("memory above a limit is given back") func keeping() {
    var buffer = ByteBuffer(capacity: 10_000)
    buffer.append(1)
    buffer.removeAll(keepingAtMost: 10_000)
    expect(buffer.count, equals: 0)
    expect(buffer.capacity, equals: 10_000)
    buffer.removeAll(keepingAtMost: 9_999)
    expect(buffer.count, equals: 0)
    expect(buffer.capacity, equals: 4_096)
    buffer.append(2)
    expect([UInt8](buffer.bytes), equals: [2])
  }

  @Test("integers in both byte orders") func integers() {
    expect(bytes { $0.append(bigEndian: UInt32(0x0102_0304)) }, equals: [1, 2, 3, 4])
    expect(bytes { $0.append(bigEndian: UInt64(0x0102_0304_0506_0708)) }, equals: [1, 2, 3, 4, 5, 6, 7, 8])
    expect(bytes { $0.append(littleEndian: UInt32(0x0102_0304)) }, equals: [4, 3, 2, 1])
    expect(bytes { $0.append(word: 0x6C6C_756E, count: 4) }, equals: Array("null".utf8))
  }

  @Test("integers are stored at any offset") func unaligned() {
    let stored = bytes {
      $0.append(9)
      $0.append(bigEndian: UInt64(1))
      $0.append(littleEndian: UInt64(1))
    }
    expect(stored, equals: [9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
  }

  @Test("bytes written in place count when they are added") func inPlace() {
    var buffer = ByteBuffer(capacity: 0)
    buffer.reserve(1_000)
    buffer.base[0] = 1
    buffer.base[999] = 2
    buffer.count += 1_000
    expect(buffer.bytes[0], equals: 1)
    expect(buffer.bytes[999], equals: 2)
    let end = buffer.appendUninitialized(2)
    end.storeBytes(of: 0x0403, as: UInt16.self)
    expect([UInt8](buffer.bytes.suffix(3)), equals: [2, 3, 4])
  }
}
