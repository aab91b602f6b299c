/// What fits into an engine, asked of it by `StorageEngine.limits`. What doesn't fit is refused by a typed error; nothing
/// is cut.
public struct EngineLimits: Sendable, Hashable {
  /// The longest key, in bytes; the shortest has one. Past it: `invalidKey`.
  public var keyBytes: Int
  /// The longest value, in bytes; the shortest is empty. Past it: `valueTooLarge`.
  public var valueBytes: Int
  /// How many keyspaces there may be at once. Past it: `tooManyKeyspaces`.
  public var keyspaces: Int
  /// The longest name of a keyspace, in ASCII characters.
  public var keyspaceNameBytes: Int
  /// How long a snapshot or a write transaction lasts; nil: as long as it is used. Past it: `snapshotExpired`.
  public var transactionAge: Duration?
  /// How many bytes of keys and values one write transaction may write; nil: any number.
  public var transactionBytes: Int?

  /// Limits; see the properties.
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

  /// Those of `StorageLimits`, which the engines of this project share, so that data of one fits the others.
  public static let portable = EngineLimits(
    keyBytes: StorageLimits.maximumKeyBytes, valueBytes: StorageLimits.maximumValueBytes,
    keyspaces: StorageLimits.maximumKeyspaces, keyspaceNameBytes: StorageLimits.maximumKeyspaceNameBytes)
}

/// How many entries there are, as an engine knows it in constant time.
@frozen
public enum EntryCount: Sendable, Hashable {
  /// Exactly so many.
  case exact(Int)
  /// About so many: an estimate that may be wrong by any amount, for whoever plans or shows progress.
  case about(Int)

  /// The number, exact or not.
  @inlinable
  public var estimate: Int {
    switch self {
    case .exact(let count), .about(let count): count
    }
  }
}
