import Bytes
import Fleece

//   row   := length:varint value*                 length of all values, in bytes; how many values follows from the file
//   value := 00                                   missing
//          | 01 | 02 | 03                         null, false, true
//          | 04 integer:8 | 05 unsigned:8         the lowest byte first
//          | 06 double:8
//          | 07 text | 08 text                    a string, binary data
//          | 09 count:varint value*               an array
//          | 0A count:varint (text value)*        an object
//   text  := length:varint bytes
//
// Temporary files are read by the run that wrote them, so the format has no version.

/// Writes and reads rows of values for temporary files.
enum RowCoding {
  private enum Tag {
    static let missing: UInt8 = 0
    static let null: UInt8 = 1
    static let no: UInt8 = 2
    static let yes: UInt8 = 3
    static let integer: UInt8 = 4
    static let unsigned: UInt8 = 5
    static let double: UInt8 = 6
    static let string: UInt8 = 7
    static let data: UInt8 = 8
    static let array: UInt8 = 9
    static let object: UInt8 = 10
  }

  // MARK: Writing

  static func append(
    _ value: QueryValue, to bytes: inout ByteBuffer, _ sharedKeys: SharedKeys, depth: Int = 0
  ) {
    switch value {
    case .missing: bytes.append(Tag.missing)
    case .null: bytes.append(Tag.null)
    case .bool(let value): bytes.append(value ? Tag.yes : Tag.no)
    case .int(let value):
      bytes.append(Tag.integer)
      bytes.append(littleEndian: value)
    case .uint(let value):
      bytes.append(Tag.unsigned)
      bytes.append(littleEndian: value)
    case .double(let value):
      bytes.append(Tag.double)
      bytes.append(littleEndian: value.bitPattern)
    case .string(let text): append(Tag.string, text, to: &bytes)
    case .data(let data): append(Tag.data, data, to: &bytes)
    case .array, .computedArray:
      let isWhole = depth < FleeceLimits.depth
      bytes.append(Tag.array)
      bytes.append(varint: UInt64(isWhole ? value.count : 0))
      guard isWhole else { return }
      for index in 0..<value.count { append(value.item(index), to: &bytes, sharedKeys, depth: depth + 1) }
    case .object, .computedObject:
      let members = depth < FleeceLimits.depth ? value.sortedMembers(sharedKeys) : []
      bytes.append(Tag.object)
      bytes.append(varint: UInt64(members.count))
      for member in members {
        bytes.append(varint: UInt64(member.name.count))
        bytes.append(member.name.bytes)
        append(member.value, to: &bytes, sharedKeys, depth: depth + 1)
      }
    }
  }

  private static func append(_ tag: UInt8, _ text: TextSlice, to bytes: inout ByteBuffer) {
    bytes.append(tag)
    bytes.append(varint: UInt64(text.count))
    bytes.append(text.bytes)
  }

  // MARK: Reading

  /// Reads a value, whose texts stay where they are. Nil if there is none. Arrays and objects are made in `arena`.
  static func value(
    _ bytes: UnsafeRawBufferPointer, at offset: inout Int, _ arena: EvaluationArena, depth: Int = 0
  ) -> QueryValue? {
    guard offset < bytes.count, depth <= FleeceLimits.depth else { return nil }
    let tag = bytes[offset]
    offset += 1
    switch tag {
    case Tag.missing: return .missing
    case Tag.null: return .null
    case Tag.no: return .bool(false)
    case Tag.yes: return .bool(true)
    case Tag.integer: return word(bytes, at: &offset).map { .int(Int64(bitPattern: $0)) }
    case Tag.unsigned: return word(bytes, at: &offset).map { .uint($0) }
    case Tag.double: return word(bytes, at: &offset).map { .double(Double(bitPattern: $0)) }
    case Tag.string: return text(bytes, at: &offset).map { .string($0) }
    case Tag.data: return text(bytes, at: &offset).map { .data($0) }
    case Tag.array:
      guard let count = count(bytes, at: &offset) else { return nil }
      let items = arena.allocate(count, of: QueryValue.self)
      for index in 0..<count {
        guard let item = value(bytes, at: &offset, arena, depth: depth + 1) else { return nil }
        items[index] = item
      }
      return arena.array(asIs: items, count)
    case Tag.object:
      guard let count = count(bytes, at: &offset) else { return nil }
      let members = arena.allocate(count, of: ComputedObject.Member.self)
      for index in 0..<count {
        guard let name = text(bytes, at: &offset),
          let member = value(bytes, at: &offset, arena, depth: depth + 1)
        else { return nil }
        members[index] = ComputedObject.Member(name: name, value: member)
      }
      return arena.object(members, count)
    default: return nil
    }
  }

  /// A number of values that follow, each of which takes a byte at least.
  private static func count(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> Int? {
    guard let count = bytes.varint(at: &offset), count <= UInt64(bytes.count - offset) else { return nil }
    return Int(count)
  }

  static func word(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> UInt64? {
    guard bytes.count - offset >= 8 else { return nil }
    defer { offset += 8 }
    return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  private static func text(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> TextSlice? {
    guard let length = bytes.varint(at: &offset), length <= UInt64(bytes.count - offset) else { return nil }
    defer { offset += Int(length) }
    return TextSlice(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + Int(length))]))
  }
}
