/// An ordered map of bytes to bytes in named keyspaces, in one file: what every engine is.
///
/// An engine gives snapshot reads beside one writer, and nothing more; documents, indexes and queries are
/// built above this protocol, once, for all engines. Keys are ordered by unsigned bytes, are 1 to 511 bytes
/// long, and values are 0 to 1,000,000,000 bytes (`StorageLimits`).
///
/// Concurrency: an engine may be used from any thread. Readers never block the writer and the writer never
/// blocks readers. A transaction is used by one thread at a time.
///
/// Errors: everything that fails throws a `StorageError` that names the file.
public protocol StorageEngine: AnyObject, Sendable {
  /// The name it is chosen by: `sqlite`, `lmdb`, `sqlcipher`.
  var name: String { get }

  /// The library and version below it, as that library tells it: `SQLite 3.40.1`.
  var library: String { get }

  /// The file that holds the data. Engines may keep others beside it whose names begin with this one.
  var path: String { get }

  /// What a commit survives.
  var durability: Durability { get }

  /// Whether it was opened for reading only: writes throw `readOnly`.
  var isReadOnly: Bool { get }

  /// What was set on the library, by the library's own names, for people who compare engines.
  var settings: [(name: String, value: String)] { get }

  /// Begins a snapshot: the state of the last commit before this call, whatever is written later.
  ///
  /// Thousands may be open at once; past the engine's limit this throws `tooManyReaders`. A snapshot keeps
  /// the pages it can see from being reused, so end it soon. Prefer `read(_:)`, which ends it.
  func beginRead() throws -> any ReadTransaction

  /// Runs `body` in the one write transaction, and commits when it returns.
  ///
  /// When `body` throws, nothing of it remains, in any keyspace, and its error is rethrown. When this call
  /// returns, the commit has reached what `durability` promises. Writers that wait at the same time share
  /// one engine commit; each is still all or nothing, and `body` runs on its caller's thread.
  ///
  /// Calling `write` inside `body` throws `nestedWrite`.
  func write(_ body: (any WriteTransaction) throws -> Void) throws

  /// Sizes and counts, as of now.
  func statistics() throws -> EngineStatistics

  /// Writes a whole copy of the last commit, without unused pages, to a new file at `path`, beside readers
  /// and the writer. Encrypted when this one is, with the same key. Throws `alreadyExists` when there is a
  /// file; leaves none when it fails. The copy is synced when this returns.
  func backup(to path: String) throws

  /// Whether `compact()` gives space back. When false, the way is `backup(to:)` and a change of files, which
  /// is the business of whoever names the files.
  var compactsInPlace: Bool { get }

  /// Gives unused space back to the file system, beside readers. Throws `unsupported` when the engine
  /// can't do that in place.
  func compact() throws

  /// Looks at every page with the library's own checks. Empty when it is sound; else one line a fault.
  func checkIntegrity() throws -> [String]

  /// Closes the file. Waits for the writer; throws `inUse` while snapshots are open. A second call does
  /// nothing. Later calls of anything else throw `closed`.
  func close() throws
}

extension StorageEngine {
  /// Runs `body` on a snapshot and ends the snapshot afterwards.
  @inlinable
  public func read<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    let transaction = try beginRead()
    defer { transaction.end() }
    return try body(transaction)
  }

  /// `write(_:)` for a body that gives a result.
  @inlinable
  public func write<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    var result: Result?
    try write { (transaction: any WriteTransaction) throws -> Void in result = try body(transaction) }
    // The body ran and did not throw, so it gave a result.
    return result.unsafelyUnwrapped
  }
}

/// One snapshot of an engine.
///
/// Lifetimes of bytes: what `get` hands out is valid until the next `get` on this transaction or its end;
/// what a scan hands to its body, until the body returns; what a cursor hands out, until the cursor moves.
/// In a write transaction all of them end at its next write as well. (LMDB's bytes are the map itself and
/// stay valid until the end; nothing above an engine may rely on that.)
///
/// Not `Sendable`: one thread at a time.
public protocol ReadTransaction: AnyObject {
  /// The keyspace of that name in this snapshot, or nil.
  func keyspace(named name: String) throws -> Keyspace?

  /// All keyspaces of this snapshot, by name.
  func keyspaces() throws -> [String: Keyspace]

