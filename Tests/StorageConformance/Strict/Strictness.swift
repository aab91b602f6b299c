import Storage

/// What a `StrictEngine` may do beyond keeping its promises at their weakest.
public struct Strictness: Sendable {
  /// One of so many writes, on average, is rolled back and throws `conflict` after its body has run. Nil: none. Bodies that
  /// take from a source that goes on are run once, and pass it on: so it is off unless it is asked for.
  public var conflicts: Int?
  /// After so many commits a snapshot throws `snapshotExpired`. Nil: never.
  public var snapshotCommits: Int?
  /// One of so many snapshots, on average, throws `snapshotExpired` at one of its first reads, whatever is committed. An
  /// entry of a scan is a read. Nil: none.
  public var expirations: Int?
  /// How many snapshots are open at once: "thousands" (`StorageEngine.beginRead`).
  public var maximumReaders: Int
  /// Where random choices come from.
  public var seed: UInt64

  /// The promises at their weakest, and nothing that callers don't handle.
  public init(
    conflicts: Int? = nil, snapshotCommits: Int? = nil, expirations: Int? = nil, maximumReaders: Int = 2_000,
    seed: UInt64 = 1
  ) {
    self.conflicts = conflicts
    self.snapshotCommits = snapshotCommits
    self.expirations = expirations
    self.maximumReaders = maximumReaders
    self.seed = seed
  }
}
