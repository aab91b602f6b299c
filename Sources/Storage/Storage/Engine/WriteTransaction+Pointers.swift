extension WriteTransaction {
  /// Calls `put` with bytes at pointers. The bytes must stay valid until it returns.
  @inlinable
  public func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace)
    throws
  {
    try put(key.bytes, value.bytes, in: keyspace)
  }

  /// Calls `insert` with bytes at pointers. The bytes must stay valid until it returns.
  @inlinable
  public func insert(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws -> Bool {
    try insert(key.bytes, value.bytes, in: keyspace)
  }

  /// Calls `append` with bytes at pointers. The bytes must stay valid until it returns.
  @inlinable
  public func append(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws {
    try append(key.bytes, value.bytes, in: keyspace)
  }

  /// Calls `delete` with a key at a pointer. The bytes must stay valid until it returns.
  @inlinable
  @discardableResult
  public func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool {
    try delete(key.bytes, in: keyspace)
  }
}