  /// The value at `key`, or nil.
  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer?

  /// Calls `body` with each entry of `range` until it returns false. The hot path of everything that reads
  /// much: no object, copy or allocation an entry.
  ///
  /// With `fetch: .keys` the value handed over is empty, and engines that can leave it unread do.
  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool) throws

  /// A scan of whole entries, several at a time where the engine has them at hand: for loops of so little work an entry
  /// that a call would be most of it.
  ///
  /// Calls `body` with the next entries, one or more, until it returns false. What it is handed lasts until it returns.
  func scanBatches(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder,
    _ body: (_ entries: UnsafeBufferPointer<ScanEntry>) throws -> Bool) throws

  /// A scan that goes on from each entry of `range` to the entry of another keyspace that it refers to: an index that is
  /// followed to what it is of.
  ///
  /// Calls `reference` with each entry, in order, and `body` with what `target` has at the key that it says; a key that
  /// `target` lacks is passed over. Ends when either says so. What `reference` is handed ends when it returns; the key that
  /// it gives must last until then. What `body` is handed lasts until it returns, whatever else is read meanwhile. What
  /// `get` has handed out ends.
  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> ScanReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool) throws

  /// A cursor over `range`, placed before its first entry.
  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor

  /// How many entries the keyspace has. Constant time.
  func count(of keyspace: Keyspace) throws -> Int

  /// Whether bytes that were handed out stay until the transaction ends, whatever else is read: false promises nothing
  /// beyond the next use.
  var keepsBytes: Bool { get }

  /// Ends a snapshot. A second call does nothing; using the transaction afterwards is a programming error.
  /// The transaction handed to a `write` body is ended by the engine, never by this call.
  func end()
}

extension ReadTransaction {
  /// The weaker promise.
  public var keepsBytes: Bool { false }

  /// A scan, each entry a batch of its own.
  @inlinable
  public func scanBatches(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder,
    _ body: (_ entries: UnsafeBufferPointer<ScanEntry>) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: .entries) { key, value in
      try withUnsafePointer(to: ScanEntry(key: key, value: value)) {
        try body(UnsafeBufferPointer(start: $0, count: 1))
      }
    }
  }

  /// A scan, and a `get` for each entry.
  @inlinable
  public func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> ScanReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try followByGetting(keyspace, range, order: order, into: target, reference: reference, body)
  }

  /// `follow` by a scan, and a `get` for each entry, for engines that have a better way for some keyspaces only.
  @inlinable
  public func followByGetting(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> ScanReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let keepsBytes = keepsBytes
    var copy: [UInt8] = []
    try scan(keyspace, range, order: order, fetch: .entries) { key, value in
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
  public func scan(
    _ keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try scan(keyspace, range, order: order, fetch: .entries, body)
  }

  /// The value at `key` as an array of its own, or nil. For small things away from hot paths.
  public func bytes(_ key: [UInt8], in keyspace: Keyspace) throws -> [UInt8]? {
    try key.withUnsafeBytes { try get($0, in: keyspace).map { [UInt8]($0) } }
  }
}

/// The one write transaction: reads see its own writes.
public protocol WriteTransaction: ReadTransaction {
  /// The keyspace of that name, made when there is none. Throws `shapeMismatch` when it has another shape
  /// and `tooManyKeyspaces` past `StorageLimits.maximumKeyspaces`.
  ///
  /// Names are 1 to 64 of the ASCII letters, digits, `.`, `-` and `_`.
  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace

  /// Removes the keyspace and all its entries; snapshots that see it go on seeing it.
  func dropKeyspace(_ keyspace: Keyspace) throws

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

  /// Removes all entries of `range`, and says how many there were.
  @discardableResult
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int
}

extension WriteTransaction {
  /// `put` with arrays, for small things away from hot paths.
  public func put(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { value in try put(key, value, in: keyspace) }
    }
  }
}

/// A place in a keyspace that moves both ways within a range.
///
/// It stands before the first entry of its range, on an entry, or after the last one. In a write transaction
/// a cursor must be placed anew (`seek`, `first`, `last`) after a write. It must not be used after its
/// transaction has ended.
public protocol Cursor: AnyObject {
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
