import Foundation
import TestSupport
import Testing

@testable import ReplicationBLIP

@Suite struct BlobTransferTests {
  private func random(_ count: Int) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  @Test func whatCompressionMakesSmallerIsWorthIt() {
    let text = Array(String(repeating: "A small house beside the canal with twelve rooms. ", count: 300).utf8)
    expect(BlobTransfer.isWorthCompressing(text))
    expect(BlobTransfer.isWorthCompressing([UInt8](repeating: 0, count: BlobTransfer.sampleBytes)))
    // Half of the bytes are zeros.
    expect(BlobTransfer.isWorthCompressing(random(8_192) + [UInt8](repeating: 0, count: 8_192)))
  }

  @Test func randomBytesAreNotWorthCompressing() {
    expect(!BlobTransfer.isWorthCompressing(random(BlobTransfer.sampleBytes)))
    expect(!BlobTransfer.isWorthCompressing(random(2_048)))
  }

  @Test func nothingCanBeSaidOfShortBlobs() {
    expect(BlobTransfer.isWorthCompressing([]))
    expect(BlobTransfer.isWorthCompressing(random(100)))
  }
}
