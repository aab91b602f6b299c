import SQLiteLibrary
import TestTools

@testable import StorageSQLite

/// A kind of engine as an argument of a test.
struct Kind: CustomTestStringConvertible, Sendable {
  let type: EngineType
  var testDescription: String { type.name }

  static let all = SQLiteEngines.all.map { Kind(type: $0) }
  static let encrypted = Kind(type: SQLiteEngines.sqlcipher)

  static let key = (0..<32).map { UInt8($0 &* 7 &+ 1) }

  func open(
    _ path: String, _ creation: FileCreation = .openOrCreate, isReadOnly: Bool = false,
    durability: Durability = .normal
  ) throws -> SQLiteEngine {
    let options = EngineOptions(
      creation: creation, isReadOnly: isReadOnly, durability: durability,
      key: type.encrypts ? Self.key : nil)
    return try #require(try type.open(path, options) as? SQLiteEngine)
  }
}

extension SQLiteEngine {
  /// The connection that writes, for a test that uses it between two commits. It keeps no snapshot then, which a timer would end on another
  /// thread.
  func idleWriter() throws -> Connection {
    let writer = try writer()
    writer.snapshot.giveUp()
    return writer.connection.connection
  }
}

func key(_ number: Int) -> [UInt8] { Array("key\(number)".utf8) }

extension StorageEngine {
  /// A keyspace of documents with `count` entries of `bytes` bytes each.
  @discardableResult
  func fill(_ name: String = "k", count: Int, bytes: Int, text: UInt8 = 0x41) throws -> Keyspace {
    try write { (transaction: any WriteTransaction) -> Keyspace in
      let keyspace = try transaction.createKeyspace(name, shape: .documents)
      let value = [UInt8](repeating: text, count: bytes)
      for number in 0..<count { try transaction.put(key(number), value, in: keyspace) }
      return keyspace
    }
  }

  /// The code of what `body` throws, or nil.
  func code(_ body: (any StorageEngine) throws -> Void) throws -> StorageError.Code? {
    try storageCode { try body(self) }
  }
}

func contents(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

func replaceContents(_ path: String, _ bytes: [UInt8]) throws {
  try Data(bytes).write(to: URL(fileURLWithPath: path))
}
