/// A place in a keyspace that moves both ways within a range.
///
/// It stands before the first entry of its range, on an entry, or after the last one. A move says whether the cursor
/// stands on an entry afterwards. `withEntry` lends the entry it stands on; several cursors lend at once, so that
/// streams can be merged. While a cursor lends its entry it can't move: a move throws `bytesAreLent`.
///
/// In a write transaction a write leaves a cursor nowhere: it has to be placed anew by `seek`, `first` or `last`, and
/// until then `next`, `previous` and `withEntry` throw `notOnEntry`. After its transaction has ended every use throws
/// `closed`.
///
/// Not `Sendable`: it is used by the thread that uses its transaction.
public protocol Cursor: AnyObject {
  /// Moves to the first entry of the range whose key is `key` or greater.
  func seek(_ key: RawSpan) throws -> Bool

  /// Moves to the first entry of the range.
  func first() throws -> Bool

  /// Moves to the last entry of the range.
  func last() throws -> Bool

  /// Moves to the next entry: the first when the cursor stands before it. False, and then after the last, when there is
  /// none.
  func next() throws -> Bool

  /// Moves to the previous entry: the last when the cursor stands after it. False, and then before the first, when
  /// there is none.
  func previous() throws -> Bool

  /// Lends the entry that the cursor stands on. Throws `notOnEntry` when it stands on none.
  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws
}

extension Cursor {
  /// Lends the entry that the cursor stands on, and returns what `body` returns. Throws `notOnEntry` when it stands on
  /// none.
  @inlinable @inline(__always)
  public func withEntry<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result
  {
    try lentEntry(of: self, body)
  }

  /// Moves as `seek` does, and lends the entry; nil when there is none.
  @inlinable @inline(__always)
  public func seek<Result>(
    _ key: RawSpan, _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result
  ) throws -> Result? {
    try seek(key) ? withEntry(body) : nil
  }

  /// Moves as `first` does, and lends the entry; nil when there is none.
  @inlinable @inline(__always)
  public func first<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try first() ? withEntry(body) : nil
  }

  /// Moves as `last` does, and lends the entry; nil when there is none.
  @inlinable @inline(__always)
  public func last<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try last() ? withEntry(body) : nil
  }

  /// Moves as `next` does, and lends the entry; nil when there is none.
  @inlinable @inline(__always)
  public func next<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result? {
    try next() ? withEntry(body) : nil
  }

  /// Moves as `previous` does, and lends the entry; nil when there is none.
  @inlinable @inline(__always)
  public func previous<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result?
  {
    try previous() ? withEntry(body) : nil
  }
}

/// What `body` makes of the entry that a cursor stands on. Not a member, as `lentValue` isn't.
@inlinable @inline(__always)
func lentEntry<Result>(
  of cursor: any Cursor, _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result
) throws -> Result {
  var result: Result?
  try cursor.lendEntry { result = try body($0, $1) }
  guard let result else { throw StorageError(.engineFailure, "a cursor didn't lend its entry") }
  return result
}
