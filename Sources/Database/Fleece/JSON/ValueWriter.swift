// Writes values in place as JSON text: the members of objects in the order of the body, or sorted by the bytes of their names.
//
// The place where the text ends goes from call to call in a register. Wherever a value begins, at least `slack` bytes are free
// there: more than a shared name, a number, a comma and a bracket need. So only strings, which may be longer, ask for room of
// their own.

import Bytes
import CSimdjson

/// Writes one value with all that it holds.
struct ValueWriter: ~Copyable {
  /// Where the text ends.
  private typealias End = UnsafeMutablePointer<UInt8>

  /// A name for sorting, with its first eight bytes as a number, in the order of bytes, with zeros behind a shorter name. The
  /// number decides most comparisons.
  private struct SortedName: BitwiseCopyable {
    let prefix: UInt64
    let utf8: UnsafeRawBufferPointer

    @inline(__always)
    init(_ utf8: UnsafeRawBufferPointer) {
      self.utf8 = utf8
      if utf8.count >= 8 {
        prefix = UInt64(bigEndian: utf8.loadUnaligned(as: UInt64.self))
      } else {
        var bytes: UInt64 = 0
        for index in 0..<utf8.count { bytes |= UInt64(utf8[index]) &<< UInt64(56 &- 8 &* index) }
        prefix = bytes
      }
    }

    @inline(__always)
    func compare(_ other: SortedName) -> Int {
      prefix == other.prefix ? compareBytes(utf8, other.utf8) : prefix < other.prefix ? -1 : 1
    }
  }

  /// A member of an object that isn't sorted by its entries, since a name is there twice, or since there are many.
  private struct Member: BitwiseCopyable {
    var name: SortedName
    var value: UnsafeValue
    var isShared: Bool
  }

  /// How the entries of a dictionary come into order.
  private enum Order {
    /// They are to be written as they are stored.
    case stored
    /// By the numbers on `entries`.
    case sorted
    /// By comparing their names.
    case byNames
  }

  private static var slack: Int { 128 }
  /// Objects with at most so many members are sorted by insertion.
  private static var fewMembers: Int { 32 }

  /// Orders of objects with at most so many members are remembered.
  private static var remembered: Int { 12 }

  /// The numbers of entries in sorted order: the place of the name in the table of shared keys, and below it, in 16 bits, the
  /// number of the entry. First come the remembered orders, one for each number of entries, then those of the objects that are
  /// being written.
  private var entries: RawStack<UInt32>
  /// The numbers of entries, as bits, of which an order is remembered.
  private var orders: UInt32 = 0
  /// The members of the objects that are sorted by comparing names.
  private var members = RawStack<Member>(capacity: 0)
  private var budget: UnsafeValue.Budget
  /// The last place of the buffer with `slack` bytes behind it.
  private var last: UnsafeMutablePointer<UInt8>
  /// The bytes of the body end here. Those before can be read in blocks.
  private let readable: UnsafePointer<UInt8>
  private let table: KeyTable
  private let keyCount: Int
  /// The places of the shared names in sorted order; nil if members have the order of the body.
  private let places: UnsafePointer<UInt16>?
  private let sharedKeys: SharedKeys

  /// Appends the JSON text of a value. After an error, the text ends anywhere behind what it had before.
  static func write(
    _ value: UnsafeValue, sharedKeys: SharedKeys, canonical: Bool, to text: inout ByteBuffer
  ) throws(FleeceError) {
    var writer = ValueWriter(value, sharedKeys: sharedKeys, canonical: canonical, text.base)
    let start = writer.makeRoom(0, at: text.base + text.count, in: &text)
    try writer.budget.spend(bytes: 0)
    let end = try writer.write(value, depth: 0, at: start, in: &text)
    text.count = end - text.base
  }

