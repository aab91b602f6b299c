import Synchronization

/// What a snapshot reads: the committed data of one engine at one time.
///
/// Two snapshots with equal versions read the same data, in every keyspace. So what was computed from one of
/// them holds in the other one. Different versions say nothing: the data may still be the same.
public struct SnapshotVersion: Hashable, Sendable {
  /// The open engine, or what all opens of its file share. A number of `newEngine()`.
  public let engine: UInt64
  /// A number that the engine never gives to other data, whoever commits them.
  public let number: UInt64

  /// Creates a version. See the properties.
  public init(engine: UInt64, number: UInt64) {
    self.engine = engine
    self.number = number
  }

  private static let engines = Atomic<UInt64>(0)

  /// A number that no other engine of this process has.
  public static func newEngine() -> UInt64 { engines.add(1, ordering: .relaxed).newValue }
}
