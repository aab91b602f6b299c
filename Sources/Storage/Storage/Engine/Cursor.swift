/// A position in a range of a keyspace that moves in both directions.
///
/// The cursor stands before the first entry of its range, on an entry, or after the last one. A move returns
/// whether the cursor stands on an entry afterwards. `withEntry` lends the current entry. Several cursors may
/// lend at the same time, so that streams can be merged. A cursor can't move while it lends its entry: a move
/// throws `bytesAreLent`.
///
/// In a write transaction, a write invalidates the position. `next`, `previous` and `withEntry` then throw
/// `notOnEntry` until `seek`, `first` or `last` sets a new position. After the end of its transaction every
/// use of a cursor throws `closed`. A cursor keeps a snapshot open that nothing else refers to.
///
/// Not `Sendable`: only the thread that uses the transaction uses its cursors.
public protocol Cursor: AnyObject {
  /// Moves to the first entry of the range whose key is `key` or greater.
  func seek(_ key: RawSpan) throws -> Bool

  /// Moves to the first entry of the range.
  func first() throws -> Bool

  /// Moves to the last entry of the range.
  func last() throws -> Bool

  /// Moves to the next entry. A cursor before the first entry moves to the first entry.
  ///
  /// Returns false if there is no next entry. The cursor then stands after the last one.
  func next() throws -> Bool

  /// Moves to the previous entry. A cursor after the last entry moves to the last entry.
  ///
  /// Returns false if there is no previous entry. The cursor then stands before the first one.
  func previous() throws -> Bool

  /// Lends the current entry to `body`. Throws `notOnEntry` if the cursor stands on none.
  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws
}

extension Cursor {
  /// Lends the current entry to `body` and returns the result. Throws `notOnEntry` if the cursor stands on
  /// none.
  @inlinable @inline(__always)
  public func withEntry<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result
  {
    try lentEntry(of: self, body)
  }

  /// Moves as `seek` does and lends the entry. Returns nil if there is none.
  @inlinable @inline(__always)
  public func seek<Result>(
    _ key: RawSpan, _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try seek(key) ? withEntry(body) : nil
  }

  /// Moves as `first` does and lends the entry. Returns nil if there is none.
  @inlinable @inline(__always)
  public func first<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try first() ? withEntry(body) : nil
  }

  /// Moves as `last` does and lends the entry. Returns nil if there is none.
  @inlinable @inline(__always)
  public func last<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try last() ? withEntry(body) : nil
  }

  /// Moves as `next` does and lends the entry. Returns nil if there is none.
  @inlinable @inline(__always)
  public func next<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try next() ? withEntry(body) : nil
  }

  /// Moves as `previous` does and lends the entry. Returns nil if there is none.
  @inlinable @inline(__always)
  public func previous<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result?
  {
    try previous() ? withEntry(body) : nil
  }
}

/// Returns the result of `body` for the current entry. Not a member, for the reason given at `lentValue`.
@inlinable @inline(__always)
func lentEntry<Result>(
  of cursor: any Cursor, _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result
) throws -> Result {
  var result: Result?
  try cursor.lendEntry { result = try body($0, $1) }
  guard let result else {
    throw StorageError(.engineFailure, "the cursor of the engine returned without lending its entry")
  }
  return result
}
