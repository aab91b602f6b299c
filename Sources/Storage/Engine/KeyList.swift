/// Keys of one keyspace, one behind the other in one buffer: what `FastReads.getMany` asks for.
public struct KeyList: Sendable {
  @usableFromInline var storage: [UInt8] = []
  /// Where each key ends.
  @usableFromInline var ends: [Int] = []

  /// No keys.
  public init() {}

  /// How many keys there are.
  @inlinable public var count: Int { ends.count }

  /// Whether there are no keys.
  @inlinable public var isEmpty: Bool { ends.isEmpty }

  /// Adds a copy of a key.
  @inlinable
  public mutating func append(_ key: RawSpan) {
    key.withUnsafeBytes { storage.append(contentsOf: $0) }
    ends.append(storage.count)
  }

  /// Removes all keys and keeps the memory.
  @inlinable
  public mutating func removeAll() {
    storage.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
  }

  /// The key of an index, which is in `0..<count`.
  @inlinable
  public subscript(index: Int) -> RawSpan {
    @_lifetime(borrow self)
    get { storage.span.bytes.extracting((index == 0 ? 0 : ends[index - 1])..<ends[index]) }
  }
}
