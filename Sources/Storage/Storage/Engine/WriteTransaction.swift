/// The write transaction of an engine. Its reads see its own writes.
///
/// A write inside a closure that bytes of this transaction are lent to throws `bytesAreLent`. The engine
/// copies keys and values before a write returns; the caller keeps ownership of them.
public protocol WriteTransaction: ReadTransaction, FastWrites {
  /// Returns the keyspace of that name, and creates it if there is none.
  ///
  /// Throws `shapeMismatch` if the keyspace has another shape, and `tooManyKeyspaces` past
  /// `StorageLimits.maximumKeyspaces`.
  ///
  /// A name has 1 to 64 characters: ASCII letters, digits, `.`, `-` and `_`.
  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace

  /// Removes the keyspace and all its entries. Older snapshots still see it.
  func dropKeyspace(_ keyspace: Keyspace) throws

  /// Sets the value at `key`, and replaces an existing value.
  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws

  /// Sets the value at `key` if there is none. Otherwise changes nothing and returns false.
  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool

  /// Removes the entry at `key`. Returns false if there is none.
  @discardableResult
  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool

  /// Removes all entries of `range` and returns their number.
  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int

  /// Tells whether what a writer remembers of its last write transaction still holds. Nil: the engine can't
  /// tell, and nothing may be remembered.
  ///
  /// Two write transactions of one engine have the same number if each found exactly what the one before it
  /// left. The number changes when anybody else has committed in between: another process, or another engine
  /// object over the same data. It also changes when the engine has lost what a body left that didn't throw,
  /// such as by a failed commit. After a body that throws it may stay the same: the writer knows itself that
  /// its changes are undone. Engines of the same process never share a number.
  ///
  /// Default: nil. `GroupCommit` counts for engines that use it.
  var lineage: UInt64? { get throws }

  /// The number of this transaction's body among all that the engine object has run. Nil: the engine doesn't count.
  ///
  /// A writer whose last body had the number before, in the same lineage, finds exactly what it left itself: nobody else
  /// has used the engine object in between.
  ///
  /// Default: nil. `GroupCommit` counts for engines that use it.
  var turn: UInt64? { get }
}

/// Writes of sorted entries that an engine may replace with a faster implementation. The defaults use only
/// `WriteTransaction`.
public protocol FastWrites {
  /// Adds an entry whose key is greater than all others in the keyspace. Throws `outOfOrder` if the key isn't
  /// greater.
  ///
  /// Default: compares with the greatest key and calls `put`. Its `outOfOrder` names no location, because a
  /// transaction doesn't know its location.
  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws

  /// Loads many sorted entries. This is the fastest way to load.
  ///
  /// `body` passes the entries to its argument. Each key must be greater than the one before it and than all
  /// others in the keyspace. Throws `outOfOrder` as `append` does, and rethrows the error of `body`. After an
  /// error, some of the first entries may have been added.
  ///
  /// The argument copies the key and value before it returns. `body` must write only through its argument: an
  /// engine with its own way of loading throws `bytesAreLent` from any other write. Until the load returns,
  /// reads of the keyspace may or may not find the loaded entries.
  ///
  /// Default: one `append` per entry.
  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws
}

extension FastWrites where Self: WriteTransaction {
  /// Compares with the greatest key and calls `put`.
  public func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    // `contains` also throws if the keyspace can't hold the key.
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

  /// Calls `append` for each entry.
  public func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    // An empty load must also throw if the keyspace doesn't exist.
    _ = try entryCount(of: keyspace)
    try body { key, value in try append(key, value, in: keyspace) }
  }
}

extension WriteTransaction {
  /// Nil: nothing may be remembered.
  public var lineage: UInt64? { nil }
  /// Nil: the engine doesn't count.
  public var turn: UInt64? { nil }

  /// Calls `put` with arrays.
  public func put(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try put(key.span.bytes, value.span.bytes, in: keyspace)
  }
}
