// Converts a JSONValue to the tape that the encoding pass reads, so that one encoder serves JSON text and
// values.

import Bytes

/// Writes values to its own tape.
struct JSONTapeBuilder: ~Copyable {
  private var words = RawStack<UInt64>()
  private var strings = ByteBuffer()

  /// Builds the tape of a value. The tape is valid until the next call.
  ///
  /// - Throws: `FleeceError.tooDeep`, `.notFinite`, `.tooLarge`.
  mutating func build(_ value: JSONValue) throws(FleeceError) -> JSONTape {
    words.removeAll(keepingAtMost: 1 << 19)
    strings.removeAll(keepingAtMost: 1 << 22)
    words.push(0)
    try append(value, depth: 0)
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
