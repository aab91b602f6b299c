// Encodes objects: members in canonical order, dict slots with integer keys first.

import Bytes

/// A member of an open object: its name, prepared for comparison and lookup, and the place of its value.
struct Member: BitwiseCopyable {
  /// The first 16 bytes of the name as two big-endian numbers, padded with zeros. They compare like the
  /// bytes.
  var prefix: UInt64
  var suffix: UInt64
  /// The offset of the name's bytes in the tape's strings.
  var name: UInt32
  var length: UInt32
  /// The tape index of the value.
  var value: UInt32
}

extension Member {
  /// Whether the name is strictly before another name in byte order. `strings` are the tape's strings.
  @inline(__always)
  func precedes(_ other: Member, _ strings: UnsafePointer<UInt8>) -> Bool {
    if prefix != other.prefix { return prefix < other.prefix }
    if suffix != other.suffix { return suffix < other.suffix }
    return precedesSlowly(other, strings)
  }

  /// Compares names whose first 16 bytes are the same, except for zeros that can be padding.
  @inline(never)
  private func precedesSlowly(_ other: Member, _ strings: UnsafePointer<UInt8>) -> Bool {
    if length > 16, other.length > 16 {
      let rest = Int(min(length, other.length)) - 16
      let order = compareBytes(
        UnsafeRawBufferPointer(start: strings + Int(name) + 16, count: rest),
        UnsafeRawBufferPointer(start: strings + Int(other.name) + 16, count: rest))
      if order != 0 { return order < 0 }
    }
    return length < other.length
  }
}

extension EncodingPass {
  mutating func encodeObject<Text: EncodedText>(
    _ index: Int, depth: Int, _ text: Text.Type
  ) throws(FleeceError) -> Slot {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    let firstMember = members.count
    let count = collectMembers(index)
    if depth == 0 { findUnderscoredName(firstMember, count) }
    if Text.isWritten { json.append(UInt8(ascii: "{")) }
    if count == 0 {
      if Text.isWritten { json.append(UInt8(ascii: "}")) }
      return Inline.emptyDict
    }
    let firstSlot = slots.count
    slots.reserve(count &* 2)
    slots.count &+= count &* 2
    var slotIndex = firstSlot
    var lastRank: Slot = 0
    var inOrder = true
    for memberIndex in firstMember..<(firstMember &+ count) {
      let key = encodeName(members.base[memberIndex], text)
      let rank = EncodingPass.rank(key)
      inOrder = inOrder && rank >= lastRank
      lastRank = rank
      let value = try encodeValue(Int(members.base[memberIndex].value), depth: depth &+ 1, text)
      slots.base[slotIndex] = key
      slots.base[slotIndex &+ 1] = value
      slotIndex &+= 2
      if Text.isWritten { json.append(UInt8(ascii: ",")) }
    }
    if Text.isWritten { json.base[json.count &- 1] = UInt8(ascii: "}") }
    members.count = firstMember
    if !inOrder { sortSlots(firstSlot, count) }
    return writeCollection(Tag.dict, first: firstSlot, count: count &* 2)
  }

  private mutating func findUnderscoredName(_ first: Int, _ count: Int) {
    for index in first..<(first &+ count) where members.base[index].prefix &>> 56 == UInt8(ascii: "_") {
      let start = tape.strings + Int(members.base[index].name)
      underscoredName = UnsafeBufferPointer(start: start, count: Int(members.base[index].length))
      return
    }
  }

  /// Pushes the members of an object in canonical order, only the last of each name. Returns their number.
  private mutating func collectMembers(_ index: Int) -> Int {
    let tape = self.tape
    let first = members.count
    let end = JSONTape.end(tape.words[index]) &- 1
    var position = index &+ 1
    var inOrder = true
    var shape: UInt64 = 0
    var last = Member(prefix: 0, suffix: 0, name: 0, length: 0, value: 0)
    while position < end {
      let word = tape.words[position]
      let name = tape.string(word)
      let start = name.baseAddress.unsafelyUnwrapped
      let short = ShortName(overreading: start, length: min(name.count, 16))
      let member = Member(
        prefix: short.low.byteSwapped, suffix: short.high.byteSwapped,
        name: UInt32(truncatingIfNeeded: JSONTape.payload(word) &+ 4),
        length: UInt32(truncatingIfNeeded: name.count), value: UInt32(truncatingIfNeeded: position &+ 1))
      shape = (shape &<< 5 | shape &>> 59) ^ short.hash
      inOrder = inOrder && (members.count == first || last.precedes(member, tape.strings))
      members.push(member)
      last = member
      position = tape.next(position &+ 1)
    }
    let count = members.count &- first
    return inOrder ? count : sortMembers(first, count, shape: shape)
  }

