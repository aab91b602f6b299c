import Bytes
import Storage

/// A read transaction for databases whose own keyspaces have checksums at the end of entries. All ways of
/// reading give values without their checksums. Other keyspaces are passed through.
class ChecksummedReadTransaction: ReadTransaction {
  private let base: any ReadTransaction
  // Read in every call. A check of exclusive access would cost more than the read itself.
  @exclusivity(unchecked) fileprivate final var checksums: EntryChecksums
  /// Whether each entry that is read is verified against its checksum. A damaged entry then throws `damaged`.
  private let verifies: Bool

  init(_ base: any ReadTransaction, _ checksums: EntryChecksums, verifies: Bool) {
    self.base = base
    self.checksums = checksums
    self.verifies = verifies
  }

  func keyspace(named name: String) throws -> Keyspace? {
    let keyspace = try base.keyspace(named: name)
    if let keyspace { checksums.note(keyspace, name) }
    return keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    let keyspaces = try base.keyspaces()
    for (name, keyspace) in keyspaces { checksums.note(keyspace, name) }
    return keyspaces
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    guard let beginning = checksums.beginning(in: keyspace) else {
      return try base.read(key, in: keyspace, body)
    }
    let verifies = verifies
    return try base.read(key, in: keyspace) {
      try body(EntryChecksums.value(of: $0, at: key, beginning, verifies: verifies))
    }
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    // A scan of keys only has no values to verify.
    guard fetch == .entries, let beginning = checksums.beginning(in: keyspace) else {
      return try base.scan(keyspace, range, order: order, fetch: fetch, body)
    }
    let verifies = verifies
    try base.scan(keyspace, range, order: order, fetch: fetch) { key, stored in
      try body(key, EntryChecksums.value(of: stored, at: key, beginning, verifies: verifies))
    }
  }

  func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool
  ) throws {
    guard let beginning = checksums.beginning(in: keyspace) else {
      return try base.getMany(keys, in: keyspace, body)
    }
    let verifies = verifies
    try base.getMany(keys, in: keyspace) { index, stored in
      try body(index, EntryChecksums.value(of: stored, at: keys[index], beginning, verifies: verifies))
    }
  }

  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    let source = checksums.beginning(in: keyspace)
    let found = checksums.beginning(in: target)
    // Verification needs the key in the target keyspace. The engine's `follow` doesn't report it.
    if source != nil || found != nil && verifies {
      return try followByReading(keyspace, range, order: order, into: target, reference: reference, body)
    }
    guard let found else {
      return try base.follow(keyspace, range, order: order, into: target, reference: reference, body)
    }
    try base.follow(keyspace, range, order: order, into: target, reference: reference) { key, value, stored in
      try body(key, value, EntryChecksums.value(of: stored, at: key, found, verifies: false))
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    let cursor = try base.cursor(in: keyspace, range)
    guard let beginning = checksums.beginning(in: keyspace) else { return cursor }
    return ChecksummedCursor(cursor, beginning, verifies: verifies)
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount { try base.entryCount(of: keyspace) }

  func end() { base.end() }

  var snapshotVersion: SnapshotVersion? { base.snapshotVersion }

  /// Calls `body` with the key of each entry of a keyspace and whether its checksum is correct.
  func forEachChecksum(in name: String, _ body: (_ key: RawSpan, _ isRight: Bool) throws -> Void) throws {
    guard let keyspace = try keyspace(named: name), let beginning = checksums.beginning(in: keyspace) else {
      return
    }
    try base.scan(keyspace, order: .stored) { key, stored in
      let isRight = (try? EntryChecksums.value(of: stored, at: key, beginning, verifies: true)) != nil
      try body(key, isRight)
      return true
    }
  }
}

/// A write transaction that adds checksums to the entries of the documents' own keyspaces.
final class ChecksummedWriteTransaction: ChecksummedReadTransaction, WriteTransaction {
  private let base: any WriteTransaction
  /// A value with its checksum, used within one call.
  @exclusivity(unchecked) private var stored = ByteBuffer()

  init(_ base: any WriteTransaction, _ checksums: EntryChecksums, verifies: Bool) {
    self.base = base
    super.init(base, checksums, verifies: verifies)
  }

  var lineage: UInt64? { get throws { try base.lineage } }
  var turn: UInt64? { base.turn }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    let keyspace = try base.createKeyspace(name, shape: shape)
    checksums.note(keyspace, name)
    return keyspace
  }

  func dropKeyspace(_ keyspace: Keyspace) throws { try base.dropKeyspace(keyspace) }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    guard let beginning = checksums.beginning(in: keyspace) else {
      return try base.put(key, value, in: keyspace)
    }
    compose(key, value, beginning)
    try base.put(key, stored.bytes.bytes, in: keyspace)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    guard let beginning = checksums.beginning(in: keyspace) else {
      return try base.insert(key, value, in: keyspace)
    }
    compose(key, value, beginning)
    return try base.insert(key, stored.bytes.bytes, in: keyspace)
  }

  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    guard let beginning = checksums.beginning(in: keyspace) else {
      return try base.append(key, value, in: keyspace)
    }
    compose(key, value, beginning)
    try base.append(key, stored.bytes.bytes, in: keyspace)
  }

  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    guard let beginning = checksums.beginning(in: keyspace) else { return try base.load(keyspace, body) }
    try base.load(keyspace) { append in
      try withoutActuallyEscaping(append) { append in
        try body { key, value in
          compose(key, value, beginning)
          try append(key, stored.bytes.bytes)
        }
      }
    }
  }

  private func compose(_ key: RawSpan, _ value: RawSpan, _ beginning: CRC32C) {
    stored.removeAll()
    stored.append(value)
    stored.append(littleEndian: EntryChecksums.checksum(key, value, beginning))
  }

  @discardableResult
  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool { try base.delete(key, in: keyspace) }

  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try base.deleteRange(range, in: keyspace)
  }
}

/// A cursor over a keyspace whose entries end with checksums.
private final class ChecksummedCursor: Cursor {
  private let base: any Cursor
  private let beginning: CRC32C
  private let verifies: Bool

  init(_ base: any Cursor, _ beginning: CRC32C, verifies: Bool) {
    self.base = base
    self.beginning = beginning
    self.verifies = verifies
  }

  func seek(_ key: RawSpan) throws -> Bool { try base.seek(key) }
  func first() throws -> Bool { try base.first() }
  func last() throws -> Bool { try base.last() }
  func next() throws -> Bool { try base.next() }
  func previous() throws -> Bool { try base.previous() }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try base.lendEntry { key, stored in
      try body(key, EntryChecksums.value(of: stored, at: key, beginning, verifies: verifies))
    }
  }
}
