/// A handle of a keyspace: valid in every transaction of its engine until the keyspace is dropped, after
/// which its use throws `noSuchKeyspace`. A number is never used twice in the life of a file.
@frozen
public struct Keyspace: Hashable, Sendable {
  /// The number under which the file knows the keyspace.
  public let number: Int
  /// How it is laid out.
  public let shape: KeyspaceShape

  /// The handle of a keyspace, for engines.
  @inlinable
  public init(number: Int, shape: KeyspaceShape) {
    self.number = number
    self.shape = shape
  }
}

/// What a keyspace is used for, by which engines that have a choice lay it out. Behaviour is the same for
/// all shapes, but for the keys of `sequences`.
@frozen
public enum KeyspaceShape: UInt8, Sendable, CaseIterable {
  /// Short keys in any order with large values: documents.
  case documents = 1
  /// Small entries read in order: indexes.
  case entries = 2
  /// Keys of exactly 8 bytes, big-endian unsigned integers below 2^63, mostly appended: changes. Another
  /// key throws `invalidKey`.
  case sequences = 3
}

/// The limits that hold on every engine, so that no data fits one and not another.
public enum StorageLimits {
  /// LMDB's compiled limit.
  public static let maximumKeyBytes = 511
  /// SQLite's default limit of a row is 1,000,000,000 bytes: this, the longest key, and what the row itself takes.
  public static let maximumValueBytes = 1_000_000_000 - 1_024
  /// Far beyond what indexes need; LMDB reserves memory for each.
  public static let maximumKeyspaces = 1_000
  /// Of ASCII.
  public static let maximumKeyspaceNameBytes = 64
}

/// Which keys: those between two bounds, by unsigned byte order.
public struct KeyRange: Hashable, Sendable {
  /// An end of a range.
  public enum Bound: Hashable, Sendable {
    case unbounded
    case inclusive([UInt8])
    case exclusive([UInt8])
  }

  /// Where it begins.
  public var lower: Bound
  /// Where it ends.
  public var upper: Bound

  /// The keys between two bounds.
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

  /// The least key that is greater than every key with that prefix, as an exclusive bound.
  public static func upperBound(ofPrefix prefix: [UInt8]) -> Bound {
    guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return .unbounded }
    var bound = Array(prefix[...last])
    bound[last] += 1
    return .exclusive(bound)
  }
}

/// In which order a scan goes.
@frozen
public enum ScanOrder: Sendable {
  case ascending
  case descending
  /// As the engine has them: the fastest way over a whole keyspace when order doesn't matter.
  case stored
}

/// What a scan needs of each entry.
@frozen
public enum ScanFetch: Sendable {
  case entries
  case keys
}
