import Storage

/// Random failures that a `StrictEngine` adds.
package struct Strictness: Sendable {
  /// One of this many writes, on average, is rolled back after its body has run, and throws `conflict`. Nil
  /// for none. It is off by default, because bodies that consume a source can't be run again and pass the
  /// error on.
  package var conflicts: Int?
  /// The number of commits after which a snapshot throws `snapshotExpired`. Nil for never.
  package var snapshotCommits: Int?
  /// One of this many snapshots, on average, throws `snapshotExpired` at one of its first reads, whatever is
  /// committed. Each entry of a scan is a read. Nil for none.
  package var expirations: Int?
  /// Commits before each write transaction, as another process may. It gets another engine over the same data,
  /// or the engine below where a process can open the data only once. Nil for nobody.
  package var strangers: (@Sendable (any StorageEngine) throws -> Void)?
  /// The maximum number of open snapshots. The protocol requires "thousands" (`StorageEngine.beginRead`).
  package var maximumReaders: Int
  /// The seed of the random choices.
  package var seed: UInt64

  /// Makes a strictness. The defaults add no failures that callers don't handle.
  package init(
    conflicts: Int? = nil, snapshotCommits: Int? = nil, expirations: Int? = nil, maximumReaders: Int = 2_000,
    seed: UInt64 = 1, strangers: (@Sendable (any StorageEngine) throws -> Void)? = nil
  ) {
    self.strangers = strangers
    self.conflicts = conflicts
    self.snapshotCommits = snapshotCommits
    self.expirations = expirations
    self.maximumReaders = maximumReaders
    self.seed = seed
  }
}
