/// A handle of a keyspace.
///
/// The handle is valid in every transaction of its engine until the keyspace is dropped. Using it after that
/// throws `noSuchKeyspace`. A file never uses a number twice.
@frozen
public struct Keyspace: Hashable, Sendable {
  /// The number that identifies the keyspace in its file.
  public let number: Int
  /// The layout of the keyspace.
  public let shape: KeyspaceShape

  /// Makes a handle. For engines.
  @inlinable
  public init(number: Int, shape: KeyspaceShape) {
    self.number = number
    self.shape = shape
  }
}

/// The use of a keyspace. Engines with several layouts choose one by the shape.
///
/// All shapes behave alike, except that `sequences` restricts its keys.
@frozen
public enum KeyspaceShape: UInt8, Sendable, CaseIterable {
  /// Documents: short keys in any order, with large values.
  case documents = 1
  /// Indexes: small entries that are read in order.
  case entries = 2
  /// Sequences of changes, mostly appended.
  ///
  /// A key has exactly 8 bytes: a big-endian unsigned integer below 2^63. Any other key throws `invalidKey`.
  case sequences = 3
}

/// The limits that hold on every engine, so that data of one engine always fits another.
public enum StorageLimits {
  /// The longest key, in bytes. This is LMDB's compiled limit.
  public static let maximumKeyBytes = 511
  /// The longest value, in bytes. SQLite's default limit of a row is 1,000,000,000 bytes. The row also holds
  /// the key (up to `maximumKeyBytes`) and SQLite's own fields.
  public static let maximumValueBytes = 1_000_000_000 - 1_024
  /// The maximum number of keyspaces. Indexes need far fewer; LMDB reserves memory for each.
  public static let maximumKeyspaces = 1_000
  /// The longest name of a keyspace, in bytes of ASCII.
  public static let maximumKeyspaceNameBytes = 64
}

/// A range of keys in unsigned byte order.
public struct KeyRange: Hashable, Sendable {
  /// One end of a range.
  public enum Bound: Hashable, Sendable {
    /// No bound.
    case unbounded
    /// The range contains the key itself.
    case inclusive([UInt8])
    /// The range ends just before or begins just after the key.
    case exclusive([UInt8])
  }

  /// The bound at which the range begins.
  public var lower: Bound
  /// The bound at which the range ends.
  public var upper: Bound

  /// A range between two bounds.
  @inlinable
  public init(lower: Bound = .unbounded, upper: Bound = .unbounded) {
    self.lower = lower
    self.upper = upper
  }

  /// Every key.
  public static let all = KeyRange()

  /// The keys that begin with `prefix`.
  public static func prefix(_ prefix: [UInt8]) -> KeyRange {
    KeyRange(lower: prefix.isEmpty ? .unbounded : .inclusive(prefix), upper: upperBound(ofPrefix: prefix))
  }

  /// Returns the upper bound of all keys that begin with `prefix`: the smallest key greater than all of them,
  /// exclusive. Returns `unbounded` if no such key exists.
  public static func upperBound(ofPrefix prefix: [UInt8]) -> Bound {
    guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return .unbounded }
    var bound = Array(prefix[...last])
    bound[last] += 1
    return .exclusive(bound)
  }
}

/// The order of a scan.
@frozen
public enum ScanOrder: Sendable {
  /// By key, smallest first.
  case ascending
  /// By key, largest first.
  case descending
  /// The engine's own storage order. This is the fastest way to read a whole keyspace when order doesn't
  /// matter.
  case stored
}

/// The parts of an entry that a scan reads.
@frozen
public enum ScanFetch: Sendable {
  /// Keys and values.
  case entries
  /// Only keys.
  case keys
}
