import Storage
import StorageLMDB

/// The write transaction of an encrypted file, or the part of a member.
final class EncryptedWriteTransaction: EncryptedTransaction, WriteTransaction {
  let write: EncryptedWrite
  /// The first failure within a change. The transaction can't be committed after it.
  private(set) var failure: StorageError?

  init(_ write: EncryptedWrite) {
    self.write = write
    super.init(write.file, write.reader)
  }

  func bodyEnded() {
    isOpen = false
    reader.path.clear()
  }

  func end() {}

  var lineage: UInt64? { file.environment.queue.lineage }
  var turn: UInt64? { file.environment.queue.turn }

  override var table: KeyspaceTable { write.table }

  override var writes: Int { write.changes }

  override func tree(of keyspace: Keyspace) throws -> Tree { write.table[try place(of: keyspace)] }

  @inline(__always)
  private func place(of keyspace: Keyspace) throws -> Int {
    try checkOpen()
    guard let place = write.table.place(of: keyspace.number) else {
      throw file.environment.noSuchKeyspace(keyspace)
    }
    return place
  }

  // MARK: Writing

  /// Returns the place of a keyspace to be changed.
  @inline(__always)
  private func changeablePlace(of keyspace: Keyspace) throws -> Int {
    if lendsBytes { throw lentBytes("a write") }
    let place = try place(of: keyspace)
    write.beginChange()
    return place
  }

  @inline(__always)
  private func changeablePlace(of keyspace: Keyspace, for key: UnsafeRawBufferPointer) throws -> Int {
    let place = try changeablePlace(of: keyspace)
    if !keyspace.takes(key) { throw file.environment.invalidKey(key, keyspace) }
    return place
  }

  /// Runs a change. A failed change leaves the trees in an inconsistent state.
  @inline(__always)
  private func change<Result>(_ body: () throws -> Result) throws -> Result {
    if let failure { throw failure }
    do { return try body() } catch {
      failure = error as? StorageError ?? file.error(.engineFailure, "a change failed: \(error)")
      throw error
    }
  }

  @inline(__always)
  private func checkSize(_ value: UnsafeRawBufferPointer) throws {
    if value.count > StorageLimits.maximumValueBytes { throw file.environment.valueTooLarge(value.count) }
  }

  private func store(_ key: RawSpan, _ value: RawSpan, _ mode: PutMode, in keyspace: Keyspace) throws -> Bool
  {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { value in
        let place = try changeablePlace(of: keyspace, for: key)
        try checkSize(value)
        return try change { try write.put(key, value, mode, at: place) }
      }
    }
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    _ = try store(key, value, .replace, in: keyspace)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try store(key, value, .keep, in: keyspace)
  }

  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    guard try store(key, value, .append, in: keyspace) else {
      throw file.error(.outOfOrder, "an appended key isn't greater than all others of its keyspace")
    }
  }

  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    _ = try changeablePlace(of: keyspace)
    beginLending()
    defer { endLending() }
    try body { key, value in
      // Only this load may write. Bytes lent elsewhere still block the write.
      endLending()
      defer { beginLending() }
      try append(key, value, in: keyspace)
    }
  }

  @discardableResult
  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { key in
      let place = try changeablePlace(of: keyspace, for: key)
      return try change { try write.delete(key, at: place) }
    }
  }

  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    let place = try changeablePlace(of: keyspace)
    return try change {
      if range == .all {
        let count = write.table[place].count
        try write.clear(at: place)
        return count
      }
      return try KeyBound.with(range.lower) { lower in
        try KeyBound.with(range.upper) { upper in try write.deleteRange(lower, upper, at: place) }
      }
    }
  }

  // MARK: Keyspaces

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try checkOpen()
    try KeyspaceName.check(name, path: file.environment.path)
    if let found = write.table.item(named: name)?.keyspace {
      guard found.shape == shape else {
        throw file.error(.shapeMismatch, "keyspace \(name) has shape \(found.shape), not \(shape)")
      }
      return found
    }
    guard write.table.items.count < StorageLimits.maximumKeyspaces else {
      throw file.error(
        .tooManyKeyspaces,
        "keyspace \(name) can't be made: there are \(StorageLimits.maximumKeyspaces) keyspaces, the maximum")
    }
    if lendsBytes { throw lentBytes("a write") }
    if let failure { throw failure }
    let keyspace = Keyspace(number: write.nextKeyspace, shape: shape)
    write.nextKeyspace += 1
    write.table.add(KeyspaceTable.Item(name: name, keyspace: keyspace, tree: Tree()))
    write.noteChange()
    return keyspace
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    let place = try changeablePlace(of: keyspace)
    try change {
      try write.clear(at: place)
      write.table.remove(at: place)
      write.noteChange()
    }
  }
}
