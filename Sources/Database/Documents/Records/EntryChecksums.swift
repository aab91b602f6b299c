import Bytes
import Storage

// Every entry of the documents' own keyspaces ends with a checksum (format 3):
//
//   entry    := key → value  checksum
//   checksum := u32 little-endian: CRC-32C over the keyspace's name, 00, key, value
//
// Entries of indexes have none: an index is verified against the documents, and rebuilt from them.

/// The keyspaces of a database whose entries end with a checksum, and the initial state of their checksums.
struct EntryChecksums: Sendable {
  /// The size of a checksum in bytes.
  static let size = 4
  /// The documents' own keyspaces, those that are read most often first.
  static let keyspaceNames = [
    "docs", "changes", "meta", "deleted", "bodies", "conflicts", "expirations", "expiry", "history", "local",
    PurgeRecord.keyspace, SyncRecords.keyspace, SyncRecords.marks,
  ]

  /// Initial checksum states, by keyspace number. There are few, so a linear search is used.
  private var beginnings: [(number: Int, checksum: CRC32C)] = []
  /// The names of keyspaces that don't exist yet. In most databases there are five, so comparing names is
  /// cheap.
  private var missing: [String] = []

  /// Finds the existing keyspaces in a transaction.
  init(_ transaction: any ReadTransaction) throws {
    let found = try transaction.keyspaces()
    for name in Self.keyspaceNames {
      if let keyspace = found[name] { add(keyspace, name) } else { missing.append(name) }
    }
  }

  /// Adds a keyspace if it is one of the documents' own and wasn't known yet.
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

  /// Returns the initial state of the checksums in a keyspace, nil if its entries have none.
  @inline(__always)
  func beginning(in keyspace: Keyspace) -> CRC32C? {
    for beginning in beginnings where beginning.number == keyspace.number { return beginning.checksum }
    return nil
  }

  /// Returns the value of a stored entry. With `verifies`, the entry is verified against its checksum and
  /// `damaged` is thrown if it doesn't match. Without, an entry too short for a checksum has an empty value,
  /// which its reader rejects.
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
      .damaged, "the stored entry \(words(for: key)) doesn't match its checksum")
  }

  /// Returns a key as text for people: in quotation marks, or as hex.
  static func words(for key: RawSpan) -> String {
    let bytes = [UInt8](copying: key)
    if bytes.allSatisfy({ $0 >= 0x20 }), let text = String(validating: bytes, as: UTF8.self) {
      return "'\(text)'"
    }
    return Hex.text(bytes)
  }
}

// Access to stored entries, for tools and tests.

extension StorageEngine {
  /// Runs `body` on a snapshot that gives values without their checksums, and verifies them.
  package func readEntries<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    try readRepeating { plain in
      guard let checksums = try DocumentStore.storedFormat(plain, in: location)?.checksums else {
        return try body(plain)
      }
      return try body(ChecksummedReadTransaction(plain, checksums, verifies: true))
    }
  }

  /// Runs `body` in a write transaction that adds checksums to entries.
  package func writeEntries<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    try writeRepeating { (plain: any WriteTransaction) throws -> Result in
      guard let checksums = try DocumentStore.storedFormat(plain, in: location)?.checksums else {
        return try body(plain)
      }
      return try body(ChecksummedWriteTransaction(plain, checksums, verifies: true))
    }
  }
}
