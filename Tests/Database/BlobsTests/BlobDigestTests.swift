import TestSupport

@testable import Blobs

@Suite("Digests of blobs") struct BlobDigestTests {
  /// Of spec/format-2x.md, section 8, and 1.x fixtures.
  static let known: [(content: String, text: String, file: String)] = [
    ("", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "2jmj7l5rSw0yVb_vlWAYkK_YBwk=.blob"),
    ("abc", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob"),
  ]

  @Test("the published digests and file names come out", arguments: known)
  func published(_ example: (content: String, text: String, file: String)) throws {
    let hash = try SHA1Stream()
    try Array(example.content.utf8).withUnsafeBytes { try hash.update($0) }
    let digest = try hash.finish()
    #expect(digest.text == example.text)
    #expect(digest.fileName == example.file)
    #expect(BlobDigest(example.text) == digest)
    #expect(BlobDigest(fileName: example.file) == digest)
  }

  @Test("any 20 bytes go there and back")
  func roundTrip() throws {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<1_000 {
      let bytes = random.bytes(20)
      let digest = try #require(bytes.withUnsafeBytes { BlobDigest($0) })
      #expect(digest.bytes == bytes)
      #expect(BlobDigest(digest.text) == digest)
      #expect(BlobDigest(fileName: digest.fileName) == digest)
      #expect(digest.text.utf8.count == BlobDigest.textCount)
    }
  }

  @Test(
    "other texts are none",
    arguments: [
      "", "sha1-", "md5-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk",
      "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk==", "sha1-2jmj7l5rSw0yVb_vlWAYkK_YBwk=",
      "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwl=", "SHA1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
      "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBw==", "sha1-2jmj7l5rSw0yVb/vlWAYkK YBwk=",
    ])
  func others(_ text: String) { #expect(BlobDigest(text) == nil) }

  @Test("digests are found wherever they stand in bytes")
  func finding() throws {
    let (one, two) = ("sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=")
    func found(_ text: String) -> [String] {
      var digests: [String] = []
      Array(text.utf8).withUnsafeBytes { forEachDigest(in: $0) { digests.append($0.text) } }
      return digests
    }
    #expect(found(one) == [one])
    #expect(found(one + two) == [one, two])
    #expect(found("-a-sha1-sha1-x\(one)-\(two)sha1-") == [one, two])
    #expect(found(String(one.dropLast())) == [])
    #expect(found("") == [])
    #expect(found("sha1") == [])
    #expect(found("-sha1-") == [])
  }
}
