import SQLiteLibrary
import TestSupport

/// SQLITE_NOTADB.
private let notADatabase: Int32 = 26

@Suite("SQLCipher files of others") struct ForeignCipherTests {
  private func run(_ script: String, _ path: String) throws {
    _ = try runTool("sqlcipher", path, script)
  }

  @Test("those of the sqlcipher tool open with its passphrase or raw key, and tell a wrong one")
  func tool() throws {
    let directory = TemporaryDirectory()
    let table = "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('from elsewhere');"
    let raw = (0..<32).map { UInt8($0) }
    let hex = raw.map { String(format: "%02x", $0) }.joined()
    try run("PRAGMA key = 'correct horse'; \(table)", directory.path + "/3.db")
    try run("PRAGMA key = \"x'\(hex)'\"; \(table)", directory.path + "/raw.db")
    try run("PRAGMA key = 'correct horse'; PRAGMA kdf_iter = 4000; \(table)", directory.path + "/2.db")
    try run(
      "PRAGMA key = 'correct horse'; PRAGMA cipher_use_hmac = OFF; PRAGMA kdf_iter = 4000; \(table)",
      directory.path + "/1.db")
    // This process has made the library's default pages others.
    try makeFixture(.sqlcipher, at: directory.path + "/ours.touchstone", documents: 5)

    func text(_ cipher: CipherSettings, _ name: String, _ key: CipherSettings.Key) throws -> String? {
      let connection = try cipher.open(directory.path + "/" + name, key: key)
      defer { connection.close() }
      return try connection.string("SELECT a FROM t")
    }
    try expect(text(.sqlcipher3, "3.db", .passphrase("correct horse")), equals: "from elsewhere")
    try expect(text(.sqlcipher3, "raw.db", .raw(raw)), equals: "from elsewhere")
    try expect(text(.sqlcipher2, "2.db", .passphrase("correct horse")), equals: "from elsewhere")
    try expect(text(.sqlcipher1, "1.db", .passphrase("correct horse")), equals: "from elsewhere")
    for (cipher, name, key) in [
      (CipherSettings.sqlcipher3, "3.db", CipherSettings.Key.passphrase("wrong horse")),
      (.sqlcipher2, "3.db", .passphrase("correct horse")),
      (.sqlcipher3, "raw.db", .raw([UInt8](repeating: 1, count: 32))),
    ] {
      let error = #expect(throws: SQLiteError.self) { try text(cipher, name, key) }
      expect(error?.code, equals: notADatabase)
    }
    #expect(throws: SQLiteError.self) { try text(.sqlcipher3, "none.db", .passphrase("x")) }
  }
}
