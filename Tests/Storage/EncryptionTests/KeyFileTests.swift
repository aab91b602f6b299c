import TestTools

@testable import Encryption

@Suite struct KeyFileTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("key.json") }

  @Test(arguments: [false, true]) func theDataKeyComesBackWithTheKeyItWasMadeWith(raw: Bool) throws {
    let key = raw ? try UserKey.random() : try UserKey.passphrase("correct horse")
    let dataKey = try KeyFile.create(at: path, key: key)
    expect(dataKey.count, equals: 32)
    try expect(KeyFile.open(at: path, key: key), equals: dataKey)
    try expect(directory.names(), equals: ["key.json"])
    try expect(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int, equals: 0o600)
  }

  @Test func anotherKeyIsSaidToBeWrong() throws {
    let raw = try UserKey.raw([UInt8](repeating: 0x61, count: 32))
    let passphrase = try UserKey.passphrase(String(repeating: "a", count: 32))
    let others = [try UserKey.random(), try UserKey.passphrase("Correct horse"), raw, passphrase]
    for key in [try UserKey.passphrase("correct horse"), raw, passphrase] {
      let path = directory.file(UUID().uuidString)
      _ = try KeyFile.create(at: path, key: key)
      for other in others where other.kind != key.kind || other.secret != key.secret {
        let error = #expect(throws: EncryptionError.self) { try KeyFile.open(at: path, key: other) }
        expect(error?.code, equals: .wrongKey)
        expect(error?.path, equals: path)
      }
    }
  }

  @Test func aFileWithAnyBitChangedIsSaidToBeDamaged() throws {
    let key = try UserKey.random()
    let contents = try WrappedKey(.random(count: 32), key: key, derivation: .hkdfSHA256).fileContents()
    for bit in 0..<contents.count * 8 {
      var changed = contents
      changed[bit / 8] ^= 1 << (bit % 8)
      let error = #expect(throws: EncryptionError.self) { try WrappedKey(fileContents: changed) }
      expect(error?.code, equals: .damaged, "bit \(bit)")
    }
  }

  @Test func aFileOfAnyOtherLengthIsSaidToBeDamaged() throws {
    let contents = try WrappedKey(.random(count: 32), key: .random(), derivation: .hkdfSHA256).fileContents()
    for count in 0..<contents.count {
      let error = #expect(throws: EncryptionError.self) {
        try WrappedKey(fileContents: Array(contents[..<count]))
      }
      expect(error?.code, equals: .damaged, "\(count) bytes")
    }
    for longer in [contents + [10], contents + contents, [UInt8](repeating: 0x20, count: 1 << 20)] {
      try AtomicFile.write(longer, to: path)
      let error = #expect(throws: EncryptionError.self) { try KeyFile.open(at: path, key: .random()) }
      expect(error?.code, equals: .damaged)
    }
  }

  /// What a stranger may have written, checksum and all: a replacement in the file's text, and what is said.
  static let forgeries: [(of: String, by: String, code: EncryptionError.Code)] = [
    ("\"version\": 1", "\"version\": 2", .unsupportedVersion),
    ("AES-256-GCM", "ROT13", .unsupportedVersion),
    ("\"name\": \"scrypt\"", "\"name\": \"argon2id\"", .unsupportedVersion),
    ("\"name\": \"scrypt\"", "\"name\": \"HKDF-SHA256\"", .damaged),
    ("\"version\": 1", "\"version\": \"1\"", .damaged),
    ("\"version\": 1,", "", .damaged),
    ("\"nonce\": \"", "\"nonce\": \"*", .damaged),
    ("\"nonce\": \"", "\"nonce\": \"AAAA", .damaged),
    ("\"wrappedKey\": \"", "\"wrappedKey\": \"AAAA", .damaged),
    ("\"salt\": \"", "\"salt\": \"AAAA", .damaged),
    // Parameters that would take the machine, or that scrypt isn't defined for.
    ("\"n\": 1024", "\"n\": 1073741824", .damaged),
    ("\"n\": 1024", "\"n\": 9223372036854775808", .damaged),
    ("\"n\": 1024", "\"n\": 1000", .damaged),
    ("\"n\": 1024", "\"n\": 1", .damaged),
    ("\"n\": 1024", "\"n\": -1024", .damaged),
    ("\"n\": 1024", "\"n\": 1e3000", .damaged),
    ("\"r\": 8", "\"r\": 0", .damaged),
    ("\"r\": 8", "\"r\": 18446744073709551615", .damaged),
    ("\"p\": 1", "\"p\": 100000", .damaged),
    ("\"p\": 1", "\"p\": 0", .damaged),
    ("\"p\": 1,", "", .damaged),
    // Acceptable, but not what the data key was wrapped with.
    ("\"n\": 1024", "\"n\": 2048", .wrongKey),
  ]

  @Test(arguments: forgeries) func aForgedFileIsRefused(
    of original: String, by replacement: String, code: EncryptionError.Code
  ) throws {
    let key = try UserKey.passphrase("correct horse")
    let genuine = try WrappedKey(.random(count: 32), key: key, derivation: .scrypt(n: 1_024, r: 8, p: 1))
    try expect(WrappedKey(fileContents: genuine.fileContents()).unwrap(with: key).count, equals: 32)

    let text = String(decoding: try genuine.fileContents(), as: UTF8.self)
    let head = try #require(text.range(of: ",\n  \"checksum\"")).lowerBound
    let forged = String(text[..<head]).replacing(original, with: replacement)
    expect(forged != String(text[..<head]))
    let error = #expect(throws: EncryptionError.self) {
      try WrappedKey(fileContents: WrappedKey.withChecksum(Array(forged.utf8))).unwrap(with: key)
    }
    expect(error?.code, equals: code)
  }

  @Test func whatDecidesTheDerivationIsAuthenticated() throws {
    let key = try UserKey.random()
    let genuine = try WrappedKey(.random(count: 32), key: key, derivation: .hkdfSHA256)
    var salted = genuine
    salted.salt[0] ^= 1
    var derived = genuine
    derived.derivation = .scrypt(n: 2, r: 8, p: 1)
    expect(salted.additionalData != genuine.additionalData)
    expect(derived.additionalData != genuine.additionalData)
    #expect(throws: EncryptionError.self) { try salted.unwrap(with: key) }
  }

  @Test func twoWrappingsOfOneKeyShareNothing() throws {
    let key = try UserKey.random()
    let dataKey = try SecretBytes.random(count: 32)
    let one = try WrappedKey(dataKey, key: key, derivation: .hkdfSHA256)
    let other = try WrappedKey(dataKey, key: key, derivation: .hkdfSHA256)
    expect(one.salt != other.salt)
    expect(one.nonce != other.nonce)
    expect(one.sealed != other.sealed)
  }

  @Test func changingTheKeyKeepsTheDataKey() throws {
    let (old, new) = (try UserKey.random(), try UserKey.passphrase("new"))
    let dataKey = try KeyFile.create(at: path, key: old)
    try KeyFile.change(at: path, from: old, to: new)
    try expect(KeyFile.open(at: path, key: new), equals: dataKey)
    #expect(throws: EncryptionError.self) { try KeyFile.open(at: path, key: old) }
    try expect(directory.names(), equals: ["key.json"])
  }

  @Test func aFailedChangeLeavesTheFileAsItWas() throws {
    let key = try UserKey.random()
    _ = try KeyFile.create(at: path, key: key)
    let before = try AtomicFile.read(path, limit: 10_000)
    let error = #expect(throws: EncryptionError.self) {
      try KeyFile.change(at: path, from: .random(), to: .random())
    }
    expect(error?.code, equals: .wrongKey)
    try expect(AtomicFile.read(path, limit: 10_000), equals: before)
  }

  @Test func creatingWhereThereIsAFileIsRefused() throws {
    let key = try UserKey.random()
    let dataKey = try KeyFile.create(at: path, key: key)
    try expect(storageCode { try KeyFile.create(at: path, key: key) }, equals: .alreadyExists)
    try expect(KeyFile.open(at: path, key: key), equals: dataKey)
    try expect(directory.names(), equals: ["key.json"])
  }

  @Test func anAbsentFileIsSaidToBeAbsent() throws {
    try expect(
      storageCode { try KeyFile.open(at: "/nonexistent/key.json", key: .random()) }, equals: .notFound)
  }

  @Test func theFileSaysNothingOfItsKeys() throws {
    let key = try UserKey.passphrase("correct horse")
    let dataKey = try SecretBytes.random(count: 32)
    let contents = try WrappedKey(dataKey, key: key, derivation: .scrypt(n: 1_024, r: 8, p: 1)).fileContents()
    let text = String(decoding: contents, as: UTF8.self)
    expect(!text.contains("correct"))
    expect(!text.contains(Data(bytes(of: dataKey)).base64EncodedString().dropLast(2)))
  }

  @Test func whatIsWrittenIsAcceptable() {
    expect(KeyDerivation.standardScrypt.isAcceptable)
    expect(KeyDerivation.hkdfSHA256.isAcceptable)
  }

  @Test func aFileMadeByAnotherProgramOpens() throws {
    let wrapped = try WrappedKey(fileContents: Array(Self.fileMadeElsewhere.utf8))
    try expect(bytes(of: wrapped.unwrap(with: .passphrase("correct horse"))), equals: Array(0..<32))
  }

  /// Made by Python's hashlib and cryptography from docs/encryption.md: the bytes 100 to 131 as salt, 0 to 11 as
  /// nonce, 0 to 31 as data key.
  static let fileMadeElsewhere = """
    {
      "version": 1,
      "cipher": "AES-256-GCM",
      "kdf": {"name": "scrypt", "n": 1024, "r": 8, "p": 1, "salt": "ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="},
      "nonce": "AAECAwQFBgcICQoL",
      "wrappedKey": "Rj0msjo6FHcI+gec83zJupHsENxkDJmHlxJ5fACI8g0QRBHC/SN4qOKBRl2qKULq",
      "checksum": "suHDMXRu1n7TXAw3/SL2QTDSKmtFzKQxZKrHRZp1HDg="
    }

    """
}