  private init(_ root: UnsafeValue, sharedKeys: SharedKeys, canonical: Bool, _ base: End) {
    budget = UnsafeValue.Budget(root)
    last = base
    readable = root.limit
    table = sharedKeys.table
    keyCount = sharedKeys.count
    places = canonical ? sharedKeys.places : nil
    self.sharedKeys = sharedKeys
    let remembered = canonical ? (Self.remembered + 1) * Self.remembered : 0
    entries = RawStack<UInt32>(capacity: canonical ? remembered + 64 : 0)
    entries.count = remembered
  }

  /// Makes room for `length` bytes and the slack. Returns where the text ends now.
  @inline(never)
  private mutating func makeRoom(_ length: Int, at end: End, in text: inout ByteBuffer) -> End {
    text.count = end - text.base
    text.reserve(length + Self.slack)
    last = text.base + (text.capacity - Self.slack)
    return text.base + text.count
  }

  // MARK: Values

  @inline(__always)
  private mutating func write(
    _ value: UnsafeValue, depth: Int, at end: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    switch value.tag {
    case Tag.string:
      guard let utf8 = value.bytes(Tag.string) else { throw value.damaged("the string is cut off") }
      return try writeString(utf8, readable: readable, at: end, in: &text)
    case Tag.smallInt:
      let twelve = UInt16(value.position[0]) &<< 8 | UInt16(value.position[1])
      let integer = Int64(Int16(bitPattern: twelve &<< 4) &>> 4)
      return writeInteger((UInt64(bitPattern: integer), isUnsigned: false), at: end)
    case Tag.dict:
      return try writeDict(value, depth: depth, at: end, in: &text)
    case Tag.array:
      return try writeArray(value, depth: depth, at: end, in: &text)
    default:
      return try writeScalar(value, at: end, in: &text)
    }
  }

  @inline(__always)
  private func writeInteger(_ integer: (bits: UInt64, isUnsigned: Bool), at end: End) -> End {
    let signed = Int64(bitPattern: integer.bits)
    guard !integer.isUnsigned, signed < 0 else { return writeDecimal(integer.bits, to: end) }
    end[0] = UInt8(ascii: "-")
    return writeDecimal(signed.magnitude, to: end + 1)
  }

  @inline(never)
  private mutating func writeScalar(
    _ value: UnsafeValue, at end: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    switch value.tag {
    case Tag.float:
      guard let double = value.double else { throw value.damaged("the double is cut off") }
      guard double.isFinite else { throw .notFinite }
      return end
        + json_format_double(double, UnsafeMutableRawPointer(end).assumingMemoryBound(to: CChar.self))
    case Tag.special:
      guard let bool = value.bool else {
        guard !value.isUndefined else { throw value.damaged("undefined has no JSON form") }
        return write(word: 0x6C6C_756E, count: 4, at: end)  // null
      }
      // true, false
      return bool
        ? write(word: 0x6575_7274, count: 4, at: end) : write(word: 0x65_736C_6166, count: 5, at: end)
    case Tag.data:
      guard let data = value.data else { throw value.damaged("the binary data is cut off") }
      try budget.spend(bytes: data.count)
      text.count = end - text.base
      text.appendBase64String(data.bindMemory(to: UInt8.self))
      return makeRoom(0, at: text.base + text.count, in: &text)
    default:
      guard let integer = value.integer else { throw value.damaged("the integer is cut off") }
      return writeInteger(integer, at: end)
    }
  }

  @inline(__always)
  private func write(word: UInt64, count: Int, at end: End) -> End {
    UnsafeMutableRawPointer(end).storeBytes(of: word, as: UInt64.self)
    return end + count
  }

