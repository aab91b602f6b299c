import Encryption
import TestSupport

@Suite("Keys of databases") struct KeyTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }

  @Test("rekey changes the key and nothing else", arguments: [EngineName.sqlcipher, .lmdbEncrypted])
  func rekey(_ engine: EngineName) throws {
    try makeFixture(engine, at: path)
    let file = "\(path)/data-1.\(try Engines.type(engine).fileExtension)"
    let before = try Contents(of: path, key: oldKey())
    let names = try directory.names("a.touchstone")
    let (old, new) = (try oldKey(), try UserKey.passphrase("open sesame"))
    let data = try Data(contentsOf: URL(fileURLWithPath: file))
    try Database.rekey(path, key: old, newKey: new)
    try expect(Data(contentsOf: URL(fileURLWithPath: file)), equals: data)
    try expect(directory.names("a.touchstone"), equals: names)
    try expect(
      databaseCode { _ = try Database.open(path, options: DatabaseOptions(key: old)) }, equals: .wrongKey)
    try expect(Contents(of: path, key: new), equals: before)
    // The derivation's parameters can be raised, and are those of the file.
    try Database.rekey(path, key: new, newKey: new, stretching: PassphraseStretching(n: 131_072))
    let keyFile = try String(contentsOfFile: path + "/key.json", encoding: .utf8)
    expect(keyFile.contains("\"n\": 131072"))
    try expect(Contents(of: path, key: new), equals: before)
    #expect(throws: EncryptionError.self) { try PassphraseStretching(n: 1 << 40) }
    #expect(throws: EncryptionError.self) { try PassphraseStretching(n: 65_537) }
    #expect(throws: EncryptionError.self) { try PassphraseStretching(n: 8_192) }
  }

  @Test(
    "rotate writes everything anew, blobs too, under another data key",
    arguments: [EngineName.sqlcipher, .lmdbEncrypted])
  func rotate(_ engine: EngineName) throws {
    try makeFixture(engine, at: path)
    let before = try Contents(of: path, key: oldKey())
    var dataKeys: [SecretBytes?] = []
    var keys = [try oldKey(), try newKey(), try newKey()]
    for (index, key) in keys.enumerated() {
      let database = try Database.open(path, options: DatabaseOptions(key: key))
      dataKeys.append(try database.dataKey(key))
      try database.close()
      try expect(Contents(of: path, key: key), equals: before)
      try Database.rotateKey(path, key: key, newKey: index == 0 ? newKey() : nil)
      let names = try directory.names("a.touchstone")
      expect(names.filter { $0.hasPrefix("data-") && !$0.hasSuffix("-lock") }.count, equals: 1, "\(names)")
      expect(names.filter { $0.hasPrefix("key") }.count, equals: 1, "\(names)")
      expect(names.filter { $0.hasPrefix("Attachments") }.count, equals: 1, "\(names)")
    }
    expect(dataKeys[0] != dataKeys[1] && dataKeys[1] != dataKeys[2])
    keys.removeAll()
    try expect(Contents(of: path, key: newKey()), equals: before)
  }

  @Test(
    "encrypt leaves no plain file and decrypt no encrypted one", arguments: [EngineName.sqlite, .lmdb],
    [EngineName.sqlcipher, .lmdbEncrypted])
  func encryption(_ engine: EngineName, _ encrypting: EngineName) throws {
    try makeFixture(engine, at: path)
    let before = try Contents(of: path, key: nil)
    let key = try oldKey()
    try Database.encrypt(path, key: key, engine: encrypting)
    try expect(Contents(of: path, key: key), equals: before)
    let files = try FileManager.default.subpathsOfDirectory(atPath: path)
    for name in files {
      let bytes = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
      for plain in ["doc17", "text 17", "a small blob", "SQLite format"] {
        expect(bytes.range(of: Data(plain.utf8)) == nil, "\(name) has \(plain)")
      }
      expect(!name.hasSuffix(".blob"))
    }
    expect(files.filter { $0.hasSuffix(".sealed") }.count, equals: 2)
    try Database.decrypt(path, key: key, engine: engine)
    try expect(Contents(of: path, key: nil), equals: before)
    let left = try FileManager.default.subpathsOfDirectory(atPath: path)
    expect(!left.contains { $0.hasSuffix(".sealed") || $0.hasPrefix("key") }, "\(left)")
    expect(left.filter { $0.hasSuffix(".blob") }.count, equals: 2)
  }

  @Test("what an operation left that didn't end goes when the database is next opened")
  func leftovers() throws {
    try makeFixture(.sqlcipher, at: path)
    let names = try directory.names("a.touchstone")
    for name in ["key-2.json", "data-7.mdb", "data-7.mdb-lock", "database.json.new-12345678"] {
      _ = FileManager.default.createFile(atPath: path + "/" + name, contents: Data([1]))
    }
    try FileManager.default.createDirectory(
      atPath: path + "/Attachments-2/x", withIntermediateDirectories: true)
    _ = FileManager.default.createFile(atPath: path + "/mine.txt", contents: Data([1]))
    // Not by who only reads.
    try Database.open(path, options: DatabaseOptions(isReadOnly: true, key: oldKey())).close()
    try expect(directory.names("a.touchstone").contains("key-2.json"))
    try Database.open(path, options: DatabaseOptions(key: oldKey())).close()
    try expect(directory.names("a.touchstone"), equals: (names + ["mine.txt"]).sorted())
  }

  @Test("a damaged blob stops what would write it anew, and nothing has changed")
  func damagedBlob() throws {
    try makeFixture(.sqlite, at: path)
    let blobs = try directory.names("a.touchstone/Attachments").filter { $0.hasSuffix(".blob") }
    let blob = path + "/Attachments/" + (try #require(blobs.first))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: blob)
    var bytes = try #require(FileManager.default.contents(atPath: blob))
    bytes[3] ^= 1
    try bytes.write(to: URL(fileURLWithPath: blob))
    let names = try directory.names("a.touchstone")
    let key = try oldKey()
    try expect(storageCode { try Database.encrypt(path, key: key) }, equals: .damaged)
    try expect(directory.names("a.touchstone"), equals: names)
  }
}
