import Bytes
import TestSupport

@testable import Documents

@Suite("Revision IDs") struct RevisionIDTests {
  @Test(
    "text is kept as it is", arguments: ["1-a", "3-foo", "2-448bebae", "10-ABCD", "1-953875a1-9bc5-4010"])
  func keepsText(_ text: String) throws {
    let id = try #require(RevisionID(text))
    expect(id.description, equals: text)
    var buffer = ByteBuffer()
    id.withStored { $0.append(to: &buffer) }
    let bytes = [UInt8](buffer.bytes)
    var reader = ByteReader(bytes.span.bytes)
    let found = StoredRevisionID(&reader)
    let stored = try #require(found)
    expect(stored.generation, equals: id.generation)
    expect(stored.suffix.text, equals: id.suffix)
    expect(reader.rest.byteCount, equals: 0)
  }

  @Test("lower-case hex of even length is packed, anything else isn't")
  func packs() {
    func storedBytes(_ text: String) -> [UInt8]? {
      RevisionID(text).map { id in
        var buffer = ByteBuffer()
        id.withStored { $0.append(to: &buffer) }
        return Array(buffer.bytes)
      }
    }
    expect(storedBytes("2-0a1b"), equals: [2, 4, 0x0A, 0x1B])
    expect(storedBytes("300-ff"), equals: [0xAC, 2, 2, 0xFF])
    expect(storedBytes("1-0A"), equals: [1, 5, 0x30, 0x41])
    expect(storedBytes("1-abc"), equals: [1, 7, 0x61, 0x62, 0x63])
  }

  @Test(
    "what is no revision ID is refused",
    arguments: [
      "", "-", "1", "1-", "-a", "0-a", "01-a", "x-a", "1x-a", "+1-a", "1- a", "1-a\u{7F}", "1-é",
      "18446744073709551616-a", "1-" + String(repeating: "a", count: 251),
    ])
  func refuses(_ text: String) { expect(RevisionID(text) == nil) }

  @Test("order is by generation as a number, then by the suffix's bytes")
  func order() throws {
    let sorted = ["2-a", "9-zz", "10-aa", "89-foo", "123-bar", "456-foo", "456-foofoo"]
    let ids = try sorted.map { try #require(RevisionID($0)) }
    expect(ids.shuffled().sorted(), equals: ids)
    // Packed and text suffixes compare as their texts do.
    for left in ids {
      for right in ids where left.generation == right.generation {
        left.withStored { left in
          right.withStored { right in
            expect((left.suffix.compare(right.suffix) < 0), equals: (left.suffix.text < right.suffix.text))
          }
        }
      }
    }
    let mixed = try ["5-0a", "5-0A", "5-0b", "5-zz", "5-0"].map { try #require(RevisionID($0)) }
    for left in mixed {
      for right in mixed {
        let order = left.withStored { l in right.withStored { r in l.suffix.compare(r.suffix) } }
        expect((order < 0), equals: (left < right), "\(left) and \(right)")
      }
    }
  }

  @Test("the digest is that of the published recipe")
  func digest() throws {
    let digest = try RevisionDigest()
    func id(_ parent: String, _ deleted: Bool, _ json: String) throws -> String {
      try Array(parent.utf8).withUnsafeBytes { parent in
        try Array(json.utf8).withUnsafeBytes { json in
          StoredSuffix(
            bytes: try digest.digest(parent: parent, deleted: deleted, body: json), isText: false
          ).text
        }
      }
    }
    try expect(id("", false, #"{"ans*wer":42}"#), equals: "feb9f18cfe84f614f750040e3eed3eb84a6b5332")
    // The vectors of the earlier recipe, which hashes the body's bytes as they are.
    let first = try id("", false, #"{"property":"value"}"#)
    expect(first, equals: "3de83144ab0b66114ff350b20724e1fd48c6c57b")
    let second = try id("1-" + first, false, #"{"property":"newvalue"}"#)
    expect(second, equals: "7718b0324ed598dda05874ab0afa1c826a4dc45c")
    try expect(id("2-" + second, true, ""), equals: "6f61ee6f47b9f70773aa769d97b116d615cad7b9")
  }
}