  /// Writes a string. Bytes up to `readable` can be read, so that whole blocks can be copied.
  @inline(__always)
  private mutating func writeString(
    _ utf8: UnsafeRawBufferPointer, readable: UnsafePointer<UInt8>, at start: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    try budget.spend(values: 0, bytes: utf8.count)
    var end = start
    if _slowPath(last - end < utf8.count) { end = makeRoom(utf8.count, at: end, in: &text) }
    end[0] = UInt8(ascii: "\"")
    end += 1
    var from = utf8.assumingStart
    let stop = from + utf8.count
    while from < stop {
      guard _fastPath(UInt(bitPattern: readable) &- UInt(bitPattern: from) >= 16) else {
        return finishString(from, stop, at: end, in: &text)
      }
      let plain = Int(json_copy_block(end, from))
      if plain < 16 {
        if from + plain < stop { return finishString(from + plain, stop, at: end + plain, in: &text) }
        break
      }
      from += 16
      end += 16
    }
    // The last block may have been copied beyond the end of the string.
    end += stop - from
    end[0] = UInt8(ascii: "\"")
    return end + 1
  }

  /// Writes the rest of a string, from an escape on.
  @inline(never)
  private mutating func finishString(
    _ from: UnsafePointer<UInt8>, _ stop: UnsafePointer<UInt8>, at end: End, in text: inout ByteBuffer
  ) -> End {
    text.appendJSONStringSlowly(from, stop, written: end)
    return makeRoom(0, at: text.base + text.count, in: &text)
  }

  // MARK: Collections

  @inline(never)
  private mutating func writeArray(
    _ array: UnsafeValue, depth: Int, at start: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    guard let slots = array.slots(Tag.array) else { throw array.damaged("the array is cut off") }
    start[0] = UInt8(ascii: "[")
    var end = start + 1
    for index in 0..<slots.count {
      guard let item = slots.value(index) else {
        throw array.damaged("item \(index) points outside the data")
      }
      try budget.spend(bytes: 0)
      if _slowPath(end > last) { end = makeRoom(0, at: end, in: &text) }
      end = try write(item, depth: depth &+ 1, at: end, in: &text)
      end[0] = UInt8(ascii: ",")
      end += 1
    }
    return close(UInt8(ascii: "]"), isEmpty: slots.count == 0, at: end, in: &text)
  }

  @inline(never)
  private mutating func writeDict(
    _ dict: UnsafeValue, depth: Int, at start: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    guard let slots = dict.slots(Tag.dict) else { throw dict.damaged("the dictionary is cut off") }
    start[0] = UInt8(ascii: "{")
    var end = start + 1
    let first = entries.count
    let order = slots.count > 1 ? try sort(dict, slots) : .stored
    if order == .byNames {
      end = try writeByNames(dict, slots, depth, at: end, in: &text)
    } else {
      for place in 0..<slots.count {
        let index = order == .stored ? place : Int(entries.base[first &+ place] & 0xFFFF)
        guard let value = slots.value(index &* 2 &+ 1) else {
          throw dict.damaged("entry \(index) points outside the data")
        }
        if _slowPath(end > last) { end = makeRoom(0, at: end, in: &text) }
        let number = slots.number(index)
        if _fastPath(number < keyCount) {
          if value.isUndefined { continue }
          let (name, length) = table.name(of: number)
          try budget.spend(values: 2, bytes: length)
          end = ValueWriter.write(name, length, at: end)
        } else {
          let (name, value) = try dict.entry(slots, index, sharedKeys)
          if value.isUndefined { continue }
          try budget.spend(values: 2, bytes: 0)
          end = try write(name, of: dict, at: end, in: &text)
        }
        end = try write(value, depth: depth &+ 1, at: end, in: &text)
        end[0] = UInt8(ascii: ",")
        end += 1
      }
      entries.count = first
    }
    return close(UInt8(ascii: "}"), isEmpty: end[-1] == UInt8(ascii: "{"), at: end, in: &text)
  }

  /// Closes a collection. The closing byte replaces the last comma.
  @inline(__always)
  private mutating func close(_ byte: UInt8, isEmpty: Bool, at start: End, in text: inout ByteBuffer) -> End {
    let end = isEmpty ? start + 1 : start
    end[-1] = byte
    return _slowPath(end > last) ? makeRoom(0, at: end, in: &text) : end
  }

