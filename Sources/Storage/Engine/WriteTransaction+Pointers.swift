extension WriteTransaction {
  /// `put` of bytes that a pointer leads to, which stay until it returns.
  @inlinable
  public func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace)
    throws
  {
    try put(key.bytes, value.bytes, in: keyspace)
  }

  /// `insert` of bytes that a pointer leads to, which stay until it returns.
  @inlinable
  public func insert(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws -> Bool {
    try insert(key.bytes, value.bytes, in: keyspace)
  }

  /// `append` of bytes that a pointer leads to, which stay until it returns.
  @inlinable
  public func append(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace
  ) throws {
    try append(key.bytes, value.bytes, in: keyspace)
  }

  /// `delete` of a key that a pointer leads to, which stays until it returns.
  @inlinable
  @discardableResult
  public func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool {
    try delete(key.bytes, in: keyspace)
  }
}
