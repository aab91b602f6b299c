import Storage

/// What snapshots and write transactions of an encrypted file share: their reads.
///
/// Bytes are lent from decrypted nodes and from values put together from their chunks. The read that lends holds a
/// reference to the object, so what is read meanwhile may throw it out of the cache and doesn't end its life. A write
/// transaction changes nodes in place, so a write throws `bytesAreLent` while any are lent.
class EncryptedTransaction: LendingTransaction {
  let file: EncryptedFile
  let reader: RecordReader

  init(_ file: EncryptedFile, _ reader: RecordReader) {
    self.file = file
    self.reader = reader
    super.init(file.environment, isOpen: true)
  }

  // MARK: What the two do differently

  /// The keyspaces as this transaction sees them now.
  var table: KeyspaceTable { KeyspaceTable() }

  /// Counts the writes: each leaves all cursors nowhere.
  var writes: Int { 0 }

  /// The tree of a keyspace that is there.
  func tree(of keyspace: Keyspace) throws -> Tree { throw environment.noSuchKeyspace(keyspace) }

  // MARK: Reading

  final func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return table.item(named: name)?.keyspace
  }

  final func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return table.keyspaces
  }

  final func entryCount(of keyspace: Keyspace) throws -> EntryCount { .exact(try tree(of: keyspace).count) }

  final func read(
    _ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void
  ) throws -> Bool {
    guard let (leaf, index) = try key.withUnsafeBytes({ try find($0, in: keyspace) }) else { return false }
    beginLending()
    defer { endLending() }
    switch leaf.value(index) {
    case .inline(let value): try withExtendedLifetime(leaf) { try body(value.bytes) }
    case .large(let reference, let count):
      let value = try reader.large(reference, count: count)
      try withExtendedLifetime(value) { try body(value.contents.bytes) }
    }
    return true
  }

  /// The leaf that holds a key, and where.
  @inline(__always)
  private final func find(
    _ key: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws -> (leaf: Node, index: Int)? {
    let tree = try tree(of: keyspace)
    if !keyspace.takes(key) { throw environment.invalidKey(key, keyspace) }
    let path = reader.path
    guard try path.descend(tree, to: key, reader) else { return nil }
    return (path.leafNode, path.index)
  }

  final func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    let tree = try tree(of: keyspace)
    beginLending()
    defer { endLending() }
    try TreeScan(tree: tree, reader: reader, fetch: fetch).run(range, order, body)
  }

  final func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    _ = try tree(of: keyspace)
    return EncryptedCursor(keyspace, range, self)
  }
}
