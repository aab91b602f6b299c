// Paths as plain memory, for whoever evaluates many of them over many bodies: nothing is retained on the way.

/// One step of a path whose name is resolved to its number. The names' memory is the owner's.
public struct PathMove: BitwiseCopyable {
  /// A shared key's number, -1 when the table lacks the name; or an item's index, negative from the end.
  @usableFromInline let number: Int
  /// The name's first byte, nil for an index.
  @usableFromInline let name: UnsafePointer<UInt8>?
  @usableFromInline let nameLength: Int

  /// A step to the item at an index; a negative one counts from the end.
  public init(index: Int) {
    number = index
    name = nil
    nameLength = 0
  }

  /// A step to the member of a name. The bytes have to live as long as the step; an empty name has an address too.
  public init(name: UnsafePointer<UInt8>, count: Int, in sharedKeys: SharedKeys) {
    let bytes = UnsafeBufferPointer(start: name, count: count)
    number =
      count > FleeceLimits.sharedKeyLength
      ? -1 : sharedKeys.table.find(ShortName(exactly: bytes), length: count)
    self.name = name
    nameLength = count
  }

  /// The index of an item, nil for a name.
  @inlinable public var index: Int? { name == nil ? number : nil }

  /// The name's bytes; empty for an index.
  @inlinable public var nameBytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: name, count: nameLength)
  }
}

extension UnsafeValue {
  /// The value that steps lead to, or nil when one finds nothing. Allocates nothing.
  @inlinable
  public func value(at moves: UnsafeBufferPointer<PathMove>) -> UnsafeValue? {
    var value = self
    for position in 0..<moves.count {
      guard let next = value.value(at: moves[position]) else { return nil }
      value = next
    }
    return value
  }

  /// The value that one step leads to, or nil when it finds nothing.
  @inlinable @inline(__always)
  public func value(at move: PathMove) -> UnsafeValue? {
    guard move.name != nil else {
      return self[move.number < 0 ? count &+ move.number : move.number]
    }
    if move.number >= 0 {
      let (found, mayBeString) = member(number: move.number)
      if found != nil || !mayBeString { return found }
    }
    return member(name: move.nameBytes)
  }

  /// The same in a body whose encoder needed so many shared keys (`BodyEncoder.sharedKeyCount`): names whose numbers are
  /// below stand as numbers only, and aren't looked for as strings.
  @inlinable @inline(__always)
  public func value(at move: PathMove, sharedKeyCount: Int) -> UnsafeValue? {
    if move.name != nil, move.number >= 0, move.number < sharedKeyCount {
      return member(number: move.number).value
    }
    return value(at: move)
  }

  /// The entry of a name that stands as a string.
  @usableFromInline @inline(never)
  func member(name: UnsafeRawBufferPointer) -> UnsafeValue? {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return nil }
    return slots.find(name: name).flatMap { slots.member($0) }
  }
}
