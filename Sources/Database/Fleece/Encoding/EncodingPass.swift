// One pass over a tape that writes the Fleece body and, if requested, the canonical JSON.
//
// Fleece is written bottom up: a value is written before the collection that contains it. The pass keeps a
// slot for the value. The collection writes its slots when it is closed:
//
//   slot = 0iiiiiii 0000.... value of two bytes that stands in the slot itself (low 16 bits)
//        | 1uuuuuuu uuuu.... unit (offset in the body / 2) of a value that the slot points to
//
// A collection has narrow pointers (2 bytes) if all targets are within 32,766 bytes. Otherwise its slots are
// wide (4 bytes). The root is the last value. The last two bytes point to it or are the root itself.

import Bytes
import CSimdjson

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

typealias Slot = UInt32

/// Whether a pass writes the canonical JSON. It is a type and not a value, so that the check costs nothing at
/// run time.
protocol EncodedText { static var isWritten: Bool { get } }

enum CanonicalText: EncodedText {
  @inline(__always) static var isWritten: Bool { true }
}

enum NoText: EncodedText {
  @inline(__always) static var isWritten: Bool { false }
}

/// The state of the encoder in raw memory, without exclusivity checks or bounds checks.
struct EncodingPass: ~Copyable {
  var out = ByteBuffer()
  var json = ByteBuffer()
  /// The slots of the open collections. The innermost collection is on top.
  var slots = RawStack<Slot>()
  /// The members of the open objects. The innermost object is on top.
  var members = RawStack<Member>()
  var strings = StringInterner()
  var shapes = ShapeCache()
  var highestKey = -1
  /// The number of calls of `clear`.
  private(set) var encodings: UInt64 = 0
  /// The first top-level name that begins with an underscore. It points into the tape.
  var underscoredName: UnsafeBufferPointer<UInt8>?
  /// Whether the top-level value is an object.
  private(set) var isObject = false
  /// Whether `json` has the text of the value in `out`.
  private(set) var hasText = true
  private(set) var tape: JSONTape
  var keys: UnsafeMutablePointer<SharedKeysBuilder.State>

  static let isPointer: Slot = 0x8000_0000
  /// The highest address. Strings on a tape can always be read past their end.
  private static var everywhere: UnsafePointer<UInt8> {
    UnsafePointer(bitPattern: UInt.max).unsafelyUnwrapped
  }

  init() {
    let nowhere = UnsafeMutableRawPointer(bitPattern: 8).unsafelyUnwrapped
    tape = JSONTape(
      words: UnsafePointer(nowhere.assumingMemoryBound(to: UInt64.self)),
      strings: UnsafePointer(nowhere.assumingMemoryBound(to: UInt8.self)))
    keys = nowhere.assumingMemoryBound(to: SharedKeysBuilder.State.self)
  }

  /// Clears the results. Memory that only a very large document needed is released.
  mutating func clear() {
    encodings &+= 1
    out.removeAll(keepingAtMost: 1 << 22)
    json.removeAll(keepingAtMost: 1 << 22)
    slots.removeAll(keepingAtMost: 1 << 20)
    members.removeAll(keepingAtMost: 1 << 17)
    strings.removeAll()
    highestKey = -1
    underscoredName = nil
    isObject = false
    hasText = true
  }

  mutating func encode<Text: EncodedText>(
    _ tape: JSONTape, keys: UnsafeMutablePointer<SharedKeysBuilder.State>, _ text: Text.Type
  ) throws(FleeceError) {
    self.tape = tape
    self.keys = keys
    isObject = JSONTape.tag(tape.words[1]) == TapeTag.object
    hasText = Text.isWritten
    let root = try encodeValue(1, depth: 0, text)
    // The reach of a wide pointer limits the size of a body.
    guard out.count <= FleeceLimits.body else { throw .tooLarge(limit: FleeceLimits.body) }
    writeRoot(root)
  }

