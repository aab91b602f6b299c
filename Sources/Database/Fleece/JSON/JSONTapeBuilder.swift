// Converts a JSONValue to the tape that the encoding pass reads, so that one encoder serves JSON text and
// values.

import Bytes

/// A property of a body that gets another value, or is removed.
package struct BodyChange: Sendable {
  /// The names that lead to the property, at least one. Where a name on the way leads to no object, nothing is changed.
  package let path: [ByteString]
  /// The new value. Nil removes the property.
  package let value: JSONValue?

  /// Creates a change.
  package init(_ path: [ByteString], _ value: JSONValue?) {
    self.path = path
    self.value = value
  }

  /// The most changes of one body.
  package static let maximum = 64
}

/// Writes values to its own tape.
struct JSONTapeBuilder: ~Copyable {
  private var words = RawStack<UInt64>()
  private var strings = ByteBuffer()
  /// How many values may follow. A body can refer to one value from many places.
  private var valuesLeft = 0

  /// Builds the tape of a value. The tape is valid until the next call.
  ///
  /// - Throws: `FleeceError.tooDeep`, `.notFinite`, `.tooLarge`.
  mutating func build(_ value: JSONValue) throws(FleeceError) -> JSONTape {
    clear()
    try append(value, depth: 0)
    return tape()
  }

