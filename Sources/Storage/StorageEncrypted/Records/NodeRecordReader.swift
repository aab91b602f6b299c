import CLMDB
import Storage
import StorageLMDB

/// Reads and decrypts the records of one transaction, and keeps the recently used branches. One thread at a
/// time.
final class NodeRecordReader {
  private static let recentCount = 16

  let file: EncryptedFile
  let cipher: RecordCipher
  /// The nodes that a write transaction has changed. Nil in a snapshot.
  let changed: ChangedNodes?
  @exclusivity(unchecked) private var transaction: OpaquePointer?
  private let database: MDB_dbi
  /// Recent branches, by the low bits of their numbers.
  private let recent: UnsafeMutablePointer<Node?>
  @exclusivity(unchecked) private var hasRecent = false
  /// The path of the last read, which keeps its leaf alive.
  let path = TreePath()
  /// Whether the cache is ignored. A check reads the file itself.
  @exclusivity(unchecked) var bypassesCache = false
  /// Set while a file is opened. Then the pages on the way to a record are checked first, because nothing has
  /// checked them yet.
  @exclusivity(unchecked) var searchPathCheck: SearchPathCheck?

  init(_ file: EncryptedFile, changed: ChangedNodes? = nil) {
    self.file = file
    self.changed = changed
    cipher = RecordCipher(file.keys)
    database = file.database
    recent = .allocate(capacity: Self.recentCount)
    recent.initialize(repeating: nil, count: Self.recentCount)
  }

  deinit {
    recent.deinitialize(count: Self.recentCount)
    recent.deallocate()
  }

  /// Sets the transaction of LMDB to read from.
  func begin(_ transaction: OpaquePointer) { self.transaction = transaction }

  func end() {
    transaction = nil
    searchPathCheck = nil
    path.clear()
    forget()
  }

  /// Releases the recent branches.
  func forget() {
    guard hasRecent else { return }
    for index in 0..<Self.recentCount { recent[index] = nil }
    hasRecent = false
  }

  /// Returns the node of a reference. Throws `damaged` if it isn't at `level`.
  @inline(__always)
  func node(_ reference: Reference, level: Int) throws -> Node {
    if let changed, let node = changed.nodes[reference.number] { return node }
    if level == 0 { return try find(reference, level: level) }
    let place = Int(truncatingIfNeeded: reference.number) & (Self.recentCount - 1)
    if let node = recent[place], node.reference == reference { return node }
    let node = try find(reference, level: level)
    recent[place] = node
    hasRecent = true
    return node
  }

  private func find(_ reference: Reference, level: Int) throws -> Node {
    if !bypassesCache, let node = file.cache.find(reference) {
      guard node.level == level else { throw damaged(reference.number, "has level \(node.level)") }
      return node
    }
    return try load(reference, level: level)
  }

  @inline(never)
  private func load(_ reference: Reference, level: Int) throws -> Node {
    let node = Node(capacity: file.payloadBytes, reference: reference)
    guard let record = try record(reference.number),
      record.count == file.payloadBytes + RecordFormat.tagBytes,
      let start = record.baseAddress
    else { throw damaged(reference.number, "is missing or has the wrong size") }
    guard try cipher.open(start, count: file.payloadBytes, reference, .node, into: node.bytes) else {
      throw damaged(reference.number, "fails authentication")
    }
    guard node.isSound(), node.level == level else {
      throw damaged(reference.number, "has an invalid structure")
    }
    if !bypassesCache { file.cache.insert(node) }
    return node
  }

  /// Returns a record in LMDB's memory. It is valid until the transaction's next write or its end.
  func record(_ number: UInt64) throws -> UnsafeRawBufferPointer? {
    guard let transaction else { preconditionFailure("records are read in a transaction") }
    if let searchPathCheck { try searchPathCheck.check(RecordFormat.key(of: number)) }
    var bigEndian = number.bigEndian
    return try withUnsafeMutableBytes(of: &bigEndian) { key in
      var key = MDB_val(UnsafeRawBufferPointer(key))
      var value = MDB_val()
      let result = mdb_get(transaction, database, &key, &value)
      if result == 0 { return UnsafeRawBufferPointer(found: value) }
      if result == MDB_NOTFOUND { return nil }
      throw StorageError.lmdb(result, "record \(number) could not be read", path: file.path)
    }
  }

  /// Reads a value from its chunks.
  func large(_ reference: Reference, count: Int) throws -> LargeValue {
    let chunks = ChunkLayout(count: count, payloadBytes: file.payloadBytes)
    guard count <= StorageLimits.maximumValueBytes else {
      throw damaged(reference.number, "begins a value with the impossible size of \(count) bytes")
    }
    let value = LargeValue(count: count, capacity: chunks.totalBytes)
    for index in 0..<chunks.count {
      let chunk = Reference(
        number: reference.number &+ UInt64(index), seal: reference.seal.advanced(by: index))
      let size = chunks.bytes(of: index)
      guard let record = try record(chunk.number), record.count == size + RecordFormat.tagBytes,
        let start = record.baseAddress
      else { throw damaged(chunk.number, "is missing or has the wrong size") }
      let output = value.bytes + index * file.payloadBytes
      guard try cipher.open(start, count: size, chunk, .chunk, into: output) else {
        throw damaged(chunk.number, "fails authentication")
      }
    }
    return value
  }

  @inline(never)
  func damaged(_ number: UInt64, _ what: String) -> StorageError {
    StorageError(
      .damaged, "record \(number) of the encrypted file \(what), so it was damaged or replaced",
      path: file.path)
  }
}
