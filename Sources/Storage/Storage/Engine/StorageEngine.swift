/// An ordered map from bytes to bytes, divided into named keyspaces. Every engine implements this protocol.
///
/// An engine provides snapshot reads and one writer at a time, and nothing more. Documents, indexes and
/// queries are built above this protocol, once for all engines. Keys are in unsigned byte order. `limits`
/// bounds the lengths of keys and values.
///
/// `FastReads` and `FastWrites` hold the operations that an engine may replace with a faster implementation.
/// `EngineMaintenance` holds the operations on files. It is optional.
///
/// **Concurrency.** An engine may be used from any thread. Readers never block the writer, and the writer
/// never blocks readers. Only one thread at a time may use a transaction.
///
/// **Errors.** Every failure throws a `StorageError` that names the location.
public protocol StorageEngine: AnyObject, Sendable {
  /// The name that selects the engine: `sqlite`, `lmdb`, `sqlcipher`.
  var name: String { get }

  /// The name and version of the underlying library, as the library reports them: `SQLite 3.40.1`.
  var library: String { get }

  /// The location of the data: the path of a file, or the address of a server without secrets. An engine may
  /// keep other files beside its file; their names begin with this path.
  var location: String { get }

  /// The maximum sizes of keys, values and transactions. Default: `EngineLimits.portable`.
  var limits: EngineLimits { get }

  /// The failures that a commit survives.
  var durability: Durability { get }

  /// Whether the engine was opened only for reading. If so, writes throw `readOnly`.
  var isReadOnly: Bool { get }

  /// The settings of the library, by the library's own names, for people who compare engines.
  var settings: [(name: String, value: String)] { get }

  /// Begins a snapshot of the last commit before this call. Later writes don't change it.
  ///
  /// Thousands of snapshots may be open at once. Past the engine's limit this throws `tooManyReaders`. The
  /// engine can't reuse the pages that a snapshot sees, so end it soon. Prefer `read(_:)`, which ends its
  /// snapshot.
  func beginRead() throws -> any ReadTransaction

  /// Lends the value at a key to `body`, as of the last commit before this call. Returns false if there is no
  /// value.
  ///
  /// Default: begins a snapshot, reads, and ends the snapshot. An engine that can do this in one step
  /// overrides it. Throws as `beginRead` and `ReadTransaction.read` do, and rethrows the error of `body`.
  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool

  /// Runs `body` in the write transaction and commits when `body` returns. An engine has one write
  /// transaction at a time.
  ///
  /// If `body` throws, the engine undoes its writes in all keyspaces and rethrows the error. When this call
  /// returns, the commit survives what `durability` promises. Writers that wait at the same time share one
  /// engine commit. Each of them is still all or nothing, and each `body` runs on its caller's thread.
  ///
  /// `body` may see changes of others that share its commit. None of them leaves this call before they are
  /// committed: if `body` throws, the call waits for the commit. If that commit fails, `conflict` is thrown in
  /// place of the error, which may come from changes that never were.
  ///
  /// Calling `write` inside `body` throws `nestedWrite`.
  func write(_ body: (any WriteTransaction) throws -> Void) throws

  /// Closes the engine.
  ///
  /// Waits for the writer. Throws `inUse` while snapshots are open. A second call does nothing. Every other
  /// call after `close` throws `closed`.
  func close() throws
}

extension StorageEngine {
  /// The limits that all engines of this project share.
  public var limits: EngineLimits { .portable }

  /// The operations on the engine's files. Throws `unsupported` if the engine has none.
  public var maintenance: any EngineMaintenance {
    get throws {
      guard let maintenance = self as? any EngineMaintenance else {
        throw StorageError(
          .unsupported, "the engine \(name) can't copy, compact or check its files", path: location)
      }
      return maintenance
    }
  }

  /// Begins a snapshot, reads the value, and ends the snapshot.
  public func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    let transaction = try beginRead()
    defer { transaction.end() }
    return try transaction.read(key, in: keyspace, body)
  }

  /// Runs `body` on a new snapshot and then ends the snapshot.
  @inlinable
  public func read<Result>(_ body: (any ReadTransaction) throws -> Result) throws -> Result {
    let transaction = try beginRead()
    defer { transaction.end() }
    return try body(transaction)
  }

  /// Runs `write(_:)` with a body that returns a result, and returns that result.
  @inlinable
  public func write<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    var result: Result?
    try write { (transaction: any WriteTransaction) throws -> Void in result = try body(transaction) }
    // The body ran and did not throw, so it gave a result.
    return result.unsafelyUnwrapped
  }
}
