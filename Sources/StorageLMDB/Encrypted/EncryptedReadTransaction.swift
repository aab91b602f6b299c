import CLMDB
import Storage

/// A snapshot of an encrypted file: one of LMDB's, and the root that it holds.
final class EncryptedReadTransaction: ReadTransaction {
  let file: EncryptedFile
  private let snapshot: LMDBReadTransaction
  let reader: RecordReader
  let state: FileState
  @exclusivity(unchecked) private(set) var isOpen = true
  /// What the last `get` handed out.
  @exclusivity(unchecked) private var lastValue: LargeValue?

  init(_ file: EncryptedFile, _ snapshot: LMDBReadTransaction, _ reader: RecordReader, _ state: FileState) {
    self.file = file
    self.snapshot = snapshot
    self.reader = reader
    self.state = state
  }

  deinit { end() }

  func end() {
    guard isOpen else { return }
    isOpen = false
    lastValue = nil
    file.giveBack(reader)
    snapshot.end()
  }

  /// The transaction of LMDB below.
  var transaction: OpaquePointer { snapshot.slot.transaction }
  var outer: LMDBReadTransaction { snapshot }

  @inline(__always)
  private func tree(of keyspace: Keyspace) throws -> Tree {
    precondition(isOpen, "a snapshot was used after its end")
    guard let place = state.table.place(of: keyspace.number) else {
      throw file.environment.noSuchKeyspace(keyspace)
    }
    return state.table[place]
  }

  func keyspace(named name: String) throws -> Keyspace? {
    precondition(isOpen, "a snapshot was used after its end")
    return state.table.item(named: name)?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    precondition(isOpen, "a snapshot was used after its end")
    return state.table.keyspaces
  }

  func count(of keyspace: Keyspace) throws -> Int { try tree(of: keyspace).count }

  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    let tree = try tree(of: keyspace)
    if !keyspace.takes(key) { throw file.environment.invalidKey(key, keyspace) }
    let path = reader.path
    guard try path.descend(tree, to: key, reader) else { return nil }
    switch path.leafNode.value(path.index) {
    case .inline(let value): return value
    case .large(let reference, let count):
      let value = try reader.large(reference, count: count)
      lastValue = value
      return value.contents
    }
  }

  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let tree = try tree(of: keyspace)
    try TreeScan(tree: tree, reader: reader, fetch: fetch, writes: nil).run(range, order, body)
  }

  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor {
    EncryptedCursor(try tree(of: keyspace), range, reader, owner: self)
  }
}
