// Encodes scalars: integers, doubles, strings and data.

import Bytes

extension EncodingPass {
  /// Pads the body to an even length.
  @inline(__always)
  mutating func pad() {
    out.base[out.count] = 0
    out.count = (out.count &+ 1) & ~1
  }

  /// Writes a varint. The caller has reserved the room.
  mutating func writeVarint(_ value: Int) {
    out.count &+= Varint.write(UInt64(truncatingIfNeeded: value), to: out.base + out.count)
  }

  @inline(__always)
  mutating func writePositive(_ value: UInt64) -> Slot {
    if value < 2048 { return Slot(truncatingIfNeeded: value) }
    return writeInteger(value, bytes: 8 &- value.leadingZeroBitCount &>> 3, header: 0x18)
  }

  mutating func writeNegative(_ value: Int64) -> Slot {
    if value >= -2048 { return Slot(truncatingIfNeeded: value) & 0xFFF }
    // The sign needs one bit more than the magnitude.
    let bytes = (64 - (~value).leadingZeroBitCount) / 8 + 1
    let bits = UInt64(bitPattern: value)
    return writeInteger(bytes == 8 ? bits : bits & ((1 << UInt64(bytes * 8)) - 1), bytes: bytes, header: 0x10)
  }

  /// Writes the header, then the low bytes of `bits`. The higher bytes of `bits` are 0.
  @inline(__always)
  private mutating func writeInteger(_ bits: UInt64, bytes: Int, header: UInt8) -> Slot {
    let slot = here
    out.reserve(16)
    out.base[out.count] = header | UInt8(truncatingIfNeeded: bytes &- 1)
    UnsafeMutableRawPointer(out.base + (out.count &+ 1)).storeBytes(of: bits, as: UInt64.self)
    out.count &+= bytes &+ 1
    pad()
    return slot
  }

  mutating func writeDouble(_ value: Double) -> Slot {
    let slot = here
    out.reserve(16)
    let target = UnsafeMutableRawPointer(out.base + out.count)
    let float = Float(value)
    if Double(float).bitPattern == value.bitPattern {
      target.storeBytes(of: 0x0024, as: UInt16.self)
      target.storeBytes(of: float.bitPattern, toByteOffset: 2, as: UInt32.self)
      out.count &+= 6
    } else {
      target.storeBytes(of: 0x0028, as: UInt16.self)
      target.storeBytes(of: value.bitPattern, toByteOffset: 2, as: UInt64.self)
      out.count &+= 10
    }
    return slot
  }

  /// Writes a string of a tape. The function can read 16 bytes past its end.
  @inline(__always)
  mutating func writeString(_ start: UnsafePointer<UInt8>, _ length: Int) -> Slot {
    if length > 15 { return writeLong(Tag.string, start, length) }
    if length < 2 { return length == 0 ? Inline.emptyString : 0x4100 | Slot(start[0]) }
    return writeShort(ShortName(overreading: start, length: length), length)
  }

  /// Writes a string of 2...15 bytes, or returns the slot of an earlier copy.
  @inline(__always)
  mutating func writeShort(_ name: ShortName, _ length: Int) -> Slot {
    let unit = UInt32(truncatingIfNeeded: out.count &>> 1)
    // Leave some distance for the bytes between here and the slot.
    let oldest = unit < narrowReach &- 500 ? 0 : unit &- (narrowReach &- 500)
    if let earlier = strings.find(name, length: length, oldest: oldest, orRecord: unit) {
      return EncodingPass.isPointer | earlier
    }
    let slot = here
    out.reserve(32)
    var target = out.base + out.count
    target[0] = Tag.string &<< 4 | UInt8(truncatingIfNeeded: length)
    target += 1
    if _slowPath(length == 15) {
      target[0] = 15
      target += 1
      out.count &+= 1
    }
    UnsafeMutableRawPointer(target).storeBytes(of: name.low, as: UInt64.self)
    UnsafeMutableRawPointer(target).storeBytes(of: name.high, toByteOffset: 8, as: UInt64.self)
    out.count &+= length &+ 1
    pad()
    return slot
  }

  mutating func writeData(_ bytes: UnsafeBufferPointer<UInt8>) -> Slot {
    let start = bytes.baseAddress.unsafelyUnwrapped
    if bytes.count < 2 { return bytes.isEmpty ? Inline.emptyData : 0x5100 | Slot(start[0]) }
    return writeLong(Tag.data, start, bytes.count)
  }

  private mutating func writeLong(_ tag: UInt8, _ start: UnsafePointer<UInt8>, _ length: Int) -> Slot {
    let slot = here
    out.reserve(length &+ 16)
    out.base[out.count] = tag &<< 4 | UInt8(truncatingIfNeeded: min(length, 15))
    out.count &+= 1
    if length >= 15 { writeVarint(length) }
    out.append(UnsafeRawBufferPointer(start: start, count: length))
    out.reserve(1)
    pad()
    return slot
  }
}
