import TestTools
import Testing

@testable import Encryption

@Suite struct SecretBytesTests {
  @Test func theirMemoryIsZeroWhenItIsGivenBack() {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 16)
    defer { memory.deallocate() }
    memory.copyBytes(from: Array(UInt8(1)...64))
    nonisolated(unsafe) var found: [UInt8]?
    do {
      let secret = SecretBytes(adopting: memory) { found = [UInt8]($0) }
      expect(bytes(of: secret), equals: Array(1...64))
      expect(found == nil)
    }
    expect(found, equals: [UInt8](repeating: 0, count: 64))
  }

  @Test func aWipedArrayIsZero() {
    var array: [UInt8] = [1, 2, 3]
    SecretBytes.wipe(&array)
    expect(array, equals: [0, 0, 0])
    var empty: [UInt8] = []
    SecretBytes.wipe(&empty)
    expect(empty, equals: [])
  }

  @Test func nothingOfThemIsPrinted() throws {
    let secret = SecretBytes(Array("hunter2-hunter2-hunter2-hunter2!".utf8))
    let key = try UserKey.passphrase("hunter2")
    var dumped = ""
    dump(secret, to: &dumped)
    dump(key, to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\(key)", String(reflecting: key), dumped] {
      expect(!text.contains("hunter2"))
      expect(!text.contains("104, 117"))
    }
    expect("\(secret)", equals: "SecretBytes(32 bytes)")
  }

  @Test func equalityIsThatOfTheBytes() {
    expect(SecretBytes([1, 2]), equals: SecretBytes([1, 2]))
    expect(SecretBytes([1, 2]) != SecretBytes([1, 3]))
    expect(SecretBytes([1, 2]) != SecretBytes([1, 2, 0]))
    expect(SecretBytes([]), equals: SecretBytes([]))
  }

  @Test func randomOnesDiffer() throws {
    try expect(SecretBytes.random(count: 32) != SecretBytes.random(count: 32))
  }
}