  /// Sorts the members on top of the stack and keeps only the last of each name. Returns the number that is
  /// left.
  private mutating func sortMembers(_ first: Int, _ count: Int, shape: UInt64) -> Int {
    members.reserve(count)
    let strings = tape.strings
    let base = members.base + first
    let spare = base + count
    if count <= ShapeCache.largest, shapes.apply(shape, base, into: spare, count) {
      var inOrder = true
      for index in 1..<count { inOrder = inOrder && spare[index &- 1].precedes(spare[index], strings) }
      if inOrder {
        base.update(from: spare, count: count)
        return count
      }
    }
    if count <= ShapeCache.largest {
      for index in 1..<count {
        let member = base[index]
        var hole = index
        while hole > 0, member.precedes(base[hole &- 1], strings) {
          base[hole] = base[hole &- 1]
          hole &-= 1
        }
        base[hole] = member
      }
    } else {
      // Tape order breaks ties, so that the last member of a name is the last.
      var unsorted = UnsafeMutableBufferPointer(start: base, count: count)
      unsorted.sort {
        $0.precedes($1, strings) || (!$1.precedes($0, strings) && $0.value < $1.value)
      }
    }
    var kept = 0
    for index in 1..<count {
      if base[kept].precedes(base[index], strings) { kept &+= 1 }
      base[kept] = base[index]
    }
    kept &+= 1
    members.count = first &+ kept
    if kept == count, count <= ShapeCache.largest { shapes.record(shape, base, count) }
    return kept
  }

  /// Writes a name to the JSON and returns the slot of its key.
  @inline(__always)
  private mutating func encodeName<Text: EncodedText>(_ member: Member, _ text: Text.Type) -> Slot {
    let length = Int(member.length)
    if length <= FleeceLimits.sharedKeyLength {
      let short = ShortName(low: member.prefix.byteSwapped, high: member.suffix.byteSwapped)
      let number = keys.pointee.table.find(short, length: length)
      if _fastPath(number >= 0) { return writeSharedName(short, length, number, text) }
      return encodeNewName(member, short, text)
    }
    return encodeStringName(member, text)
  }

  /// Writes the name of a shared key. It needs no escapes in the JSON.
  @inline(__always)
  private mutating func writeSharedName<Text: EncodedText>(
    _ short: ShortName, _ length: Int, _ number: Int, _ text: Text.Type
  ) -> Slot {
    highestKey = max(highestKey, number)
    guard Text.isWritten else { return Slot(truncatingIfNeeded: number) }
    json.reserve(32)
    let target = UnsafeMutableRawPointer(json.base + json.count)
    target.storeBytes(of: UInt8(ascii: "\""), as: UInt8.self)
    target.storeBytes(of: short.low, toByteOffset: 1, as: UInt64.self)
    target.storeBytes(of: short.high, toByteOffset: 9, as: UInt64.self)
    target.storeBytes(of: 0x3A22, toByteOffset: length &+ 1, as: UInt16.self)  // ":
    json.count &+= length &+ 3
    return Slot(truncatingIfNeeded: number)
  }

  @inline(never)
  private mutating func encodeNewName<Text: EncodedText>(
    _ member: Member, _ short: ShortName, _ text: Text.Type
  ) -> Slot {
    let length = Int(member.length)
    let name = UnsafeBufferPointer(start: tape.strings + Int(member.name), count: length)
    if KeyTable.isEligible(name) {
      let number = keys.pointee.add(short, length: length)
      if number >= 0 { return writeSharedName(short, length, number, text) }
    }
    return encodeStringName(member, text)
  }

  @inline(never)
  private mutating func encodeStringName<Text: EncodedText>(_ member: Member, _ text: Text.Type) -> Slot {
    let start = tape.strings + Int(member.name)
    if Text.isWritten {
      appendEscapedName(start, Int(member.length))
      json.append(UInt8(ascii: ":"))
    }
    return writeString(start, Int(member.length))
  }

  /// The sort key of a dict slot: shared keys by number, then strings. Strings are already in order.
  @inline(__always)
  static func rank(_ key: Slot) -> Slot { min(key, Slot(FleeceLimits.sharedKeys)) }

  /// Moves integer keys to the front, ordered by number. The order of strings stays.
  mutating func sortSlots(_ first: Int, _ count: Int) {
    let base = UnsafeMutableRawPointer(slots.base + first)
      .bindMemory(to: (Slot, Slot).self, capacity: count)
    if count <= 64 {
      for index in 1..<count {
        let pair = base[index]
        let rank = EncodingPass.rank(pair.0)
        var hole = index
        while hole > 0, rank < EncodingPass.rank(base[hole &- 1].0) {
          base[hole] = base[hole &- 1]
          hole &-= 1
        }
        base[hole] = pair
      }
      return
    }
    // There are at most 2,048 integer keys. They are put into a table by number, and strings move up behind
    // them.
    withUnsafeTemporaryAllocation(of: (Slot, Slot).self, capacity: FleeceLimits.sharedKeys) { integers in
      let absent = Slot.max
      integers.initialize(repeating: (absent, 0))
      var target = count
      for index in stride(from: count - 1, through: 0, by: -1) {
        let pair = base[index]
        if pair.0 < Slot(FleeceLimits.sharedKeys) {
          integers[Int(pair.0)] = pair
        } else {
          target -= 1
          base[target] = pair
        }
      }
      target = 0
      for pair in integers where pair.0 != absent {
        base[target] = pair
        target += 1
      }
    }
  }
}
