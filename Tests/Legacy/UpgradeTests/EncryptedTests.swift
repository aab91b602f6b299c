import Datasets
import TestSupport

/// Encrypted databases of 1.x, made by the specification with another code than what reads them.
@Suite("Encrypted databases") struct EncryptedTests {
  private let directory = TemporaryDirectory()

  @Test(
    "open with their password, and their attachments are decrypted",
    arguments: LegacyDatabase.Platform.allCases)
  func password(_ platform: LegacyDatabase.Platform) throws {
    var settings = MadeDatabasesTests.settings(platform, .v13)
    settings.documents = 60
    settings.hasLog = platform == .android
    settings.key = LegacyDatabase.key(password: "letmein", platform: platform)
    let source = try directory.makeOld(settings)
    let before = try Files(source)
    let report = try Database.upgrade(
      source, to: directory.new, engine: .lmdb,
      options: UpgradeOptions(verifies: true, sourceKey: try .passphrase("letmein")))
    try expect(Files(source), equals: before)
    expect(report.isEncrypted && report.attachments.decrypted > 0)
    try compareMade(directory.new, settings, report)
  }

  @Test("open with their raw key")
  func rawKey() throws {
    var settings = MadeDatabasesTests.settings(.ios, .v12)
    settings.documents = 40
    settings.key = (0..<32).map { UInt8($0 * 7) }
    let source = try directory.makeOld(settings)
    // The mark of encrypted attachments may be lost.
    try FileManager.default.removeItem(atPath: source + "/attachments/_encryption")
    let report = try Database.upgrade(
      source, to: directory.new, engine: .sqlcipher, key: try key(of: .sqlcipher),
      options: UpgradeOptions(verifies: true, sourceKey: try .raw(try #require(settings.key))))
    try compareMade(directory.new, settings, report, key: try key(of: .sqlcipher))
  }

  @Test("open with a password that Android cuts off")
  func cutPassword() throws {
    var settings = LegacyDatabase()
    settings.platform = .android
    settings.documents = 5
    settings.key = LegacyDatabase.key(password: "pässwörd", platform: .android)
    expect(settings.key != LegacyDatabase.key(password: "pässwörd", platform: .ios))
    let source = try directory.makeOld(settings)
    let report = try Database.upgrade(
      source, to: directory.new, options: UpgradeOptions(sourceKey: try .passphrase("pässwörd")))
    expect(report.documents.carried, equals: 5)
  }

  @Test("derive their keys as the platforms' own tests say")
  func derivation() {
    func hex(_ platform: LegacyDatabase.Platform) -> String {
      LegacyDatabase.key(password: "letmein", platform: platform).map { String(format: "%02x", $0) }.joined()
    }
    // Asserted by the tests of Couchbase Lite for Android.
    expect(hex(.android), equals: "6a9bd780221f4fe8a594fc728a94ba633b882983fe5613db427bb61242bfef0f")
    expect(hex(.net), equals: "c66c9a3d66dfa2f8b9420b0379fd1b80928d8d74501e12dd5bc453a7a9a748ab")
  }

  @Test("are told apart by their key: none, a wrong one, one too many")
  func keys() throws {
    var settings = LegacyDatabase()
    settings.documents = 5
    let plain = try LegacyDatabaseMaker(settings).make("plain", in: directory.path)
    settings.key = LegacyDatabase.key(password: "letmein", platform: .ios)
    let secret = try LegacyDatabaseMaker(settings).make("secret", in: directory.path)
    func code(_ source: String, _ key: UserKey?) throws -> UpgradeError.Code? {
      try upgradeCode {
        try Database.upgrade(source, to: directory.new, options: UpgradeOptions(sourceKey: key))
      }
    }
    try expect(code(secret, nil), equals: .keyRequired)
    try expect(code(secret, try .passphrase("letmeout")), equals: .wrongKey)
    try expect(code(secret, try .raw([UInt8](repeating: 1, count: 32))), equals: .wrongKey)
    try expect(code(plain, try .passphrase("letmein")), equals: .notEncrypted)
    try expect(directory.names(), equals: ["plain.cblite2", "secret.cblite2"])
  }

  @Test(
    "that the sqlcipher tool makes come over",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlcipher")))
  func tool() throws {
    let path = directory.path + "/tool.cblite2"
    try FileManager.default.createDirectory(
      atPath: path + "/attachments", withIntermediateDirectories: true)
    // The tool doesn't have the collation of 1.x.
    let script = """
      PRAGMA key = "x'6a9bd780221f4fe8a594fc728a94ba633b882983fe5613db427bb61242bfef0f'";
      PRAGMA user_version = 102;
      CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT UNIQUE NOT NULL, expiry_timestamp INTEGER);
      CREATE TABLE revs (sequence INTEGER PRIMARY KEY AUTOINCREMENT, doc_id INTEGER NOT NULL, revid TEXT NOT NULL,
        parent INTEGER, current BOOLEAN, deleted BOOLEAN DEFAULT 0, json BLOB,
        no_attachments BOOLEAN, doc_type TEXT);
      INSERT INTO docs VALUES (1, 'a', NULL);
      INSERT INTO revs VALUES (1, 1, '1-aa', NULL, 0, 0, '{"v":1}', 1, NULL);
      INSERT INTO revs VALUES (2, 1, '2-bb', 1, 1, 0, '{"v":2}', 1, NULL);
      """
    _ = try runTool("sqlcipher", path + "/db.sqlite3", script)
    let report = try Database.upgrade(
      path, to: directory.new,
      options: UpgradeOptions(verifies: true, sourceKey: try .passphrase("letmein")))
    expect(report.documents.carried == 1 && report.revisions.carried == 2)
    let database = try directory.openNew()
    defer { try? database.close() }
    try expect(database.revisions(of: "a")?.map(\.id.description), equals: ["2-bb", "1-aa"])
    try expect(database.revisions(of: "a")?.compactMap(\.body), equals: [["v": 2], ["v": 1]])
  }
}
