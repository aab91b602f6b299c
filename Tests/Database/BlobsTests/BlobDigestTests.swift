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
    expect(digest.text, equals: example.text)
    expect(digest.fileName, equals: example.file)
    expect(BlobDigest(example.text), equals: digest)
    expect(BlobDigest(fileName: example.file), equals: digest)
  }

  @Test("any 20 bytes go there and back")
  func roundTrip() throws {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<1_000 {
      let bytes = random.bytes(20)
      let digest = try #require(bytes.withUnsafeBytes { BlobDigest($0) })
      expect(digest.bytes, equals: bytes)
      expect(BlobDigest(digest.text), equals: digest)
      expect(BlobDigest(fileName: digest.fileName), equals: digest)
      expect(digest.text.utf8.count, equals: BlobDigest.textCount)
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
  func others(_ text: String) { expect(BlobDigest(text) == nil) }

  @Test("digests are found wherever they stand in bytes")
  func finding() throws {
    let (one, two) = ("sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=")
    func found(_ text: String) -> [String] {
      var digests: [String] = []
      Array(text.utf8).withUnsafeBytes { forEachDigest(in: $0) { digests.append($0.text) } }
      return digests
    }
    expect(found(one), equals: [one])
    expect(found(one + two), equals: [one, two])
    expect(found("-a-sha1-sha1-x\(one)-\(two)sha1-"), equals: [one, two])
    expect(found(String(one.dropLast())), equals: [])
    expect(found(""), equals: [])
    expect(found("sha1"), equals: [])
    expect(found("-sha1-"), equals: [])
  }
}
