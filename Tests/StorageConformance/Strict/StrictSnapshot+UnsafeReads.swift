import Storage

// The calls that hand out pointers, for as long as the protocol has them. What `get` and a cursor hand out ends at the next
// use; what a scan hands out ends when its body returns.

extension StrictSnapshot {
  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    try checkOpen()
    // The key may be what was handed out last.
    let before = gotten
    defer { before?.end() }
    gotten = nil
    guard let value = try wrapped.get(key, in: keyspace) else { return nil }
    gotten = try GuardedMemory.Copy(value)
    return gotten?.bytes
  }

  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    gotten?.end()
    gotten = nil
    try scan(keyspace, range, order: order, fetch: fetch) { key, value in
      try key.withUnsafeBytes { key in try value.withUnsafeBytes { try body(key, $0) } }
    }
  }

  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor {
    StrictUnsafeCursor(try cursor(in: keyspace, range))
  }
}

extension StrictWriter {
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try put(key.bytes, value.bytes, in: keyspace)
  }

  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
    -> Bool
  {
    try insert(key.bytes, value.bytes, in: keyspace)
  }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try append(key.bytes, value.bytes, in: keyspace)
  }

  @discardableResult
  func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool {
    try delete(key.bytes, in: keyspace)
  }
}

/// Hands out copies that end at its next move.
private final class StrictUnsafeCursor: UnsafeCursor {
  private let cursor: any Cursor
  private var key: GuardedMemory.Copy?
  private var value: GuardedMemory.Copy?

  init(_ cursor: any Cursor) { self.cursor = cursor }

  private func entry(_ move: () throws -> Bool) throws -> Entry? {
    let found = try move()
    key?.end()
    value?.end()
    guard found else { return nil }
    return try cursor.withEntry { key, value in
      let copies = (
        try key.withUnsafeBytes { try GuardedMemory.Copy($0) },
        try value.withUnsafeBytes { try GuardedMemory.Copy($0) }
      )
      (self.key, self.value) = copies
      return Entry(key: copies.0.bytes, value: copies.1.bytes)
    }
  }

  func seek(_ key: UnsafeRawBufferPointer) throws -> Entry? { try entry { try cursor.seek(key.bytes) } }
  func first() throws -> Entry? { try entry { try cursor.first() } }
  func last() throws -> Entry? { try entry { try cursor.last() } }
  func next() throws -> Entry? { try entry { try cursor.next() } }
  func previous() throws -> Entry? { try entry { try cursor.previous() } }
}
