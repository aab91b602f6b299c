import Storage

// Every entry of the documents' own keyspaces ends with a checksum (format 3):
//
//   entry    := key → value  checksum
//   checksum := u32 little-endian: CRC-32C over the keyspace's name, 00, key, value
//
// Those of indexes have none: an index is checked against the documents, and made anew from them.

/// The keyspaces of a database whose entries end with a checksum, and what those begin with.
struct EntryChecksums: Sendable {
  /// In bytes.
  static let size = 4
  /// The documents' own keyspaces. Those that are read most come first.
  static let keyspaceNames = [
    "docs", "changes", "meta", "deleted", "bodies", "conflicts", "expirations", "expiry", "history", "local",
  ]

  /// By the keyspaces' numbers. Few: looked through from the front.
  private var beginnings: [(number: Int, checksum: CRC32C)] = []
  /// The names of those that there aren't yet: two in most databases, to compare with the names that are asked for.
  private var missing: [String] = []

  /// Those of the keyspaces that there are in a transaction.
  init(_ transaction: any ReadTransaction) throws {
    let found = try transaction.keyspaces()
    for name in Self.keyspaceNames {
      if let keyspace = found[name] { add(keyspace, name) } else { missing.append(name) }
    }
  }

  /// Takes in a keyspace if it is one of the documents' own that wasn't there before.
  mutating func note(_ keyspace: Keyspace, _ name: String) {
    guard let index = missing.firstIndex(of: name) else { return }
    missing.remove(at: index)
    add(keyspace, name)
  }

  private mutating func add(_ keyspace: Keyspace, _ name: String) {
    var checksum = CRC32C()
    let bytes = Array(name.utf8) + [0]
    checksum.add(bytes.span.bytes)
    beginnings.append((keyspace.number, checksum))
  }

  /// What the checksums in a keyspace begin with; nil when its entries have none.
  @inline(__always)
  func beginning(in keyspace: Keyspace) -> CRC32C? {
    for beginning in beginnings where beginning.number == keyspace.number { return beginning.checksum }
    return nil
  }

  /// The value of a stored entry. With `verifies` its checksum is held against the entry. Without, an entry that is too
  /// short for a checksum has an empty value, which its reader refuses.
  @inline(__always)
  @_lifetime(copy stored)
  static func value(
    of stored: RawSpan, at key: RawSpan, _ beginning: CRC32C, verifies: Bool
  ) throws -> RawSpan {
    let count = stored.byteCount - size
    guard count >= 0 else {
      if verifies { throw damaged(key) }
      return stored.extracting(first: 0)
    }
    let value = stored.extracting(first: count)
    if verifies {
      let found = UInt32(littleEndian: stored.unsafeLoadUnaligned(fromByteOffset: count, as: UInt32.self))
      guard found == checksum(key, value, beginning) else { throw damaged(key) }
    }
    return value
  }

  @inline(__always)
  static func checksum(_ key: RawSpan, _ value: RawSpan, _ beginning: CRC32C) -> UInt32 {
    var checksum = beginning
    checksum.add(key)
    checksum.add(value)
    return checksum.value
  }

  private static func damaged(_ key: RawSpan) -> DocumentError {
    DocumentError(
      .damaged, "the stored entry \(words(for: key)) doesn't have the checksum that it was written with")
  }

  /// A key for people: text in quotation marks, or hex.
  static func words(for key: RawSpan) -> String {
    let bytes = [UInt8](copying: key)
    if bytes.allSatisfy({ $0 >= 0x20 }), let text = String(validating: bytes, as: UTF8.self) {
      return "'\(text)'"
    }
    return bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}

// What is stored of documents, for tools and tests that look at single entries.

extension StorageEngine {
  /// Runs `body` on a snapshot whose entries have their values without checksums.
  package func readEntries<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    try readRepeating { plain in
      guard let checksums = try DocumentStore.storedFormat(plain, in: location)?.checksums else {
        return try body(plain)
      }
      return try body(ChecksummedReadTransaction(plain, checksums, verifies: true))
    }
  }

  /// Runs `body` in a write transaction that gives entries their checksums.
  package func writeEntries<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    try writeRepeating { (plain: any WriteTransaction) throws -> Result in
      guard let checksums = try DocumentStore.storedFormat(plain, in: location)?.checksums else {
        return try body(plain)
      }
      return try body(ChecksummedWriteTransaction(plain, checksums, verifies: true))
    }
  }
}
