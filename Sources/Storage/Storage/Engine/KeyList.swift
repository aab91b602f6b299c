/// A list of keys of one keyspace, stored in one buffer. `FastReads.getMany` takes it.
public struct KeyList: Sendable {
  @usableFromInline var storage: [UInt8] = []
  /// The end offset of each key in `storage`.
  @usableFromInline var ends: [Int] = []

  /// An empty list.
  public init() {}

  /// The number of keys.
  @inlinable public var count: Int { ends.count }

  /// Whether the list is empty.
  @inlinable public var isEmpty: Bool { ends.isEmpty }

  /// Appends a copy of a key.
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

  /// The key at `index`, which must be in `0..<count`.
  @inlinable
  public subscript(index: Int) -> RawSpan {
    @_lifetime(borrow self)
    get { storage.span.bytes.extracting((index == 0 ? 0 : ends[index - 1])..<ends[index]) }
  }
}
