import TestTools
import Testing

@testable import Encryption

/// What is taken for encrypted bytes.
@Suite("Entropy of blocks") struct ByteEntropyTests {
  private func lowest(_ bytes: some Sequence<UInt8>) -> Double? {
    var entropy = ByteEntropy()
    Array(bytes).withUnsafeBytes { entropy.add($0) }
    return entropy.lowest
  }

  @Test("encrypted bytes that end in zeros, as after a power loss, aren't plaintext")
  func zerosAtTheEnd() throws {
    var generator = SeededGenerator(seed: testSeed)
    func random(_ count: Int) -> [UInt8] {
      (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
    for count in [4_096, 4_000, 2_048, 1_000, 600, 512] {
      let bytes = random(count) + [UInt8](repeating: 0, count: 4_096 - count)
      try expect(#require(lowest(bytes)) > ByteEntropy.leastOfBlock, "\(count) bytes")
    }
    expect(lowest(random(100) + [UInt8](repeating: 0, count: 3_996)) == nil)
    expect(lowest([UInt8](repeating: 0, count: 4_096)) == nil)
  }

  @Test("text is plaintext, with zeros at its end or between it") func text() throws {
    let line = Array("The quick brown fox jumps over the lazy dog. ".utf8)
    let text = (0..<100).flatMap { _ in line }
    for count in [4_096, 2_000, 512] {
      let zeros = [UInt8](repeating: 0, count: 4_096 - count)
      try expect(#require(lowest(text.prefix(count) + zeros)) < 6)
      try expect(#require(lowest(text.prefix(count / 2) + zeros + text.prefix(count - count / 2))) < 6)
    }
  }
}
