import Storage

// The calls that hand out pointers, for as long as the protocol has them.

extension MemorySnapshot {
  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    try record(at: key, in: keyspace)?.value
  }

  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: fetch) { key, value in
      try key.withUnsafeBytes { key in try value.withUnsafeBytes { try body(key, $0) } }
    }
  }

  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor {
    EscapingCursor(try cursor(in: keyspace, range))
  }
}

extension MemoryWriter {
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