  /// Builds the tape of a stored body with other values at some paths, none of which lies within another one. The tape is
  /// valid until the next call. Nil for a body that isn't as the encoder writes them, or is damaged.
  ///
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`, `.tooLarge`.
  mutating func build(
    _ root: UnsafeValue, _ sharedKeys: SharedKeys, _ changes: [BodyChange]
  ) throws(FleeceError) -> JSONTape? {
    guard changes.count <= BodyChange.maximum else { return nil }
    clear()
    valuesLeft = (root.limit - root.start) * 2 + 16
    let all = changes.isEmpty ? 0 : UInt64.max >> UInt64(BodyChange.maximum - changes.count)
    guard root.type == .dict, try append(root, sharedKeys, changes, all, depth: 0) else { return nil }
    return tape()
  }

  private mutating func clear() {
    words.removeAll(keepingAtMost: 1 << 19)
    strings.removeAll(keepingAtMost: 1 << 22)
    words.push(0)
  }

  private mutating func tape() -> JSONTape {
    strings.reserve(32)
    return JSONTape(words: UnsafePointer(words.base), strings: UnsafePointer(strings.base))
  }

  private static func word(_ tag: UInt8, _ payload: Int) -> UInt64 {
    UInt64(tag) << 56 | UInt64(payload)
  }

  private mutating func append(_ value: JSONValue, depth: Int) throws(FleeceError) {
    switch value {
    case .null: words.push(JSONTapeBuilder.word(TapeTag.null, 0))
    case .bool(true): words.push(JSONTapeBuilder.word(TapeTag.true, 0))
    case .bool(false): words.push(JSONTapeBuilder.word(TapeTag.false, 0))
    case .int(let int): append(TapeTag.int, UInt64(bitPattern: int))
    case .uint(let uint): append(uint > UInt64(Int64.max) ? TapeTag.uint : TapeTag.int, uint)
    case .double(let double):
      guard double.isFinite else { throw .notFinite }
      append(TapeTag.double, double.bitPattern)
    case .string(let string): try append(string)
    case .data(let data):
      try data.withUnsafeBufferPointer { bytes throws(FleeceError) in try append(TapeTag.data, bytes) }
    case .array(let items):
      let start = try open(depth)
      for item in items { try append(item, depth: depth + 1) }
      try close(start, TapeTag.array, TapeTag.arrayEnd, items.count)
    case .object(let members):
      let start = try open(depth)
      for (name, member) in members {
        try append(name)
        try append(member, depth: depth + 1)
      }
      try close(start, TapeTag.object, TapeTag.objectEnd, members.count)
    }
  }

  /// Appends a stored value. `open` has a bit for each change whose path leads here. False for an unusual or damaged value.
  private mutating func append(
    _ value: UnsafeValue, _ sharedKeys: SharedKeys, _ changes: [BodyChange], _ open: UInt64, depth: Int
  ) throws(FleeceError) -> Bool {
    valuesLeft &-= 1
    guard valuesLeft >= 0 else { return false }
    switch value.type {
    case .null:
      guard !value.isUndefined else { return false }
      words.push(JSONTapeBuilder.word(TapeTag.null, 0))
    case .bool:
      words.push(JSONTapeBuilder.word(value.bool == true ? TapeTag.true : TapeTag.false, 0))
    case .int:
      guard let integer = value.integer else { return false }
      let isBig = integer.isUnsigned && integer.bits > UInt64(Int64.max)
      append(isBig ? TapeTag.uint : TapeTag.int, integer.bits)
    case .double:
      guard let double = value.double, double.isFinite else { return false }
      append(TapeTag.double, double.bitPattern)
    case .string:
      guard let utf8 = value.utf8, isUTF8(utf8) else { return false }
      try append(TapeTag.string, utf8.assumingMemoryBound(to: UInt8.self))
    case .data:
      guard let data = value.data else { return false }
      try append(TapeTag.data, data.assumingMemoryBound(to: UInt8.self))
    case .array:
      guard depth < FleeceLimits.depth, let items = value.slots(Tag.array) else { return false }
      let start = try self.open(depth)
      for index in 0..<items.count {
        guard let item = items.value(index), try append(item, sharedKeys, changes, 0, depth: depth + 1)
        else { return false }
      }
      try close(start, TapeTag.array, TapeTag.arrayEnd, items.count)
    case .dict:
      guard depth < FleeceLimits.depth, let entries = value.slots(Tag.dict) else { return false }
      return try append(entries, sharedKeys, changes, open, depth: depth)
    }
    return true
  }

  private mutating func append(
    _ entries: UnsafeValue.Slots, _ sharedKeys: SharedKeys, _ changes: [BodyChange], _ open: UInt64,
    depth: Int
  ) throws(FleeceError) -> Bool {
    let start = try self.open(depth)
    var count = 0
    var open = open
    var lastNumber: Int64 = -1
    var last: UnsafeRawBufferPointer?
    for index in 0..<entries.count {
      guard let key = entries.value(index &* 2), let member = entries.value(index &* 2 &+ 1) else {
        return false
      }
      // The encoder writes names in order, numbers first, and each once.
      let name: UnsafeRawBufferPointer
      if let number = key.int {
        guard last == nil, number > lastNumber, let utf8 = sharedKeys.utf8(of: Int(number)) else {
          return false
        }
        lastNumber = number
        name = utf8
      } else {
        guard let utf8 = key.utf8, isUTF8(utf8), last.map({ $0.lexicographicallyPrecedes(utf8) }) ?? true,
          sharedKeys.number(of: utf8.assumingMemoryBound(to: UInt8.self)) < 0
        else { return false }
        last = utf8
        name = utf8
      }
      guard !member.isUndefined else { return false }
      var inner: UInt64 = 0
      var replacing: Int?
      var rest = open
      while rest != 0 {
        let number = rest.trailingZeroBitCount
        rest &= rest &- 1
        let path = changes[number].path
        guard path[depth].bytes.count == name.count, path[depth].bytes.elementsEqual(name) else { continue }
        open &= ~(1 << UInt64(number))
        if path.count == depth + 1 { replacing = number } else { inner |= 1 << UInt64(number) }
      }
      if let replacing {
        // The old value goes, but a damaged body isn't mended in passing.
        let (wordCount, stringCount) = (words.count, strings.count)
        guard try append(member, sharedKeys, changes, 0, depth: depth + 1) else { return false }
        words.count = wordCount
        strings.truncate(to: stringCount)
        guard let new = changes[replacing].value else { continue }
        try append(TapeTag.string, name.assumingMemoryBound(to: UInt8.self))
        try append(new, depth: depth + 1)
      } else {
        try append(TapeTag.string, name.assumingMemoryBound(to: UInt8.self))
        guard try append(member, sharedKeys, changes, inner, depth: depth + 1) else { return false }
      }
      count += 1
    }
    // What isn't there yet.
    while open != 0 {
      let change = changes[open.trailingZeroBitCount]
      open &= open &- 1
      guard change.path.count == depth + 1, let new = change.value else { continue }
      try change.path[depth].bytes.withUnsafeBufferPointer { name throws(FleeceError) in
        try append(TapeTag.string, name)
      }
      try append(new, depth: depth + 1)
      count += 1
    }
    try close(start, TapeTag.object, TapeTag.objectEnd, count)
    return true
  }

  private mutating func append(_ tag: UInt8, _ number: UInt64) {
    words.push(JSONTapeBuilder.word(tag, 0))
    words.push(number)
  }

  private mutating func append(_ string: String) throws(FleeceError) {
    var string = string
    string.makeContiguousUTF8()
    let fit = string.utf8.withContiguousStorageIfAvailable { append(unchecked: TapeTag.string, $0) }
    guard fit == true else { throw .tooLarge(limit: FleeceLimits.text) }
  }

  private mutating func append(_ tag: UInt8, _ bytes: UnsafeBufferPointer<UInt8>) throws(FleeceError) {
    guard append(unchecked: tag, bytes) else { throw .tooLarge(limit: FleeceLimits.text) }
  }

  private mutating func append(unchecked tag: UInt8, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count <= FleeceLimits.text - strings.count else { return false }
    words.push(JSONTapeBuilder.word(tag, strings.count))
    strings.reserve(bytes.count + 5)
    strings.append(littleEndian: UInt32(bytes.count))
    strings.append(UnsafeRawBufferPointer(bytes))
    strings.append(0)
    return true
  }

  private mutating func open(_ depth: Int) throws(FleeceError) -> Int {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    words.push(0)
    return words.count - 1
  }

  private mutating func close(
    _ start: Int, _ tag: UInt8, _ endTag: UInt8, _ count: Int
  ) throws(FleeceError) {
    words.push(JSONTapeBuilder.word(endTag, start))
    guard words.count <= FleeceLimits.text / 4 else { throw .tooLarge(limit: FleeceLimits.text) }
    words.base[start] = JSONTapeBuilder.word(tag, min(count, 0xFF_FFFF) << 32 | words.count)
  }
}