  /// Writes a shared name, which needs no escapes, with its quotes and the colon.
  @inline(__always)
  private static func write(_ name: ShortName, _ length: Int, at end: End) -> End {
    let target = UnsafeMutableRawPointer(end)
    target.storeBytes(of: UInt8(ascii: "\""), as: UInt8.self)
    target.storeBytes(of: name.low, toByteOffset: 1, as: UInt64.self)
    target.storeBytes(of: name.high, toByteOffset: 9, as: UInt64.self)
    // ":
    target.storeBytes(of: 0x3A22, toByteOffset: length &+ 1, as: UInt16.self)
    return end + (length &+ 3)
  }

  /// Writes a name that may need escapes, with the colon.
  @inline(never)
  private mutating func write(
    _ name: UnsafeRawBufferPointer, of dict: UnsafeValue, at start: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    // A name outside the body is in the table of shared keys, which has 16 bytes for each.
    let end = try writeString(
      name, readable: dict.holds(name) ? readable : name.assumingStart + 16, at: start, in: &text)
    end[0] = UInt8(ascii: ":")
    return _slowPath(end >= last) ? makeRoom(0, at: end + 1, in: &text) : end + 1
  }

  // MARK: Order

  /// Finds the order of a dictionary's entries, which are at least two. If they have to be sorted, their numbers are on `entries`
  /// afterwards.
  @inline(__always)
  private mutating func sort(_ dict: UnsafeValue, _ slots: UnsafeValue.Slots) throws(FleeceError) -> Order {
    guard let places else { return .stored }
    if slots.count <= Self.remembered, recall(slots, places) { return .sorted }
    // The names mostly had one order in all texts. If that was sorted, their numbers are too.
    var place = -1
    var index = 0
    while index < slots.count {
      let number = slots.number(index)
      guard number < keyCount else { break }
      let next = Int(places[number])
      guard next > place else { break }
      place = next
      index &+= 1
    }
    return index == slots.count ? .stored : try sort(dict, slots, places, sorted: index)
  }

  /// Puts the last order of as many entries on `entries`, if it is the order of these. Siblings mostly have the same names.
  @inline(__always)
  private mutating func recall(_ slots: UnsafeValue.Slots, _ places: UnsafePointer<UInt16>) -> Bool {
    guard orders & (1 &<< UInt32(slots.count)) != 0 else { return false }
    entries.reserve(slots.count)
    let target = entries.base + entries.count
    let order = entries.base + slots.count &* Self.remembered
    for place in 0..<slots.count {
      let entry = order[place]
      let number = slots.number(Int(entry & 0xFFFF))
      guard number < keyCount, places[number] == UInt16(truncatingIfNeeded: entry &>> 16) else {
        return false
      }
      target[place] = entry
    }
    entries.count &+= slots.count
    return true
  }

