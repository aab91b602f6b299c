/// A snapshot of an engine: the state of the last commit before the snapshot began.
///
/// **Lifetimes.** Reads lend their bytes to a closure. The bytes stay valid until that closure returns. Other
/// reads on the same transaction don't change this: reads, scans, follows and cursors may be nested to any
/// depth, in any keyspace. The compiler enforces the lifetime, because a `RawSpan` can't escape from its
/// closure. Copy the bytes to keep them longer. Every engine gives exactly this guarantee.
///
/// **Writes.** In a write transaction, a closure that holds lent bytes can't write. `put`, `delete` and the
/// other writes throw `bytesAreLent` until it returns.
///
/// **Concurrency.** Not `Sendable`: one thread at a time.
///
/// **Errors.** Reads throw `StorageError`. The snapshot stays usable after a failed read. If the engine
/// limits the age of snapshots, reads past that age throw `snapshotExpired`. An error thrown by a closure
/// ends the read and is rethrown.
public protocol ReadTransaction: AnyObject, FastReads {
  /// Returns the keyspace of that name in this snapshot, or nil.
  func keyspace(named name: String) throws -> Keyspace?

  /// Returns all keyspaces of this snapshot, by name.
  func keyspaces() throws -> [String: Keyspace]

  /// Lends the value at `key` to `body`. Returns false, without calling `body`, if there is no value.
  ///
  /// Throws `invalidKey` for a key that the keyspace can't hold.
  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool

  /// Lends each entry of `range` to `body`, in `order`, until `body` returns false.
  ///
  /// With `fetch: .keys` the values are empty. Engines that can skip reading the values do so.
  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool) throws

  /// Returns a cursor over `range`. It stands before the first entry.
  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor

  /// Returns the number of entries in the keyspace, as the engine knows it in constant time. See
  /// `count(of:)`.
  func entryCount(of keyspace: Keyspace) throws -> EntryCount

  /// Ends the snapshot. A second call does nothing. Later reads throw `closed`.
  ///
  /// In the body of a `write` this call does nothing; the engine ends that transaction.
  func end()
}

/// Reads that an engine may replace with a faster implementation. The defaults use only `ReadTransaction`.
public protocol FastReads {
  /// Lends the values of several keys to `body`, in the order of the keys, until `body` returns false.
  ///
  /// Keys without a value are skipped. `index` is the position of the key in `keys`.
  ///
  /// Default: one `read` per key. An engine behind a network requests all values at once.
  func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool) throws

  /// Scans `range` of one keyspace and reads, for each entry, the entry of `target` that it refers to. An
  /// index lookup of documents is the typical use.
  ///
  /// `reference` gets each entry and returns the position of the other key in it. `body` gets the entry and
  /// the value found in `target`. Keys that `target` lacks are skipped. The scan ends when `reference`
  /// returns `end` or `body` returns false. All bytes lent to `body` stay valid until it returns.
  ///
  /// Default: a `scan` with a `read` for each entry.
  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool) throws

  /// The version of the data that the snapshot reads, if the engine knows it without reading anything. Nil in a
  /// write transaction, and after the end of the snapshot.
  ///
  /// What was found in one snapshot is used in another one with the same version. So an engine that can't be
  /// sure returns nil.
  ///
  /// Default: nil.
  var snapshotVersion: SnapshotVersion? { get }
}

extension FastReads where Self: ReadTransaction {
  /// Nil: the version isn't known.
  public var snapshotVersion: SnapshotVersion? { nil }

  /// Calls `read` for each key.
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

  /// Calls `followByReading`.
  @inlinable
  public func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    try followByReading(keyspace, range, order: order, into: target, reference: reference, body)
  }

  /// Implements `follow` with a scan and one `read` per entry. Engines that are faster only on some keyspaces
  /// use it for the others.
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
  /// Lends the value at `key` to `body` and returns the result. Returns nil, without calling `body`, if there
  /// is no value.
  @inlinable @inline(__always)
  public func withValue<Result>(
    at key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try lentValue(of: self, at: key, in: keyspace, body)
  }

  /// Calls `withValue(at:in:_:)` with a key in an array.
  @inlinable @inline(__always)
  public func withValue<Result>(
    at key: [UInt8], in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try withValue(at: key.span.bytes, in: keyspace, body)
  }

  /// Returns the exact number of entries. Takes constant time if the engine counts exactly; otherwise it
  /// scans the keys.
  public func count(of keyspace: Keyspace) throws -> Int {
    if case .exact(let count) = try entryCount(of: keyspace) { return count }
    var count = 0
    try scan(keyspace, .all, order: .stored, fetch: .keys) { _, _ in
      count += 1
      return true
    }
    return count
  }

  /// Returns whether the keyspace has any entry. Takes constant time.
  public func hasEntries(_ keyspace: Keyspace) throws -> Bool {
    if case .exact(let count) = try entryCount(of: keyspace) { return count > 0 }
    var found = false
    try scan(keyspace, .all, order: .stored, fetch: .keys) { _, _ in
      found = true
      return false
    }
    return found
  }

  /// Returns whether there is a value at `key`.
  @inlinable
  public func contains(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try read(key, in: keyspace) { _ in }
  }

  /// Returns a copy of the value at `key`, or nil. Use it for small values outside hot paths.
  public func bytes(at key: RawSpan, in keyspace: Keyspace) throws -> [UInt8]? {
    try withValue(at: key, in: keyspace) { [UInt8](copying: $0) }
  }

  /// Returns a copy of the value at `key`, or nil. Use it for small values outside hot paths.
  public func bytes(_ key: [UInt8], in keyspace: Keyspace) throws -> [UInt8]? {
    try bytes(at: key.span.bytes, in: keyspace)
  }

  /// Scans keys and values. See `scan(_:_:order:fetch:_:)`.
  @inlinable
  public func scan(
    _ keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: .entries, body)
  }
}

/// Returns the result of `body` for a value.
///
/// This isn't a member because a closure in a member is generic over the transaction's type. That type is
/// known only at run time. The closure couldn't be specialised, and each call would look up the metadata of
/// its result.
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
  /// Throws `invalidArgument` unless the range lies within `bytes`.
  @inlinable
  func check(in bytes: RawSpan) throws {
    guard lowerBound >= 0, upperBound <= bytes.byteCount else {
      throw StorageError(
        .invalidArgument, "a reference names the bytes \(self) of an entry of \(bytes.byteCount) bytes")
    }
  }
}

/// The position of the other key in an entry, for `FastReads.follow`.
@frozen
public enum ScanReference {
  /// The other key is these bytes of the entry's key.
  case inKey(Range<Int>)
  /// The other key is these bytes of the entry's value.
  case inValue(Range<Int>)
  /// The entry refers to no wanted entry. The scan continues.
  case none
  /// The entry refers to no wanted entry. The scan ends.
  case end
}
