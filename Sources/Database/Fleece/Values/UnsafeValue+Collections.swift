// Arrays and dictionaries in place: slots, items, entries, and lookups with resolved keys.

import Bytes

extension UnsafeValue {
  /// The maximum number of pointers that are followed after a pointer. Encoders write at most one.
  @inlinable static var longestChain: Int { 8 }

  /// Creates the value of a slot within the data, or nil if its pointer leads outside.
  @inlinable @inline(__always)
  init?(slot: UnsafePointer<UInt8>, isWide: Bool, start: UnsafePointer<UInt8>) {
    if slot[0] & 0x80 == 0 {
      self.init(position: slot, start: start, limit: slot + (isWide ? 4 : 2))
      return
    }
    // Documents have no external data. The "extern" bit of newer encoders is therefore part of an older
    // encoder's distance.
    let raw = UnsafeRawPointer(slot)
    let units =
      isWide
      ? Int(UInt32(bigEndian: raw.loadUnaligned(as: UInt32.self)) & 0x7FFF_FFFF)
      : Int(UInt16(bigEndian: raw.loadUnaligned(as: UInt16.self)) & 0x7FFF)
    guard units != 0, units &* 2 <= slot - start else { return nil }
    let target = slot - units &* 2
    if _fastPath(target[0] & 0x80 == 0) {
      self.init(position: target, start: start, limit: slot)
      return
    }
    guard let value = UnsafeValue.follow(target, limit: slot, start: start) else { return nil }
    self = value
  }

  /// Follows a pointer that another pointer led to. Such a pointer is always wide.
  @usableFromInline @inline(never)
  static func follow(
    _ pointer: UnsafePointer<UInt8>, limit: UnsafePointer<UInt8>, start: UnsafePointer<UInt8>
  ) -> UnsafeValue? {
    var pointer = pointer
    var limit = limit
    for _ in 0..<longestChain {
      guard limit - pointer >= 4 else { return nil }
      let units = Int(
        UInt32(bigEndian: UnsafeRawPointer(pointer).loadUnaligned(as: UInt32.self)) & 0x7FFF_FFFF)
      guard units != 0, units * 2 <= pointer - start else { return nil }
      limit = pointer
      pointer -= units * 2
      if pointer[0] & 0x80 == 0 { return UnsafeValue(position: pointer, start: start, limit: limit) }
    }
    return nil
  }

  /// Returns the slots of an array (one per item) or a dict (two per entry), or nil if they don't fit in the
  /// data.
  @inlinable @inline(__always)
  func slots(_ tag: UInt8) -> Slots? {
    let header = position[0]
    guard header &>> 4 == tag else { return nil }
    var count = Int(header & 7) &<< 8 | Int(position[1])
    var first = position + 2
    if _slowPath(count == longCount) {
      guard let (more, size) = readVarint(first, limit) else { return nil }
      count += more
      first += (size + 1) & ~1
    }
    let isWide = header & 0x08 != 0
    let perItem = tag == Tag.dict ? 2 : 1
    guard limit - first >= count &* perItem &* (isWide ? 4 : 2) else { return nil }
    return Slots(first: first, count: count, isWide: isWide, start: start)
  }

  @usableFromInline
  struct Slots: BitwiseCopyable {
    @usableFromInline let first: UnsafePointer<UInt8>
    /// The number of items of an array or of entries of a dict.
    @usableFromInline let count: Int
    @usableFromInline let isWide: Bool
    @usableFromInline let start: UnsafePointer<UInt8>

    @inlinable @inline(__always)
    init(first: UnsafePointer<UInt8>, count: Int, isWide: Bool, start: UnsafePointer<UInt8>) {
      self.first = first
      self.count = count
      self.isWide = isWide
      self.start = start
    }

    @inlinable @inline(__always)
    var width: Int { isWide ? 4 : 2 }

    /// The value of the slot at an index. The index counts slots.
    @inlinable @inline(__always)
    func value(_ index: Int) -> UnsafeValue? {
      UnsafeValue(slot: first + index &* width, isWide: isWide, start: start)
    }
  }

  /// The number of items of an array or of entries of a dictionary. 0 for other kinds of value and damaged
  /// values.
  @inlinable
  package var count: Int {
    switch tag {
    case Tag.array: slots(Tag.array)?.count ?? 0
    case Tag.dict: slots(Tag.dict)?.count ?? 0
    default: 0
    }
  }