  /// Sorts entries, the first of which are in order.
  @inline(never)
  private mutating func sort(
    _ dict: UnsafeValue, _ slots: UnsafeValue.Slots, _ places: UnsafePointer<UInt16>, sorted: Int
  ) throws(FleeceError) -> Order {
    // With distinct names there are no more.
    guard slots.count <= FleeceLimits.sharedKeys else { return .byNames }
    entries.reserve(slots.count)
    let base = entries.base + entries.count
    let isShort = slots.count <= Self.fewMembers
    // Shared names come first.
    var shared = 0
    while shared < slots.count {
      let number = slots.number(shared)
      guard number < keyCount else { break }
      let entry = UInt32(places[number]) &<< 16 | UInt32(truncatingIfNeeded: shared)
      var hole = shared
      if shared >= sorted, isShort {
        while hole > 0, base[hole &- 1] > entry {
          base[hole] = base[hole &- 1]
          hole &-= 1
        }
      }
      base[hole] = entry
      shared &+= 1
    }
    if !isShort {
      guard shared == slots.count else { return .byNames }
      var unsorted = UnsafeMutableBufferPointer(start: base, count: shared)
      unsorted.sort()
    }
    // Of two entries with one name, only the first counts.
    var index = 1
    while index < shared {
      if base[index] &>> 16 == base[index &- 1] &>> 16 { return .byNames }
      index &+= 1
    }
    for index in shared..<slots.count {
      let name = SortedName(try dict.entry(slots, index, sharedKeys).utf8)
      var hole = index
      while hole > 0 {
        let other = SortedName(try dict.entry(slots, Int(base[hole &- 1] & 0xFFFF), sharedKeys).utf8)
        let order = name.compare(other)
        if order == 0 { return .byNames }
        if order > 0 { break }
        base[hole] = base[hole &- 1]
        hole &-= 1
      }
      base[hole] = UInt32(truncatingIfNeeded: index)
    }
    if shared == slots.count, shared <= Self.remembered {
      (entries.base + shared &* Self.remembered).update(from: base, count: shared)
      orders |= 1 &<< UInt32(shared)
    }
    entries.count &+= slots.count
    return .sorted
  }

  /// Writes the members of a dictionary, sorted by comparing their names, each with a comma.
  @inline(never)
  private mutating func writeByNames(
    _ dict: UnsafeValue, _ slots: UnsafeValue.Slots, _ depth: Int, at start: End, in text: inout ByteBuffer
  ) throws(FleeceError) -> End {
    let first = members.count
    for index in 0..<slots.count {
      let (name, value) = try dict.entry(slots, index, sharedKeys)
      if value.isUndefined { continue }
      members.push(Member(name: SortedName(name), value: value, isShared: !dict.holds(name)))
    }
    let count = sort(first, members.count - first)
    var end = start
    for index in first..<(first + count) {
      let member = members.base[index]
      try budget.spend(values: 2, bytes: 0)
      if end > last { end = makeRoom(0, at: end, in: &text) }
      end = try write(member.name.utf8, of: dict, at: end, in: &text)
      end = try write(member.value, depth: depth + 1, at: end, in: &text)
      end[0] = UInt8(ascii: ",")
      end += 1
    }
    members.count = first
    return end
  }

  /// Sorts members by name and keeps the first of each name, the shared key. Returns the number that is left.
  private mutating func sort(_ first: Int, _ count: Int) -> Int {
    guard count > 1 else { return count }
    let base = members.base + first
    if count <= Self.fewMembers {
      for index in 1..<count {
        let member = base[index]
        var hole = index
        while hole > 0, member.name.compare(base[hole - 1].name) < 0 {
          base[hole] = base[hole - 1]
          hole -= 1
        }
        base[hole] = member
      }
    } else {
      var unsorted = UnsafeMutableBufferPointer(start: base, count: count)
      unsorted.sort {
        let order = $0.name.compare($1.name)
        return order < 0 || (order == 0 && $0.isShared && !$1.isShared)
      }
    }
    var kept = 0
    for index in 1..<count where base[kept].name.compare(base[index].name) != 0 {
      kept += 1
      base[kept] = base[index]
    }
    return kept + 1
  }
}

extension UnsafeValue.Slots {
  /// The number that an entry has as its key. A number of a table of shared keys is below 2,048. All other keys give greater ones.
  @inline(__always)
  fileprivate func number(_ index: Int) -> Int { Self.load(first + index &* (isWide ? 8 : 4)) }
}

extension UnsafeValue {
  /// Whether the name of an entry is in the data. Else it is in the table of shared keys.
  @inline(__always)
  fileprivate func holds(_ name: UnsafeRawBufferPointer) -> Bool {
    start <= name.assumingStart && name.assumingStart < limit
  }
}

extension UnsafeRawBufferPointer {
  /// The start of a string of a body or a table. Such strings always have an address.
  @inline(__always)
  fileprivate var assumingStart: UnsafePointer<UInt8> {
    baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
  }
}
