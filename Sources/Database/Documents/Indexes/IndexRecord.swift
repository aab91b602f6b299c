import Bytes
import Storage

// The stored record of an index: the value of `meta/index/NAME`.
//
//   record := version:u8=1  number:varint  kindLength:varint  kind  definition
//
//   number      the index's keyspaces are named `index.NUMBER`, or begin with `index.NUMBER.`; never used twice
//   kind        ASCII, the name of an `IndexKind`
//   definition  the kind's own, to the end

/// The definition of an index as stored in the database.
package struct IndexRecord: Sendable, Hashable {
  /// Unique in the database: 1 to 200 bytes of UTF-8 without control characters.
  package let name: String
  /// The name of the index's `IndexKind`.
  package let kind: String
  /// Names the index's keyspaces. Another index with the same name has another number.
  package let number: UInt32
  /// What the index contains of each document, in the format of its kind.
  package let definition: [UInt8]

  static let version: UInt8 = 1
  /// The prefix of the keys of all index records.
  static let keyPrefix = Array("index/".utf8)

  init(name: String, kind: String, number: UInt32, definition: [UInt8]) {
    self.name = name
    self.kind = kind
    self.number = number
    self.definition = definition
  }

  /// The keyspace of the index. An index with several keyspaces names the others `index.NUMBER.…`.
  package var keyspaceName: String { "index.\(number)" }

  /// Returns whether the keyspace belongs to this index.
  func owns(keyspace name: String) -> Bool {
    name == keyspaceName || name.hasPrefix(keyspaceName + ".")
  }

  static func key(_ name: String) -> [UInt8] { keyPrefix + Array(name.utf8) }

  /// Decodes an entry of `meta`.
  init(key: RawSpan, value: RawSpan) throws {
    let rest = key.extracting(droppingFirst: IndexRecord.keyPrefix.count)
    guard let name = rest.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }), !name.isEmpty else {
      throw DocumentError(.damaged, "the name of an index can't be read")
    }
    var reader = ByteReader(value)
    guard let version = reader.byte() else { throw IndexRecord.damaged(name) }
    guard version == IndexRecord.version else {
      throw DocumentError(
        .unsupportedVersion, "the index \"\(name)\" has format \(version), which this release doesn't support"
      )
    }
    guard let number = reader.varint(), let length = reader.varint(), length <= 64,
      let kind = reader.bytes(Int(length)), number > 0, let number = UInt32(exactly: number)
    else { throw IndexRecord.damaged(name) }
    self.init(
      name: name, kind: String(copying: kind), number: number,
      definition: [UInt8](copying: reader.rest))
  }

  private static func damaged(_ name: String) -> DocumentError {
    DocumentError(.damaged, "the record of the index \"\(name)\" can't be read")
  }

  var encoded: [UInt8] {
    var bytes = ByteBuffer(capacity: 256)
    bytes.append(IndexRecord.version)
    bytes.append(varint: UInt64(number))
    bytes.append(varint: UInt64(kind.utf8.count))
    Array(kind.utf8).withUnsafeBytes { bytes.append($0) }
    definition.withUnsafeBytes { bytes.append($0) }
    return [UInt8](bytes.bytes)
  }

  /// Throws `invalidIndex` unless the name is a valid index name.
  static func check(name: String) throws {
    let utf8 = name.utf8
    guard (1...200).contains(utf8.count), !utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw DocumentError(
        .invalidIndex,
        "the name of an index must have 1 to 200 bytes and no control characters, unlike \"\(name)\"")
    }
  }
}

/// All indexes of a database at one moment.
final class IndexCatalog: Sendable {
  /// Changes whenever any process creates or removes an index. 0 if there never was one.
  let generation: UInt32
  /// Ordered by name.
  let records: [IndexRecord]

  static let empty = IndexCatalog(generation: 0, records: [])

  init(generation: UInt32, records: [IndexRecord]) {
    self.generation = generation
    self.records = records
  }

  static func load(_ generation: UInt32, _ transaction: any ReadTransaction, _ meta: Keyspace) throws
    -> IndexCatalog
  {
    guard generation > 0 else { return empty }
    var records: [IndexRecord] = []
    try transaction.scan(meta, .prefix(IndexRecord.keyPrefix)) { key, value in
      records.append(try IndexRecord(key: key, value: value))
      return true
    }
    return IndexCatalog(generation: generation, records: records)
  }
}
