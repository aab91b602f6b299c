import Storage

// The calls by pointer, until they go from the protocol. Nobody reads documents by them.

extension ChecksummedReadTransaction {
  private var refused: StorageError { StorageError(.unsupported, "documents aren't read by pointers") }
  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    throw refused
  }
  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws { throw refused }
  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor { throw refused }
}

extension ChecksummedWriteTransaction {
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
