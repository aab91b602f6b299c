/// The one write transaction of an engine: reads see its own writes.
///
/// A write inside a closure that bytes of this transaction are lent to throws `bytesAreLent`. Keys and values that are
/// written are the caller's: the engine copies them before the call returns.
public protocol WriteTransaction: ReadTransaction {
  /// The keyspace of that name, made when there is none. Throws `shapeMismatch` when it has another shape
  /// and `tooManyKeyspaces` past `StorageLimits.maximumKeyspaces`.
  ///
  /// Names are 1 to 64 of the ASCII letters, digits, `.`, `-` and `_`.
  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace

  /// Removes the keyspace and all its entries. Snapshots that see it go on seeing it.
  func dropKeyspace(_ keyspace: Keyspace) throws

  /// Sets the value at `key`, whether there was one or not.
  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws

  /// Sets the value at `key` if there is none. False, and nothing changed, when there is one.
  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool

  /// Adds an entry whose key is greater than all others in the keyspace: the fast way to load sorted data.
  /// Throws `outOfOrder` when it isn't greater.
  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws

  /// Adds the entries that `body` hands to its argument, each with a key greater than the one before it and than all others in
  /// the keyspace: the fast way to load many. Throws `outOfOrder` as `append` does; some may have been added then.
  ///
  /// Keys and values are copied before a call of the argument returns. Until `body` has returned, a write by any other call
  /// throws `bytesAreLent`, and whether reads of the keyspace find what was handed over is left open.
  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws

  /// Removes the entry at `key`. False when there was none.
  @discardableResult
  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool

  /// Removes all entries of `range`, and returns how many there were.
  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int
}

extension WriteTransaction {
  /// `put` with arrays.
  public func put(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try put(key.span.bytes, value.span.bytes, in: keyspace)
  }
}
