/// The maximum sizes that an engine accepts, given by `StorageEngine.limits`. Anything larger throws a typed
/// error; nothing is truncated.
public struct EngineLimits: Sendable, Hashable {
  /// The maximum length of a key, in bytes. The minimum is 1. Other lengths throw `invalidKey`.
  public var keyBytes: Int
  /// The maximum length of a value, in bytes. A value may be empty. A longer one throws `valueTooLarge`.
  public var valueBytes: Int
  /// The maximum number of keyspaces at one time. One more throws `tooManyKeyspaces`.
  public var keyspaces: Int
  /// The maximum length of a keyspace name, in ASCII characters.
  public var keyspaceNameBytes: Int
  /// The maximum age of a snapshot or a write transaction, or nil for no limit. Past it, its use throws
  /// `snapshotExpired`.
  public var transactionAge: Duration?
  /// The maximum number of key and value bytes that one write transaction may write, or nil for no limit.
  public var transactionBytes: Int?

  /// Makes limits; see the properties.
  public init(
    keyBytes: Int, valueBytes: Int, keyspaces: Int, keyspaceNameBytes: Int, transactionAge: Duration? = nil,
    transactionBytes: Int? = nil
  ) {
    self.keyBytes = keyBytes
    self.valueBytes = valueBytes
    self.keyspaces = keyspaces
    self.keyspaceNameBytes = keyspaceNameBytes
    self.transactionAge = transactionAge
    self.transactionBytes = transactionBytes
  }

  /// The limits of `StorageLimits`. The engines of this project share them, so that data of one engine fits
  /// the others.
  public static let portable = EngineLimits(
    keyBytes: StorageLimits.maximumKeyBytes, valueBytes: StorageLimits.maximumValueBytes,
    keyspaces: StorageLimits.maximumKeyspaces, keyspaceNameBytes: StorageLimits.maximumKeyspaceNameBytes)
}

/// The number of entries of a keyspace, as the engine knows it in constant time.
@frozen
public enum EntryCount: Sendable, Hashable {
  /// The exact number.
  case exact(Int)
  /// An estimate that may be wrong by any amount. Use it for planning and progress.
  case about(Int)

  /// The number, exact or not.
  @inlinable
  public var estimate: Int {
    switch self {
    case .exact(let count), .about(let count): count
    }
  }
}