  mutating func writeRoot(_ root: Slot) {
    out.reserve(6)
    guard root & EncodingPass.isPointer != 0 else { return writeBigEndian(UInt16(root)) }
    let distance = UInt32(out.count / 2) - (root & ~EncodingPass.isPointer)
    if distance <= narrowReach {
      writeBigEndian(UInt16(0x8000 | distance))
    } else {
      writeBigEndian(UInt16(0x8000 | distance >> 16))
      writeBigEndian(UInt16(truncatingIfNeeded: distance))
      writeBigEndian(0x8002)
    }
  }

  @inline(__always)
  private mutating func writeBigEndian(_ value: UInt16) {
    UnsafeMutableRawPointer(out.base + out.count).storeBytes(of: value.bigEndian, as: UInt16.self)
    out.count &+= 2
  }

  /// The slot of a value that begins at the end of the output.
  @inline(__always)
  var here: Slot { EncodingPass.isPointer | UInt32(truncatingIfNeeded: out.count &>> 1) }

  /// Writes the value at a tape index and returns its slot. A value that fits the slot isn't written to the
  /// body.
  mutating func encodeValue<Text: EncodedText>(_ index: Int, depth: Int, _ text: Text.Type)
    throws(FleeceError) -> Slot
  {
    let word = tape.words[index]
    switch JSONTape.tag(word) {
    case TapeTag.string: return encodeString(word, text)
    case TapeTag.object: return try encodeObject(index, depth: depth, text)
    case TapeTag.array: return try encodeArray(index, depth: depth, text)
    case TapeTag.int:
      let value = Int64(bitPattern: tape.words[index &+ 1])
      if Text.isWritten { json.appendInteger(value) }
      return value < 0 ? writeNegative(value) : writePositive(UInt64(bitPattern: value))
    case TapeTag.uint:
      if Text.isWritten { json.appendInteger(tape.words[index &+ 1]) }
      return writePositive(tape.words[index &+ 1])
    case TapeTag.double:
      let value = Double(bitPattern: tape.words[index &+ 1])
      if Text.isWritten { json.appendDouble(value) }
      return writeDouble(value)
    case TapeTag.true:
      if Text.isWritten { json.append(word: 0x6575_7274, count: 4) }  // true
      return Inline.true
    case TapeTag.false:
      if Text.isWritten { json.append(word: 0x65_736C_6166, count: 5) }  // false
      return Inline.false
    case TapeTag.data:
      let bytes = tape.string(word)
      if Text.isWritten { json.appendBase64String(bytes) }
      return writeData(bytes)
    default:
      if Text.isWritten { json.append(word: 0x6C6C_756E, count: 4) }  // null
      return Inline.null
    }
  }

  private mutating func encodeArray<Text: EncodedText>(_ index: Int, depth: Int, _ text: Text.Type)
    throws(FleeceError) -> Slot
  {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    if Text.isWritten { json.append(UInt8(ascii: "[")) }
    let first = slots.count
    let end = JSONTape.end(tape.words[index]) &- 1
    var item = index &+ 1
    while item < end {
      let slot = try encodeValue(item, depth: depth &+ 1, text)
      slots.push(slot)
      if Text.isWritten { json.append(UInt8(ascii: ",")) }
      item = tape.next(item)
    }
    if slots.count == first {
      if Text.isWritten { json.append(UInt8(ascii: "]")) }
      return Inline.emptyArray
    }
    if Text.isWritten { json.base[json.count &- 1] = UInt8(ascii: "]") }
    return writeCollection(Tag.array, first: first, count: slots.count &- first)
  }

