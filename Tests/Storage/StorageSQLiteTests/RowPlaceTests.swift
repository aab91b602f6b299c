import Bytes
import SQLiteLibrary
import TestTools

@testable import StorageSQLite

/// What remembered rows of documents are: guesses.
@Suite("Rows where documents were found") struct RowPlaceTests {
  private let directory = TemporaryDirectory()

  /// Notes that a key is in a row.
  private func note(_ key: [UInt8], _ row: Int64, _ engine: SQLiteEngine, _ keyspace: Keyspace) {
    let hash = key.withUnsafeBytes { ByteHash.of($0, keyspace.number) }
    engine.file.places.note(hash, row)
  }

  @Test("a put changes the row with its key, wherever the key was found last", arguments: Kind.all)
  func put(_ kind: Kind) throws {
    let engine = try kind.open(directory.file("a"))
    let keyspace: Keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let keys: [[UInt8]] = [[1], [2], [3]]
    func values() throws -> [[UInt8]?] {
      try engine.read { snapshot in try keys.map { try snapshot.bytes($0, in: keyspace) } }
    }
    // The rows are 1, 2 and 3.
    for key in keys {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        try transaction.put(key, key, in: keyspace)
      }
    }
    var expected: [[UInt8]?] = keys
    func check(_ change: (any WriteTransaction) throws -> Void) throws {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        // From now on this keyspace expects that a put replaces.
        try transaction.put(keys[2], [9], in: keyspace)
        try change(transaction)
      }
      expected[2] = [9]
      try expect(values(), equals: expected)
    }
    try check { transaction in
      for key in keys { _ = try transaction.bytes(key, in: keyspace) }
      try transaction.put(keys[0], [10], in: keyspace)
      expected[0] = [10]
    }
    // Another document's row, a row that isn't there, the right one again.
    for (row, value) in [(Int64(2), UInt8(11)), (77, 12), (1, 13)] {
      try check { transaction in
        note(keys[0], row, engine, keyspace)
        try transaction.put(keys[0], [value], in: keyspace)
        expected[0] = [value]
      }
    }
    // The row was deleted, and then a document with another key took its number.
    try check { transaction in
      _ = try keys[1].withUnsafeBytes { try transaction.delete($0.bytes, in: keyspace) }
      note(keys[1], 2, engine, keyspace)
      try transaction.put(keys[1], [14], in: keyspace)
      expected[1] = [14]
    }
    try expect(engine.read { try $0.count(of: keyspace) }, equals: 3)
    try engine.close()
  }
}
