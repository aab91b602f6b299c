import TestTools

@testable import Encryption

@Suite struct UserKeyTests {
  /// A file's contents, and the key they are: `raw`, a passphrase, or nil for none.
  static let files: [(contents: [UInt8], raw: Bool, secret: [UInt8]?)] = [
    (Array("open sesame\n".utf8), false, Array("open sesame".utf8)),
    (Array("open sesame\r\n".utf8), false, Array("open sesame".utf8)),
    (Array("open sesame".utf8), false, Array("open sesame".utf8)),
    (Array(" ö \n".utf8), false, Array(" ö ".utf8)),
    (Array(0..<32), true, Array(0..<32)),
    // 32 bytes are raw, even when they are letters, or end with a newline but are no text before it.
    ([UInt8](repeating: 0x61, count: 32), true, [UInt8](repeating: 0x61, count: 32)),
    (Array(200..<231) + [10], true, Array(200..<231) + [10]),
    // A line that ends is a passphrase, whatever its length.
    ([UInt8](repeating: 0x61, count: 31) + [10], false, [UInt8](repeating: 0x61, count: 31)),
    ([UInt8](repeating: 0x61, count: 32) + [10], false, [UInt8](repeating: 0x61, count: 32)),
    ([UInt8](repeating: 0x61, count: 64), false, [UInt8](repeating: 0x61, count: 64)),
    ([], false, nil), ([10], false, nil), (Array("two\nlines\n".utf8), false, nil),
    (Array(0..<31), false, nil), (Array(0..<33), false, nil), ([0xFF, 0xFE], false, nil),
    ([UInt8](repeating: 0x61, count: 1_025), false, nil),
  ]

  @Test(arguments: files) func aFileIsAPassphraseLineOrThirtyTwoBytes(
    contents: [UInt8], raw: Bool, secret: [UInt8]?
  ) throws {
    guard let secret else {
      let error = #expect(throws: EncryptionError.self) { try UserKey(fileContents: contents) }
      expect(error?.code, equals: .invalidKey)
      return
    }
    let key = try UserKey(fileContents: contents)
    expect((key.kind == .raw), equals: raw)
    expect(bytes(of: key.secret), equals: secret)
  }

  @Test func aKeyFileIsReadFromItsPath() throws {
    let directory = TemporaryDirectory()
    let path = directory.file("key")
    try AtomicFile.write(Array("open sesame\n".utf8), to: path)
    try expect(bytes(of: UserKey(contentsOfFile: path).secret), equals: Array("open sesame".utf8))

    try AtomicFile.write(Array("a\nb\n".utf8), to: path)
    let invalid = #expect(throws: EncryptionError.self) { try UserKey(contentsOfFile: path) }
    expect(invalid?.path, equals: path)
    try expect(storageCode { try UserKey(contentsOfFile: path + "2") }, equals: .notFound)
  }

  @Test func rawKeysHaveThirtyTwoBytes() {
    #expect(throws: EncryptionError.self) { try UserKey.raw([1, 2, 3]) }
    #expect(throws: EncryptionError.self) { try UserKey.passphrase("") }
  }
}
