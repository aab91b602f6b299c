/// One snapshot of an engine: the state of the last commit before it began.
///
/// **Lifetimes.** Whatever reads lends its bytes to a closure. They stay valid until that closure returns, whatever
/// else is read meanwhile on the same transaction: other values, scans, follows and cursors, nested to any depth, in
/// any keyspace. The compiler holds this: a `RawSpan` can't leave the closure that it is lent to. What has to outlive
/// the closure is copied. No engine promises more or less.
///
/// **Writes.** In a write transaction a closure that holds lent bytes can't write: `put`, `delete` and the other
/// writes throw `bytesAreLent` until it returns.
///
/// **Concurrency.** Not `Sendable`: one thread at a time.
///
/// **Errors.** `StorageError`. A failed read leaves the snapshot usable. An engine whose snapshots have a limited age
/// throws `snapshotExpired` past it. What a closure throws ends the read and is rethrown.
public protocol ReadTransaction: AnyObject, FastReads {
  /// The keyspace of that name in this snapshot, or nil.
  func keyspace(named name: String) throws -> Keyspace?

  /// All keyspaces of this snapshot, by name.
  func keyspaces() throws -> [String: Keyspace]

  /// Lends the value at `key` to `body`. False, and `body` isn't called, when there is none.
  ///
  /// Throws `invalidKey` for a key that the keyspace can't hold.
  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool

  /// Lends each entry of `range` to `body`, in `order`, until it returns false.
  ///
  /// With `fetch: .keys` the value is empty, and engines that can leave it unread do.
  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool) throws

  /// A cursor over `range`, which stands before its first entry.
  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor

  /// How many entries the keyspace has, as the engine knows it in constant time. See `count(of:)`.
  func entryCount(of keyspace: Keyspace) throws -> EntryCount

  /// Ends a snapshot. A second call does nothing. Later reads throw `closed`.
  ///
  /// The engine ends the transaction of a `write` body. This call then does nothing.
  func end()
}

/// Reads that an engine may do faster than the loops over the core which stand in for them.
public protocol FastReads {
  /// Lends the values of several keys to `body`, in the order of the keys, until it returns false. Keys without a
  /// value are passed over. `index` is the key's place in `keys`.
  ///
  /// Default: a `read` for each key. An engine behind a network asks for all of them at once.
  func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool) throws

  /// Scans `range` of one keyspace and goes on from each entry to the entry of `target` that it refers to: from an
  /// index to its documents.
  ///
  /// Calls `reference` with each entry, which says where in the entry the other key lies. Calls `body` with the entry
  /// and the value found; a key that `target` lacks is passed over. Ends when `reference` says `end` or `body` returns
  /// false. All bytes lent to `body` stay valid until it returns.
  ///
  /// Default: a `scan`, and a `read` inside of it.
  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool) throws
}

extension FastReads where Self: ReadTransaction {
  /// A `read` for each key.
  @inlinable
  public func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool
  ) throws {
    var goesOn = true
    for index in 0..<keys.count {
      _ = try read(keys[index], in: keyspace) { goesOn = try body(index, $0) }
      if !goesOn { return }
    }
  }

  /// `followByReading`.
  @inlinable
  public func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    try followByReading(keyspace, range, order: order, into: target, reference: reference, body)
  }

  /// `follow` by a scan and a `read` for each entry: for engines that have a faster way for some keyspaces only.
  @inlinable
  public func followByReading(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: .entries) { key, value in
      var goesOn = true
      switch try reference(key, value) {
      case .end: return false
      case .none: return true
      case .inKey(let place):
        try place.check(in: key)
        _ = try read(key.extracting(place), in: target) { goesOn = try body(key, value, $0) }
      case .inValue(let place):
        try place.check(in: value)
        _ = try read(value.extracting(place), in: target) { goesOn = try body(key, value, $0) }
      }
      return goesOn
    }
  }
}

extension ReadTransaction {
  /// Lends the value at `key` to `body` and returns what that returns; nil, and `body` isn't called, when there is no
  /// value.
  @inlinable @inline(__always)
  public func withValue<Result>(
    at key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try lentValue(of: self, at: key, in: keyspace, body)
  }

  /// `withValue(at:in:_:)` for a key in an array.
  @inlinable @inline(__always)
  public func withValue<Result>(
    at key: [UInt8], in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try withValue(at: key.span.bytes, in: keyspace, body)
  }

  /// How many entries the keyspace has, exactly: in constant time where the engine counts, else by a scan of the keys.
  public func count(of keyspace: Keyspace) throws -> Int {
    if case .exact(let count) = try entryCount(of: keyspace) { return count }
    var count = 0
    try scan(keyspace, .all, order: .stored, fetch: .keys) { _, _ in
      count += 1
      return true
    }
    return count
  }

  /// Whether the keyspace has any entry: in constant time.
  public func hasEntries(_ keyspace: Keyspace) throws -> Bool {
    if case .exact(let count) = try entryCount(of: keyspace) { return count > 0 }
    var found = false
    try scan(keyspace, .all, order: .stored, fetch: .keys) { _, _ in
      found = true
      return false
    }
    return found
  }

  /// Whether there is a value at `key`.
  @inlinable
  public func contains(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try read(key, in: keyspace) { _ in }
  }

  /// A copy of the value at `key`, or nil. For small things away from hot paths.
  public func bytes(at key: RawSpan, in keyspace: Keyspace) throws -> [UInt8]? {
    try withValue(at: key, in: keyspace) { [UInt8](copying: $0) }
  }

  /// A copy of the value at `key`, or nil. For small things away from hot paths.
  public func bytes(_ key: [UInt8], in keyspace: Keyspace) throws -> [UInt8]? {
    try bytes(at: key.span.bytes, in: keyspace)
  }

  /// `scan` over whole entries.
  @inlinable
  public func scan(
    _ keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: .entries, body)
  }
}

/// What `body` makes of a value.
///
/// Not a member: a closure in a member is generic over the type of the transaction. That is known at run time alone, so
/// the closure couldn't be specialised, and each call would look up the metadata of its result.
@inlinable @inline(__always)
func lentValue<Result>(
  of transaction: any ReadTransaction, at key: RawSpan, in keyspace: Keyspace,
  _ body: (_ value: RawSpan) throws -> Result
) throws -> Result? {
  var result: Result?
  _ = try transaction.read(key, in: keyspace) { result = try body($0) }
  return result
}

extension Range<Int> {
  /// Throws `invalidArgument` unless an entry's key or value has these bytes.
  @inlinable
  func check(in bytes: RawSpan) throws {
    guard lowerBound >= 0, upperBound <= bytes.byteCount else {
      throw StorageError(
        .invalidArgument, "a reference to bytes \(self) of an entry that has \(bytes.byteCount)")
    }
  }
}

/// Where an entry says which entry of another keyspace it refers to (`FastReads.follow`).
@frozen
public enum ScanReference {
  /// The other key is these bytes of the entry's key.
  case inKey(Range<Int>)
  /// The other key is these bytes of the entry's value.
  case inValue(Range<Int>)
  /// The entry refers to nothing that is wanted.
  case none
  /// The entry refers to nothing, and no more entries are wanted.
  case end
}
