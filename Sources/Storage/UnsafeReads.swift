// The reads and writes by pointer that `ReadTransaction` and `WriteTransaction` replace. They go when the last caller has.

/// Reads that hand out pointers.
public protocol UnsafeReads: AnyObject {
  /// The value at `key`, or nil.
  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer?

  /// Calls `body` with each entry of `range` until it returns false. The hot path of everything that reads
  /// much: no object, copy or allocation an entry.
  ///
  /// With `fetch: .keys` the value handed over is empty, and engines that can leave it unread do.
  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool) throws

  /// A scan of whole entries, several at a time where the engine has them at hand: for loops of so little work an entry
  /// that a call would be most of it.
  ///
  /// Calls `body` with the next entries, one or more, until it returns false. What it is handed lasts until it returns.
  func unsafeScanBatches(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder,
    _ body: (_ entries: UnsafeBufferPointer<ScanEntry>) throws -> Bool) throws

  /// A scan that goes on from each entry of `range` to the entry of another keyspace that it refers to: an index that is
  /// followed to what it is of.
  ///
  /// Calls `reference` with each entry, in order, and `body` with what `target` has at the key that it says; a key that
  /// `target` lacks is passed over. Ends when either says so. What `reference` is handed ends when it returns; the key that
  /// it gives must last until then. What `body` is handed lasts until it returns, whatever else is read meanwhile. What
  /// `get` has handed out ends.
  func unsafeFollow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> UnsafeReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool) throws

  /// A cursor over `range`, placed before its first entry.
  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor

  /// Whether bytes that were handed out stay until the transaction ends, whatever else is read: false promises nothing
  /// beyond the next use.
  var keepsBytes: Bool { get }
}

extension UnsafeReads where Self: ReadTransaction {
  /// The weaker promise.
  public var keepsBytes: Bool { false }

  /// A scan, each entry a batch of its own.
  @inlinable
  public func unsafeScanBatches(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder,
    _ body: (_ entries: UnsafeBufferPointer<ScanEntry>) throws -> Bool
  ) throws {
    try unsafeScan(keyspace, range, order: order, fetch: .entries) { key, value in
      try withUnsafePointer(to: ScanEntry(key: key, value: value)) {
        try body(UnsafeBufferPointer(start: $0, count: 1))
      }
    }
  }

  /// A scan, and a `get` for each entry.
  @inlinable
  public func unsafeFollow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> UnsafeReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try unsafeFollowByGetting(keyspace, range, order: order, into: target, reference: reference, body)
  }

  /// `follow` by a scan, and a `get` for each entry, for engines that have a better way for some keyspaces only.
  @inlinable
  public func unsafeFollowByGetting(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> UnsafeReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let keepsBytes = keepsBytes
    var copy: [UInt8] = []
    try unsafeScan(keyspace, range, order: order, fetch: .entries) { key, value in
      switch try reference(key, value) {
      case .end: return false
      case .none: return true
      case .key(let wanted):
        guard let found = try get(wanted, in: target) else { return true }
        if keepsBytes { return try body(wanted, found) }
        // The next read would end it.
        copy.removeAll(keepingCapacity: true)
        copy.append(contentsOf: found)
        return try copy.withUnsafeBytes { try body(wanted, $0) }
      }
    }
  }

  /// `scan` over whole entries in ascending order.
  @inlinable
  public func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try unsafeScan(keyspace, range, order: order, fetch: .entries, body)
  }
}

/// Writes that take pointers.
public protocol UnsafeWrites {
  /// Sets the value at `key`, whether there was one or not.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws

  /// Sets the value at `key` if there is none. False, and nothing changed, when there is one.
  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
    -> Bool

  /// Adds an entry whose key is greater than all others in the keyspace: the fast way to load sorted data.
  /// Throws `outOfOrder` when it isn't greater.
  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws

  /// Removes the entry at `key`. False when there was none.
  @discardableResult
  func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool
}

/// A place in a keyspace that moves both ways within a range.
///
/// It stands before the first entry of its range, on an entry, or after the last one. In a write transaction
/// a cursor must be placed anew (`seek`, `first`, `last`) after a write. It must not be used after its
/// transaction has ended.
public protocol UnsafeCursor: AnyObject {
  /// Moves to the first entry of the range whose key is `key` or greater, and returns it.
  func seek(_ key: UnsafeRawBufferPointer) throws -> Entry?

