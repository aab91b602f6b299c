/// The one write transaction of an engine: reads see its own writes.
///
/// A write inside a closure that bytes of this transaction are lent to throws `bytesAreLent`. Keys and values that are
/// written are the caller's: the engine copies them before the call returns.
public protocol WriteTransaction: ReadTransaction, FastWrites {
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

  /// Removes the entry at `key`. False when there was none.
  @discardableResult
  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool

  /// Removes all entries of `range`, and returns how many there were.
  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int
}

/// Writes of sorted entries that an engine may do faster than the loops over the core which stand in for them.
public protocol FastWrites {
  /// Adds an entry whose key is greater than all others in the keyspace. Throws `outOfOrder` when it isn't greater.
  ///
  /// Default: a look at the greatest key, and a `put`. Its `outOfOrder` names no location, since a transaction knows none.
  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws

  /// Adds the entries that `body` hands to its argument, each with a key greater than the one before it and than all others in
  /// the keyspace: the fast way to load many. Throws `outOfOrder` as `append` does, and what `body` throws; some of the entries
  /// may have been added then, the first ones handed over.
  ///
  /// Keys and values are copied before a call of the argument returns. `body` writes by its argument alone: an engine that
  /// loads in a way of its own throws `bytesAreLent` from any other write. Whether reads of the keyspace find what was handed
  /// over is left open until the load has returned.
  ///
  /// Default: an `append` for each.
  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws
}

extension FastWrites where Self: WriteTransaction {
  /// A look at the greatest key, and a `put`.
  public func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    // Also throws when the keyspace can't hold the key.
    var isGreatest = try !contains(key, in: keyspace)
    try scan(keyspace, .all, order: .descending, fetch: .keys) { last, _ in
      isGreatest = isGreatest && last.compare(key) < 0
      return false
    }
    guard isGreatest else {
      throw StorageError(.outOfOrder, "an appended key isn't greater than all others")
    }
    try put(key, value, in: keyspace)
  }

  /// An `append` for each.
  public func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    // A load of nothing throws as well when the keyspace isn't there.
    _ = try entryCount(of: keyspace)
    try body { key, value in try append(key, value, in: keyspace) }
  }
}

extension WriteTransaction {
  /// `put` with arrays.
  public func put(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try put(key.span.bytes, value.span.bytes, in: keyspace)
  }
}
