// Encodes a Fleece body again with this pass's table of shared keys.
//
// Every part of the source is checked. `undefined` is left out of dictionaries and is null in arrays.
// Dictionary keys are sorted, and of repeated keys only one is kept. No JSON is written.

import Bytes

/// The table of shared keys of a source body, and the remaining output budget. The budget is needed because
/// pointers to shared values let small data stand for large output.
struct TranscodingSource {
  let table: KeyTable
  private var values: Int
  private var bytes: Int
  private let limit: Int

  init(_ root: UnsafeValue, _ table: KeyTable) {
    self.table = table
    let size = root.limit - root.start
    limit = size * 64 + 1024
    values = size * 2 + 16
    bytes = limit
  }

  @inline(__always)
  mutating func spend(bytes count: Int) throws(FleeceError) {
    values &-= 1
    bytes &-= count
    if _slowPath(values < 0 || bytes < 0) { throw .tooLarge(limit: limit) }
  }
}

extension EncodingPass {
  /// Encodes a value that uses the table of `source`.
  mutating func transcode(
    _ root: UnsafeValue, _ source: inout TranscodingSource,
    keys: UnsafeMutablePointer<SharedKeysBuilder.State>
  ) throws(FleeceError) {
    self.keys = keys
    let slot = try transcodeValue(root, &source, depth: 0)
    guard out.count <= FleeceLimits.body else { throw .tooLarge(limit: FleeceLimits.body) }
    writeRoot(slot)
  }

  /// Takes a validated body as it is.
  mutating func copy(_ body: UnsafeRawBufferPointer, sharedKeyCount: Int) {
    out.append(body)
    highestKey = sharedKeyCount - 1
  }

  private mutating func transcodeValue(
    _ value: UnsafeValue, _ source: inout TranscodingSource, depth: Int
  ) throws(FleeceError) -> Slot {
    switch value.type {
    case .null:
      try source.spend(bytes: 0)
      return Inline.null
    case .bool:
      try source.spend(bytes: 0)
      return value.bool == true ? Inline.true : Inline.false
    case .int:
      try source.spend(bytes: 8)
      guard let integer = value.integer else { throw value.damaged("the integer doesn't fit into the data") }
      if integer.isUnsigned { return writePositive(integer.bits) }
      let signed = Int64(bitPattern: integer.bits)
      return signed < 0 ? writeNegative(signed) : writePositive(integer.bits)
    case .double:
      try source.spend(bytes: 8)
      guard let double = value.double else { throw value.damaged("the double doesn't fit into the data") }
      guard double.isFinite else { throw .notFinite }
      return writeDouble(double)
    case .string:
      guard let utf8 = value.utf8 else { throw value.damaged("the string doesn't fit into the data") }
      return try transcodeString(utf8, of: value, &source)
    case .data:
      guard let data = value.data else { throw value.damaged("the binary data doesn't fit into the body") }
      try source.spend(bytes: data.count)
      return writeData(data.bindMemory(to: UInt8.self))
    case .array: return try transcodeArray(value, &source, depth: depth)
    case .dict: return try transcodeDict(value, &source, depth: depth)
    }
  }

  private mutating func transcodeString(
    _ utf8: UnsafeRawBufferPointer, of value: UnsafeValue, _ source: inout TranscodingSource
  ) throws(FleeceError) -> Slot {
    try source.spend(bytes: utf8.count)
    guard isUTF8(utf8) else { throw value.damaged("the string is not UTF-8") }
    let start = utf8.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
    // Bytes past the end of a string can be read only within the body.
    if utf8.count < 2 || utf8.count > 15 || value.limit - start >= 16 {
      return writeString(start, utf8.count)
    }
    return writeShort(ShortName(exactly: UnsafeBufferPointer(start: start, count: utf8.count)), utf8.count)
  }

  private mutating func transcodeArray(
    _ value: UnsafeValue, _ source: inout TranscodingSource, depth: Int
  ) throws(FleeceError) -> Slot {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    guard let items = value.slots(Tag.array) else { throw value.damaged("the slots don't fit into the data") }
    try source.spend(bytes: items.count)
    if items.count == 0 { return Inline.emptyArray }
    let first = slots.count
    for index in 0..<items.count {
      guard let item = items.value(index) else {
        throw value.damaged("item \(index) points outside the data")
      }
      let slot = try transcodeValue(item, &source, depth: depth &+ 1)
      slots.push(slot)
    }
    return writeCollection(Tag.array, first: first, count: slots.count &- first)
  }