  /// The item at an index of an array. Nil if it is out of bounds or damaged, and for other kinds of value.
  @inlinable
  package subscript(index: Int) -> UnsafeValue? {
    guard let slots = slots(Tag.array), index >= 0, index < slots.count else { return nil }
    return slots.value(index)
  }

  /// The entry of a resolved key. Nil if it is missing or `undefined`, and for other kinds of value.
  package subscript(key: Key) -> UnsafeValue? {
    key.utf8.withUnsafeBytes { value(number: key.number, name: $0) }
  }

  /// Returns the entry of a shared key's number, -1 for none, or else of its name.
  @inline(__always)
  private func value(number: Int, name: UnsafeRawBufferPointer) -> UnsafeValue? {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return nil }
    if number >= 0 {
      if let entry = slots.find(number: number) { return slots.member(entry) }
      // If not all names are shared, a name can be stored as a string although the table has it.
      guard slots.endsInStringKey else { return nil }
    }
    return slots.find(name: name).flatMap { slots.member($0) }
  }

  /// Returns the entry of a shared key's number. `mayBeString` tells whether the name can still be stored as
  /// a string.
  @inlinable @inline(__always)
  func member(number: Int) -> (value: UnsafeValue?, mayBeString: Bool) {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return (nil, false) }
    if let entry = slots.find(number: number) { return (slots.member(entry), false) }
    return (nil, slots.endsInStringKey)
  }

  /// Returns the entry of a step's shared key, and whether the name can still be stored as a string.
  @inlinable @inline(__always)
  func member(_ move: UnsafeMutablePointer<PathMove>) -> (value: UnsafeValue?, mayBeString: Bool) {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return (nil, false) }
    if let entry = slots.find(move) { return (slots.member(entry), false) }
    return (nil, slots.endsInStringKey)
  }

  /// Returns the entry of a name. To look up a name repeatedly, resolve a `Key` once instead.
  package func value(of name: String, sharedKeys: SharedKeys) -> UnsafeValue? {
    var name = name
    return name.withUTF8 { value(number: sharedKeys.number(of: $0), name: UnsafeRawBufferPointer($0)) }
  }
}

extension UnsafeValue.Slots {
  @inlinable @inline(__always)
  static func load(_ slot: UnsafePointer<UInt8>) -> Int {
    Int(UInt16(bigEndian: UnsafeRawPointer(slot).loadUnaligned(as: UInt16.self)))
  }

  /// Finds the key slot of a shared key. There must be at least one entry.
  ///
  /// The first bytes of small integers are lower than those of strings and pointers. The first two bytes of
  /// the slots, as unsigned numbers, are therefore ordered for all integers, and no key needs decoding.
  @inlinable @inline(__always)
  func find(number: Int) -> UnsafePointer<UInt8>? {
    let stride = isWide ? 8 : 4
    var base = first
    var left = count
    while left > 1 {
      let half = left &>> 1
      let probe = base + half &* stride
      base = UnsafeValue.Slots.load(probe) <= number ? probe : base
      left &-= half
    }
    return UnsafeValue.Slots.load(base) == number ? base : nil
  }

  /// Finds the key slot of a step's shared key, first where the last object had it. There must be at least one entry.
  @inlinable @inline(__always)
  func find(_ move: UnsafeMutablePointer<PathMove>) -> UnsafePointer<UInt8>? {
    let place = Int(move.pointee.place)
    if _fastPath(place < count) {
      let probe = first + place &* (isWide ? 8 : 4)
      if _fastPath(UnsafeValue.Slots.load(probe) == move.pointee.number) { return probe }
    }
    return search(move)
  }

  /// Finds the key slot of a step's shared key, and remembers where it is, or after which slot it would be.
  @usableFromInline @inline(never)
  func search(_ move: UnsafeMutablePointer<PathMove>) -> UnsafePointer<UInt8>? {
    let (stride, number, place) = (isWide ? 8 : 4, move.pointee.number, Int(move.pointee.place))
    if place < count {
      // The object may lack the name as the last one did.
      let probe = first + place &* stride
      let isAfter = place == 0 || UnsafeValue.Slots.load(probe) < number
      let isBefore = place + 1 == count || UnsafeValue.Slots.load(probe + stride) > number
      if isAfter, isBefore, UnsafeValue.Slots.load(probe) != number { return nil }
    }
    var index = 0
    var left = count
    while left > 1 {
      let half = left &>> 1
      if UnsafeValue.Slots.load(first + (index &+ half) &* stride) <= number { index &+= half }
      left &-= half
    }
    move.pointee.place = Int32(truncatingIfNeeded: index)
    let found = first + index &* stride
    return UnsafeValue.Slots.load(found) == number ? found : nil
  }

