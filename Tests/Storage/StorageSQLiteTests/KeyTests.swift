import StorageSQLite
import TestTools

struct KeyTests {
  let directory = TemporaryDirectory()

  private func open(_ type: EngineType, _ path: String, _ key: [UInt8]?) throws -> StorageError.Code? {
    try storageCode { try type.open(path, EngineOptions(key: key)).close() }
  }

  @Test func wrongKeyNoKeyKeyForAPlainFileAndDamageAreFourErrors() throws {
    let path = directory.file("a")
    try Kind.encrypted.open(path).closing { try $0.fill(count: 100, bytes: 500) }
    var other = Kind.key
    other[31] ^= 1
    try expect(open(SQLiteEngines.sqlcipher, path, other), equals: .wrongKey)
    try expect(open(SQLiteEngines.sqlcipher, path, nil), equals: .keyRequired)
    try expect(open(SQLiteEngines.sqlite, path, Kind.key), equals: .notEncrypted)
    try expect(open(SQLiteEngines.sqlite, path, nil), equals: .notADatabase)
    try expect(open(SQLiteEngines.sqlcipherPlain, path, nil), equals: .notADatabase)
    try expect(open(SQLiteEngines.sqlcipher, path, [1, 2, 3]), equals: .invalidArgument)

    let plain = directory.file("plain")
    try Kind(type: SQLiteEngines.sqlcipherPlain).open(plain).closing { try $0.fill(count: 1, bytes: 1) }
    try expect(open(SQLiteEngines.sqlcipher, plain, Kind.key), equals: .notEncrypted)

    var bytes = try contents(path)
    bytes[100] ^= 0xFF
    try replaceContents(path, bytes)
    try expect(open(SQLiteEngines.sqlcipher, path, Kind.key), equals: .damaged)
    try expect(open(SQLiteEngines.sqlcipher, path, other), equals: .wrongKey)
    try expect(open(SQLiteEngines.sqlcipher, path, Kind.key), equals: .damaged)
  }

  @Test func anEncryptedFileAndItsLogShowNothingOfWhatIsInThem() throws {
    let path = directory.file("a")
    let engine = try Kind.encrypted.open(path)
    let secret = Array("a readable sentence".utf8)
    try engine.write { (transaction: any WriteTransaction) in
      let keyspace = try transaction.createKeyspace("readable-name", shape: .documents)
      for number in 0..<2_000 { try transaction.put(key(number), secret, in: keyspace) }
    }
    for suffix in ["", "-wal"] {
      let text = String(decoding: try contents(path + suffix), as: UTF8.self)
      expect(!text.isEmpty)
      for readable in ["readable", "SQLite format", "CREATE TABLE"] {
        expect(!text.contains(readable), "\(suffix) holds “\(readable)”")
      }
    }
    try engine.close()
    try expect(String(decoding: try contents(path), as: UTF8.self).contains("readable"), equals: false)
  }
}
