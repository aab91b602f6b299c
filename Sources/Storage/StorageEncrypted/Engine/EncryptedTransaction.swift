import Storage
import StorageLMDB

/// The base class of snapshots and write transactions of an encrypted file. It implements their reads.
///
/// Bytes are lent from decrypted nodes and from values assembled from their chunks. The lending read holds a
/// reference to the object. Other reads may evict the object from the cache, but it stays alive. A write
/// transaction changes nodes in place, so a write throws `bytesAreLent` while bytes are lent.
class EncryptedTransaction: LendingTransaction {
  let file: EncryptedFile
  let reader: NodeRecordReader
  final unowned(unsafe) let environment: Environment
  @exclusivity(unchecked) final var isOpen = true
  @exclusivity(unchecked) final var lent = 0

  init(_ file: EncryptedFile, _ reader: NodeRecordReader) {
    self.file = file
    self.reader = reader
    environment = file.environment
  }

  // MARK: Overridden by subclasses

  func returned() {}

  /// The keyspaces as this transaction sees them now.
  var table: KeyspaceTable { KeyspaceTable() }

  /// The number of writes. Each write makes all cursor positions invalid.
  var writes: Int { 0 }

  /// Returns the tree of a keyspace. Throws `noSuchKeyspace` if it doesn't exist.
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

  /// Returns the leaf that holds a key, and the index in the leaf.
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