  /// Returns the value of an entry from its key slot.
  @inlinable @inline(__always)
  func member(_ key: UnsafePointer<UInt8>) -> UnsafeValue? {
    let value = UnsafeValue(slot: key + width, isWide: isWide, start: start)
    return value?.isUndefined == true ? nil : value
  }

  @inlinable @inline(__always)
  var endsInStringKey: Bool {
    UnsafeValue.Slots.load(first + (count &- 1) &* (isWide ? 8 : 4)) >= FleeceLimits.sharedKeys
  }

  /// Finds the key slot of a name that is stored as a string.
  @inline(never)
  func find(name: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      guard let key = value(middle * 2) else { return nil }
      // Integers are before strings.
      var order = 1
      if let string = key.utf8 {
        order = compareBytes(name, string)
      } else if key.type != .int {
        return nil
      }
      if order == 0 { return first + middle * 2 * width }
      if order < 0 { high = middle } else { low = middle + 1 }
    }
    return nil
  }
}

extension UnsafeValue {
  /// The items of an array, in order. Empty for other kinds of value. A damaged item reads as null.
  @inlinable
  package var items: Items {
    Items(slots: slots(Tag.array) ?? Slots(first: position, count: 0, isWide: false, start: start))
  }

  /// The entries of a dictionary in stored order: shared keys by number, then names by their bytes. Empty for
  /// other kinds of value. `undefined` and damaged entries are left out.
  @inlinable
  package var entries: Entries {
    Entries(slots: slots(Tag.dict) ?? Slots(first: position, count: 0, isWide: false, start: start))
  }

  /// The value of damaged items.
  @usableFromInline nonisolated(unsafe) static let null: UnsafePointer<UInt8> = {
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 2)
    bytes[0] = 0x30
    bytes[1] = 0
    return UnsafePointer(bytes)
  }()

  /// The items of an array.
  @usableFromInline package struct Items: Sequence, IteratorProtocol {
    @usableFromInline let slots: Slots
    @usableFromInline var index = 0

    @inlinable
    init(slots: Slots) { self.slots = slots }

    /// Returns the next item, or nil after the last one.
    @inlinable
    package mutating func next() -> UnsafeValue? {
      guard index < slots.count else { return nil }
      defer { index += 1 }
      if let value = slots.value(index) { return value }
      return UnsafeValue(position: UnsafeValue.null, start: UnsafeValue.null, limit: UnsafeValue.null + 2)
    }
  }

  /// An entry of a dictionary.
  @usableFromInline package struct Entry {
    /// The key: a small integer (the number of a shared key) or a string.
    @usableFromInline package let key: UnsafeValue
    /// The value.
    @usableFromInline package let value: UnsafeValue

    @inlinable @inline(__always)
    init(key: UnsafeValue, value: UnsafeValue) {
      self.key = key
      self.value = value
    }

    /// Returns the name. Nil if the table doesn't have the key's number, or if the key is neither a number
    /// nor UTF-8.
    package func name(in sharedKeys: SharedKeys) -> String? {
      utf8(in: sharedKeys).flatMap { String(utf8: $0) }
    }

    /// Returns the bytes of the name. They are valid as long as the body and the table live.
    @usableFromInline package func utf8(in sharedKeys: SharedKeys) -> UnsafeRawBufferPointer? {
      if let number = key.int { return sharedKeys.utf8(of: Int(number)) }
      return key.utf8
    }
  }

  /// The entries of a dictionary.
  @usableFromInline package struct Entries: Sequence, IteratorProtocol {
    @usableFromInline let slots: Slots
    @usableFromInline var index = 0

    @inlinable
    init(slots: Slots) { self.slots = slots }

    /// Returns the next entry, or nil after the last one.
    @inlinable
    package mutating func next() -> Entry? {
      while index < slots.count {
        defer { index += 1 }
        if let key = slots.value(index * 2), let value = slots.value(index * 2 + 1), !value.isUndefined {
          return Entry(key: key, value: value)
        }
      }
      return nil
    }
  }
}
