// Paths as plain memory, for the evaluation of many paths over many bodies without retain calls.

import Bytes

/// One step of a path, with its name resolved to a number. The caller owns the memory of the name.
@usableFromInline package struct PathMove: BitwiseCopyable {
  /// The number of a shared key, -1 if the table doesn't have the name, or the index of an item. A negative
  /// index counts from the end.
  @usableFromInline let number: Int
  /// The first byte of the name, or nil for an index.
  @usableFromInline let name: UnsafePointer<UInt8>?
  @usableFromInline let nameLength: Int32
  /// Where the shared key was in the last object, or would have been. Objects of one kind have their names in the same places.
  @usableFromInline var place: Int32 = 0

  /// Creates a step to the item at an index. A negative index counts from the end.
  package init(index: Int) {
    number = index
    name = nil
    nameLength = 0
  }

  /// Creates a step to the member with a name. The bytes must live as long as the step. An empty name also
  /// needs an address.
  package init(name: UnsafePointer<UInt8>, count: Int, in sharedKeys: SharedKeys) {
    let bytes = UnsafeBufferPointer(start: name, count: count)
    number =
      count > FleeceLimits.sharedKeyLength
      ? -1 : sharedKeys.table.find(ShortName(exactly: bytes), length: count)
    self.name = name
    nameLength = Int32(count)
  }

  /// The index of an item, or nil for a name.
  @inlinable package var index: Int? { name == nil ? number : nil }

  /// The bytes of the name. Empty for an index.
  @inlinable package var nameBytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: name, count: Int(nameLength))
  }
}

extension UnsafeValue {
  /// Returns the value at the end of the steps, or nil if a step finds nothing. Allocates nothing.
  @inlinable
  package func value(at moves: UnsafeBufferPointer<PathMove>) -> UnsafeValue? {
    var value = self
    for position in 0..<moves.count {
      guard let next = value.value(at: moves[position]) else { return nil }
      value = next
    }
    return value
  }

  /// The same, for many bodies, by one thread: each step is looked for where the last body had it.
  @inlinable @inline(__always)
  package func value(at moves: UnsafeMutableBufferPointer<PathMove>) -> UnsafeValue? {
    guard let first = moves.baseAddress else { return self }
    var value = self
    for position in 0..<moves.count {
      guard let next = value.value(at: first + position) else { return nil }
      value = next
    }
    return value
  }

  /// Returns the value of one step, or nil if it finds nothing. The step is looked for where the last object had it.
  @inlinable @inline(__always)
  package func value(at move: UnsafeMutablePointer<PathMove>) -> UnsafeValue? {
    guard move.pointee.name != nil else { return value(at: move.pointee) }
    guard move.pointee.number >= 0 else { return namedMember(move) }
    let (found, mayBeString) = member(move)
    if found != nil || !mayBeString { return found }
    return member(name: move.pointee.nameBytes)
  }

  /// The same for a body whose encoder needed `sharedKeyCount` shared keys.
  @inlinable @inline(__always)
  package func value(at move: UnsafeMutablePointer<PathMove>, sharedKeyCount: Int) -> UnsafeValue? {
    let number = move.pointee.number
    if move.pointee.name != nil, number >= 0, number < sharedKeyCount { return member(move).value }
    return value(at: move)
  }

  /// Returns the value of one step, or nil if it finds nothing.
  @inlinable @inline(__always)
  package func value(at move: PathMove) -> UnsafeValue? {
    guard move.name != nil else {
      return self[move.number < 0 ? count &+ move.number : move.number]
    }
    if move.number >= 0 {
      let (found, mayBeString) = member(number: move.number)
      if found != nil || !mayBeString { return found }
    }
    return member(name: move.nameBytes)
  }

  /// Like `value(at:)`, for a body whose encoder needed `sharedKeyCount` shared keys
  /// (`BodyEncoder.sharedKeyCount`). Names with lower numbers are stored only as numbers in this body, so
  /// they aren't searched as strings.
  @inlinable @inline(__always)
  package func value(at move: PathMove, sharedKeyCount: Int) -> UnsafeValue? {
    if move.name != nil, move.number >= 0, move.number < sharedKeyCount {
      return member(number: move.number).value
    }
    return value(at: move)
  }

  /// Returns the entry of a step's name that isn't a shared key.
  @usableFromInline
  func namedMember(_ move: UnsafeMutablePointer<PathMove>) -> UnsafeValue? {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return nil }
    let name = move.pointee.nameBytes
    let place = Int(move.pointee.place)
    if place < slots.count, let key = slots.value(place * 2)?.utf8, equalBytes(key, name) {
      return slots.member(slots.first + place * 2 * slots.width)
    }
    guard let found = slots.find(name: name) else { return nil }
    move.pointee.place = Int32(truncatingIfNeeded: (found - slots.first) / (2 * slots.width))
    return slots.member(found)
  }

  /// Returns the entry of a name that is stored as a string.
  @usableFromInline @inline(never)
  func member(name: UnsafeRawBufferPointer) -> UnsafeValue? {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return nil }
    return slots.find(name: name).flatMap { slots.member($0) }
  }
}