  /// Moves to the first entry of the range.
  func first() throws -> Entry?

  /// Moves to the last entry of the range.
  func last() throws -> Entry?

  /// Moves to the next entry: the first when the cursor stands before it. Nil, and then after the last,
  /// when there is none.
  func next() throws -> Entry?

  /// Moves to the previous entry: the last when the cursor stands after it. Nil, and then before the first,
  /// when there is none.
  func previous() throws -> Entry?
}

/// A key and its value where the engine keeps them. See `ReadTransaction` for how long they last.
@frozen
public struct Entry {
  /// The key's bytes, where the engine keeps them.
  public let key: UnsafeRawBufferPointer
  /// The value's bytes, where the engine keeps them.
  public let value: UnsafeRawBufferPointer

  /// An entry of these bytes, which must outlive it.
  @inlinable
  public init(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    self.key = key
    self.value = value
  }
}

/// What an entry refers to (`UnsafeReads.unsafeFollow`).
@frozen
public enum UnsafeReference {
  /// The entry of another keyspace with this key.
  case key(UnsafeRawBufferPointer)
  /// Nothing that is wanted.
  case none
  /// Nothing, and no more entries are wanted.
  case end
}

// The new calls over the old ones, for engines that have only those.

extension ReadTransaction {
  @inlinable
  public func read(
    _ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void
  ) throws -> Bool {
    guard let copy = try key.withUnsafeBytes({ try get($0, in: keyspace).map { [UInt8]($0) } }) else {
      return false
    }
    try body(copy.span.bytes)
    return true
  }

  @inlinable
  public func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try unsafeScan(keyspace, range, order: order, fetch: fetch) { key, value in
      try body(key.bytes, value.bytes)
    }
  }

  public func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    CopyingCursor(try unsafeCursor(in: keyspace, range))
  }
}

extension WriteTransaction {
  @inlinable
  public func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try key.withUnsafeBytes { key in try value.withUnsafeBytes { try put(key, $0, in: keyspace) } }
  }

  @inlinable
  public func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { key in try value.withUnsafeBytes { try insert(key, $0, in: keyspace) } }
  }

  @inlinable
  public func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try key.withUnsafeBytes { key in try value.withUnsafeBytes { try append(key, $0, in: keyspace) } }
  }

  @inlinable
  @discardableResult
  public func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { try delete($0, in: keyspace) }
  }
}

/// A cursor that copies each entry it comes to.
final class CopyingCursor: Cursor {
  private let cursor: any UnsafeCursor
  private var entry: (key: [UInt8], value: [UInt8])?

  init(_ cursor: any UnsafeCursor) { self.cursor = cursor }

  private func take(_ found: Entry?) -> Bool {
    entry = found.map { ([UInt8]($0.key), [UInt8]($0.value)) }
    return found != nil
  }

  func seek(_ key: RawSpan) throws -> Bool { take(try key.withUnsafeBytes { try cursor.seek($0) }) }
  func first() throws -> Bool { take(try cursor.first()) }
  func last() throws -> Bool { take(try cursor.last()) }
  func next() throws -> Bool { take(try cursor.next()) }
  func previous() throws -> Bool { take(try cursor.previous()) }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    guard let entry else { throw StorageError(.notOnEntry, "the cursor stands on no entry") }
    try body(entry.key.span.bytes, entry.value.span.bytes)
  }
}

/// A cursor by pointers over one that lends: the pointers last until it moves.
public final class EscapingCursor: UnsafeCursor {
  private let cursor: any Cursor

  /// A cursor over `cursor`.
  public init(_ cursor: any Cursor) { self.cursor = cursor }

  private func entry(_ found: Bool) throws -> Entry? {
    guard found else { return nil }
    return try cursor.withEntry { key, value in
      key.withUnsafeBytes { key in value.withUnsafeBytes { Entry(key: key, value: $0) } }
    }
  }

  public func seek(_ key: UnsafeRawBufferPointer) throws -> Entry? { try entry(cursor.seek(key.bytes)) }
  public func first() throws -> Entry? { try entry(cursor.first()) }
  public func last() throws -> Entry? { try entry(cursor.last()) }
  public func next() throws -> Entry? { try entry(cursor.next()) }
  public func previous() throws -> Entry? { try entry(cursor.previous()) }
}
