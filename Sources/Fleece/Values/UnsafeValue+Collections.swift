// Arrays and dictionaries in place: slots, items, entries, and lookups by resolved keys.

extension UnsafeValue {
  /// Pointers that lead to pointers are followed this often; encoders write one such step at most.
  @inlinable static var longestChain: Int { 8 }

  /// The value of a slot that lies within its data, or nil when its pointer leads outside.
  @inlinable @inline(__always)
  init?(slot: UnsafePointer<UInt8>, isWide: Bool, start: UnsafePointer<UInt8>) {
    if slot[0] & 0x80 == 0 {
      self.init(position: slot, start: start, limit: slot + (isWide ? 4 : 2))
      return
    }
    // Without external data, what newer encoders mark "extern" is an older encoder's longer distance.
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

  /// Follows a pointer that another pointer led to: always a wide one.
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

  /// The slots of an array (one for each item) or a dict (two for each entry), or nil when they don't fit.
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
    /// Items of an array, entries of a dict.
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

    /// The value of the slot at an index, counted in slots.
    @inlinable @inline(__always)
    func value(_ index: Int) -> UnsafeValue? {
      UnsafeValue(slot: first + index &* width, isWide: isWide, start: start)
    }
  }

  /// The number of items of an array or of entries of a dictionary; 0 for anything else, or damaged.
  @inlinable
  public var count: Int {
    switch tag {
    case Tag.array: slots(Tag.array)?.count ?? 0
    case Tag.dict: slots(Tag.dict)?.count ?? 0
    default: 0
    }
  }

  /// An item of an array; nil out of bounds, when damaged, and for other kinds of value.
  @inlinable
  public subscript(index: Int) -> UnsafeValue? {
    guard let slots = slots(Tag.array), index >= 0, index < slots.count else { return nil }
    return slots.value(index)
  }

  /// The entry of a resolved key; nil when there is none (or `undefined`), and for other kinds of value.
  public subscript(key: Key) -> UnsafeValue? {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return nil }
    if key.number >= 0 {
      if let entry = slots.find(number: key.number) { return slots.member(entry) }
      // Where not all names are shared, a name may stand as a string although the table has it.
      guard slots.endsInStringKey else { return nil }
    }
    return key.utf8.withUnsafeBytes { slots.find(name: $0) }.flatMap { slots.member($0) }
  }

  /// The entry of a shared key's number, for dictionaries in which no name stands as a string.
  @inlinable @inline(__always)
  func member(number: Int) -> (value: UnsafeValue?, mayBeString: Bool) {
    guard let slots = slots(Tag.dict), slots.count > 0 else { return (nil, false) }
    if let entry = slots.find(number: number) { return (slots.member(entry), false) }
    return (nil, slots.endsInStringKey)
  }

  /// The entry of a name; resolve a `Key` once instead where the same name is looked up again.
  public func value(of name: String, sharedKeys: SharedKeys) -> UnsafeValue? {
    self[Key(name, in: sharedKeys)]
  }
}

extension UnsafeValue.Slots {
  @inlinable @inline(__always)
  static func load(_ slot: UnsafePointer<UInt8>) -> Int {
    Int(UInt16(bigEndian: UnsafeRawPointer(slot).loadUnaligned(as: UInt16.self)))
  }

  /// The key slot of a shared key. Needs at least one entry.
  ///
  /// Small integers have smaller first bytes than strings and pointers, so the slots' first two bytes, as
  /// unsigned numbers, are in order as far as the integers go: no key needs decoding.
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

  /// The value of an entry, by its key slot.
  @inlinable @inline(__always)
  func member(_ key: UnsafePointer<UInt8>) -> UnsafeValue? {
    let value = UnsafeValue(slot: key + width, isWide: isWide, start: start)
    return value?.isUndefined == true ? nil : value
  }

  @inlinable @inline(__always)
  var endsInStringKey: Bool {
    UnsafeValue.Slots.load(first + (count &- 1) &* (isWide ? 8 : 4)) >= FleeceLimits.sharedKeys
  }

  /// The key slot of a name that stands as a string.
  @inline(never)
  func find(name: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      guard let key = value(middle * 2) else { return nil }
      // Integers come before strings.
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
  /// The items of an array, in order; empty for other kinds of value. A damaged item reads as null.
  @inlinable
  public var items: Items {
    Items(slots: slots(Tag.array) ?? Slots(first: position, count: 0, isWide: false, start: start))
  }

  /// The entries of a dictionary in its own order: shared keys by number, then names by their bytes. Empty for
  /// other kinds of value; `undefined` and damaged entries are left out.
  @inlinable
  public var entries: Entries {
    Entries(slots: slots(Tag.dict) ?? Slots(first: position, count: 0, isWide: false, start: start))
  }

  /// What damaged items read as.
  @usableFromInline nonisolated(unsafe) static let null: UnsafePointer<UInt8> = {
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 2)
    bytes[0] = 0x30
    bytes[1] = 0
    return UnsafePointer(bytes)
  }()

  /// The items of an array.
  public struct Items: Sequence, IteratorProtocol {
    @usableFromInline let slots: Slots
    @usableFromInline var index = 0

    @inlinable
    init(slots: Slots) { self.slots = slots }

    /// The next item.
    @inlinable
    public mutating func next() -> UnsafeValue? {
      guard index < slots.count else { return nil }
      defer { index += 1 }
      if let value = slots.value(index) { return value }
      return UnsafeValue(position: UnsafeValue.null, start: UnsafeValue.null, limit: UnsafeValue.null + 2)
    }
  }

  /// An entry of a dictionary.
  public struct Entry {
    /// The key: a small integer (a shared key's number) or a string.
    public let key: UnsafeValue
    /// The value.
    public let value: UnsafeValue

    @inlinable @inline(__always)
    init(key: UnsafeValue, value: UnsafeValue) {
      self.key = key
      self.value = value
    }

    /// The name, or nil when the key's number is not in the table or the key is neither number nor UTF-8.
    public func name(in sharedKeys: SharedKeys) -> String? {
      utf8(in: sharedKeys).flatMap { String(utf8: $0) }
    }

    /// The name's bytes, valid while the body and the table live.
    public func utf8(in sharedKeys: SharedKeys) -> UnsafeRawBufferPointer? {
      if let number = key.int { return sharedKeys.utf8(of: Int(number)) }
      return key.utf8
    }
  }

  /// The entries of a dictionary.
  public struct Entries: Sequence, IteratorProtocol {
    @usableFromInline let slots: Slots
    @usableFromInline var index = 0

    @inlinable
    init(slots: Slots) { self.slots = slots }

    /// The next entry.
    @inlinable
    public mutating func next() -> Entry? {
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