  /// Writes a collection with the slots from `first` on, and removes them from the stack.
  mutating func writeCollection(_ tag: UInt8, first: Int, count: Int) -> Slot {
    let items = tag == Tag.dict ? count &>> 1 : count
    let slot = here
    out.reserve(count &* 4 &+ 16)
    let header = out.count
    out.base[header] = tag &<< 4 | UInt8(truncatingIfNeeded: min(items, longCount) &>> 8)
    out.base[header &+ 1] = UInt8(truncatingIfNeeded: min(items, longCount))
    out.count &+= 2
    if items >= longCount {
      writeVarint(items &- longCount)
      pad()
    }
    let source = slots.base + first
    // Narrow slots are tried first. If a target is too far, the slots are written again as wide ones.
    let start = out.count
    var unit = UInt32(truncatingIfNeeded: start &>> 1)
    var farthest: UInt32 = 0
    var target = UnsafeMutableRawPointer(out.base + start)
    for index in 0..<count {
      let slot = source[index]
      let mask = UInt32(bitPattern: Int32(bitPattern: slot) &>> 31)
      let distance = (unit &- slot) & mask & ~EncodingPass.isPointer
      farthest = max(farthest, distance)
      let bits = (mask & (0x8000 | distance)) | (~mask & slot)
      target.storeBytes(of: UInt16(truncatingIfNeeded: bits).bigEndian, as: UInt16.self)
      target += 2
      unit &+= 1
    }
    out.count = start &+ count &* 2
    if _slowPath(farthest > narrowReach) {
      out.base[header] |= 0x08
      writeWideSlots(source, count, at: start)
    }
    slots.count = first
    return slot
  }

  private mutating func writeWideSlots(_ source: UnsafeMutablePointer<Slot>, _ count: Int, at start: Int) {
    var unit = UInt32(start / 2)
    var target = UnsafeMutableRawPointer(out.base + start)
    for index in 0..<count {
      let slot = source[index]
      let bits =
        slot & EncodingPass.isPointer != 0
        ? EncodingPass.isPointer | (unit &- slot) & ~EncodingPass.isPointer : slot << 16
      target.storeBytes(of: bits.bigEndian, as: UInt32.self)
      target += 4
      unit += 2
    }
    out.count = start + count * 4
  }

  @inline(__always)
  private mutating func encodeString<Text: EncodedText>(_ word: UInt64, _ text: Text.Type) -> Slot {
    let bytes = tape.string(word)
    let start = bytes.baseAddress.unsafelyUnwrapped
    if bytes.count > 15 {
      return Text.isWritten ? encodeLongString(start, bytes.count) : writeString(start, bytes.count)
    }
    if Text.isWritten {
      json.appendJSONString(start, bytes.count, readable: EncodingPass.everywhere)
    }
    return writeString(start, bytes.count)
  }

  /// Writes a long string, which is never shared. Each block is read once and written to both outputs.
  private mutating func encodeLongString(_ start: UnsafePointer<UInt8>, _ length: Int) -> Slot {
    let slot = here
    out.reserve(length &+ 32)
    out.base[out.count] = Tag.string &<< 4 | 15
    out.count &+= 1
    writeVarint(length)
    json.reserve(length &+ 34)
    json.base[json.count] = UInt8(ascii: "\"")
    let body = out.base + out.count
    let text = json.base + (json.count &+ 1)
    out.count &+= length
    pad()
    var offset = 0
    while offset < length {
      let position = Int(json_copy_block2(text + offset, body + offset, start + offset))
      if position < 16, offset &+ position < length {
        memcpy(body + offset, start + offset, length &- offset)
        json.appendJSONStringSlowly(
          start + (offset &+ position), start + length, written: text + (offset &+ position))
        // The last block may have overwritten the padding.
        body[length] = 0
        return slot
      }
      offset &+= 16
    }
    body[length] = 0
    json.count &+= length &+ 2
    json.base[json.count &- 1] = UInt8(ascii: "\"")
    return slot
  }

  @inline(__always)
  mutating func appendEscapedName(_ start: UnsafePointer<UInt8>, _ length: Int) {
    json.appendJSONString(start, length, readable: EncodingPass.everywhere)
  }
}