  private mutating func transcodeDict(
    _ value: UnsafeValue, _ source: inout TranscodingSource, depth: Int
  ) throws(FleeceError) -> Slot {
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    guard let entries = value.slots(Tag.dict) else {
      throw value.damaged("the slots don't fit into the data")
    }
    try source.spend(bytes: entries.count)
    if entries.count == 0 { return Inline.emptyDict }
    // Keys are read first. An unusual dictionary is encoded by name instead, before any value is written.
    let first = slots.count
    var lastNumber = -1
    var lastRank: Slot = 0
    var inOrder = true
    for index in 0..<entries.count {
      guard let key = entries.value(index &* 2) else {
        throw value.damaged("entry \(index) points outside the data")
      }
      var own = -1
      if key.tag == Tag.smallInt, let number = key.int, number > lastNumber {
        guard number < source.table.count else {
          throw .unknownSharedKey(number: Int(number), count: source.table.count)
        }
        lastNumber = Int(number)
        own = sharedNumber(
          of: source.table.names[lastNumber], length: Int(source.table.lengths[lastNumber]))
      }
      guard own >= 0, entries.value(index &* 2 &+ 1)?.isUndefined != true else {
        slots.count = first
        return try transcodeByName(value, entries, &source, depth: depth)
      }
      let slot = Slot(truncatingIfNeeded: own)
      inOrder = inOrder && slot >= lastRank
      lastRank = slot
      slots.push(slot)
      slots.push(Inline.null)
    }
    for index in 0..<entries.count {
      guard let item = entries.value(index &* 2 &+ 1) else {
        throw value.damaged("entry \(index) points outside the data")
      }
      let slot = try transcodeValue(item, &source, depth: depth &+ 1)
      slots.base[first &+ index &* 2 &+ 1] = slot
    }
    if !inOrder { sortSlots(first, entries.count) }
    return writeCollection(Tag.dict, first: first, count: slots.count &- first)
  }

  /// Returns the number of an eligible name in this pass's table. A missing name is added; if the table is
  /// full, the result is -1.
  @inline(__always)
  private mutating func sharedNumber(of name: ShortName, length: Int) -> Int {
    var number = keys.pointee.table.find(name, length: length)
    if _slowPath(number < 0) { number = keys.pointee.add(name, length: length) }
    highestKey = max(highestKey, number)
    return number
  }

  /// Encodes a dictionary sorted by name. Of members with the same name, the first is kept.
  @inline(never)
  private mutating func transcodeByName(
    _ value: UnsafeValue, _ entries: UnsafeValue.Slots, _ source: inout TranscodingSource, depth: Int
  ) throws(FleeceError) -> Slot {
    var members: [(name: UnsafeBufferPointer<UInt8>, value: UnsafeValue)] = []
    members.reserveCapacity(entries.count)
    for index in 0..<entries.count {
      guard let key = entries.value(index &* 2), let item = entries.value(index &* 2 &+ 1) else {
        throw value.damaged("entry \(index) points outside the data")
      }
      if item.isUndefined { continue }
      if key.tag == Tag.smallInt, let number = key.int {
        guard number >= 0 else { throw key.damaged("a key can't be a negative number (inheritance)") }
        guard number < source.table.count else {
          throw .unknownSharedKey(number: Int(number), count: source.table.count)
        }
        members.append((source.table.utf8(of: Int(number)), item))
      } else {
        guard let utf8 = key.utf8 else { throw key.damaged("a key must be a number or a string") }
        try source.spend(bytes: utf8.count)
        guard isUTF8(utf8) else { throw key.damaged("the name is not UTF-8") }
        members.append((utf8.bindMemory(to: UInt8.self), item))
      }
    }
    // The sort is stable: of members with the same name, a reader finds the first.
    let order = members.indices.sorted {
      let order = compareBytes(
        UnsafeRawBufferPointer(members[$0].name), UnsafeRawBufferPointer(members[$1].name))
      return order == 0 ? $0 < $1 : order < 0
    }
    let first = slots.count
    var last: UnsafeBufferPointer<UInt8>?
    for index in order {
      let member = members[index]
      if let last, last.elementsEqual(member.name) { continue }
      last = member.name
      let key = keySlot(of: member.name)
      slots.push(key)
      let slot = try transcodeValue(member.value, &source, depth: depth &+ 1)
      slots.push(slot)
    }
    let count = (slots.count &- first) / 2
    guard count > 0 else { return Inline.emptyDict }
    sortSlots(first, count)
    return writeCollection(Tag.dict, first: first, count: count &* 2)
  }

  private mutating func keySlot(of name: UnsafeBufferPointer<UInt8>) -> Slot {
    if KeyTable.isEligible(name) {
      let number = sharedNumber(of: ShortName(exactly: name), length: name.count)
      if number >= 0 { return Slot(truncatingIfNeeded: number) }
    }
    if name.count > 1, name.count < 16 { return writeShort(ShortName(exactly: name), name.count) }
    guard let start = name.baseAddress, !name.isEmpty else { return Inline.emptyString }
    return writeString(start, name.count)
  }
}
