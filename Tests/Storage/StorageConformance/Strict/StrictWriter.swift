import Storage

/// The write transaction of a `StrictEngine`.
final class StrictWriter: StrictSnapshot, WriteTransaction {
  private let writer: any WriteTransaction
  /// The number of times that the strict engine has undone what a body had left.
  private let losses: UInt64

  init(_ writer: any WriteTransaction, path: String, losses: UInt64) {
    self.writer = writer
    self.losses = losses
    super.init(writer, path: path)
  }

  /// Does nothing. The engine ends the transaction.
  override func end() {}

  var lineage: UInt64? {
    get throws {
      try checkOpen()
      return try writer.lineage.map { $0 &+ losses << 32 }
    }
  }

  var turn: UInt64? { writer.turn }

  /// Checks that a write is allowed, and counts it. A failed write counts too, because it may have changed
  /// something.
  func beginWrite() throws -> any WriteTransaction {
    try checkOpen()
    guard lent == 0 else {
      throw StorageError(
        .bytesAreLent, "a write inside a closure that bytes of its transaction are lent to", path: path)
    }
    writes += 1
    return writer
  }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try beginWrite().createKeyspace(name, shape: shape)
  }

  func dropKeyspace(_ keyspace: Keyspace) throws { try beginWrite().dropKeyspace(keyspace) }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let writer = try beginWrite()
    try GuardedMemory.withCopies(of: key, value) { try writer.put($0, $1, in: keyspace) }
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let writer = try beginWrite()
    return try GuardedMemory.withCopies(of: key, value) { try writer.insert($0, $1, in: keyspace) }
  }

  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let writer = try beginWrite()
    try GuardedMemory.withCopies(of: key, value) { try writer.append($0, $1, in: keyspace) }
  }

  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    let writer = try beginWrite()
    lent += 1
    defer { lent -= 1 }
    try writer.load(keyspace) { append in
      try withoutActuallyEscaping(append) { append in
        try body { key, value in
          guard lent == 1 else {
            throw StorageError(.bytesAreLent, "a write while bytes are lent to a closure", path: path)
          }
          writes += 1
          try GuardedMemory.withCopies(of: key, value, append)
        }
      }
    }
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let writer = try beginWrite()
    return try GuardedMemory.withCopy(of: key) { try writer.delete($0, in: keyspace) }
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite().deleteRange(range, in: keyspace)
  }
}
