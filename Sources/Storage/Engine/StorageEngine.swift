/// An ordered map of bytes to bytes in named keyspaces: what every engine is.
///
/// An engine gives snapshot reads beside one writer, and nothing more; documents, indexes and queries are
/// built above this protocol, once, for all engines. Keys are ordered by unsigned bytes. `limits` says how long
/// they and their values may be.
///
/// What an engine can do faster than the loops that stand in for it is in `FastReads` and `FastWrites`. What it can do with its
/// files is in `EngineMaintenance`, which it may leave out.
///
/// Concurrency: an engine may be used from any thread. Readers never block the writer and the writer never
/// blocks readers. A transaction is used by one thread at a time.
///
/// Errors: everything that fails throws a `StorageError` that names the location.
public protocol StorageEngine: AnyObject, Sendable {
  /// The name it is chosen by: `sqlite`, `lmdb`, `sqlcipher`.
  var name: String { get }

  /// The library and version below it, as that library tells it: `SQLite 3.40.1`.
  var library: String { get }

  /// Where the data are: the path of a file (engines may keep others beside it whose names begin with this one), or what
  /// a server is reached by, without secrets.
  var location: String { get }

  /// What fits into it. By default `EngineLimits.portable`.
  var limits: EngineLimits { get }

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

  /// Lends the value at a key, as of the last commit before this call, to `body`; false when there is none.
  ///
  /// By default this begins a snapshot, reads, and ends it; for an engine that can do so in one step. Throws as `beginRead` and
  /// `ReadTransaction.read` do, and what `body` throws.
  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool

  /// Runs `body` in the one write transaction, and commits when it returns.
  ///
  /// When `body` throws, nothing of it remains, in any keyspace, and its error is rethrown. When this call
  /// returns, the commit has reached what `durability` promises. Writers that wait at the same time share
  /// one engine commit; each is still all or nothing, and `body` runs on its caller's thread.
  ///
  /// Calling `write` inside `body` throws `nestedWrite`.
  func write(_ body: (any WriteTransaction) throws -> Void) throws

  /// Closes the engine. Waits for the writer; throws `inUse` while snapshots are open. A second call does
  /// nothing. Later calls of anything else throw `closed`.
  func close() throws
}

extension StorageEngine {
  /// The limits that all engines of this project share.
  public var limits: EngineLimits { .portable }

  /// What it can do with its files. Throws `unsupported` when it can't do anything with them.
  public var maintenance: any EngineMaintenance {
    get throws {
      guard let maintenance = self as? any EngineMaintenance else {
        throw StorageError(
          .unsupported, "the engine \(name) can't copy, compact or check its files", path: location)
      }
      return maintenance
    }
  }

  /// One read of a snapshot that is taken for it.
  public func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    let transaction = try beginRead()
    defer { transaction.end() }
    return try transaction.read(key, in: keyspace, body)
  }

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
