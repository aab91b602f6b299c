// The table behind shared keys: names by number, and open addressing from name to number.
//
// A name has at most 16 bytes. It is stored, hashed and compared as two words, so a lookup creates no String.
// The table is raw memory behind pointers, because the encoder uses it for every property.

/// Names and their numbers in raw memory. Copies share the memory. Exactly one owner frees it.
struct KeyTable {
  private(set) var names: UnsafeMutablePointer<ShortName>
  private(set) var lengths: UnsafeMutablePointer<UInt8>
  /// The number + 1, or 0 for a free slot. There are four slots per name of capacity, so most searches end at
  /// once.
  private var slots: UnsafeMutablePointer<UInt16>
  private var shift: UInt64
  private(set) var capacity: Int
  private(set) var count = 0

  init(capacity wanted: Int) {
    var size = 16
    while size < wanted { size *= 2 }
    capacity = size
    names = .allocate(capacity: size)
    lengths = .allocate(capacity: size)
    slots = .allocate(capacity: size * 4)
    slots.initialize(repeating: 0, count: size * 4)
    shift = UInt64(64 - (size * 4).trailingZeroBitCount)
  }

  /// Copies the first `kept` names into new memory with room for `capacity` names.
  init(copying other: KeyTable, first kept: Int, capacity: Int) {
    self.init(capacity: max(capacity, kept))
    for number in 0..<kept {
      _ = add(other.names[number], length: Int(other.lengths[number]))
    }
  }

  func free() {
    names.deallocate()
    lengths.deallocate()
    slots.deallocate()
  }

  /// Returns the number of a name, or -1.
  @inline(__always)
  func find(_ name: ShortName, length: Int) -> Int {
    let mask = capacity &* 4 &- 1
    var index = Int(truncatingIfNeeded: name.hash >> shift)
    while true {
      let number = Int(slots[index]) &- 1
      if number < 0 { return -1 }
      if names[number].low == name.low, names[number].high == name.high, lengths[number] == length {
        return number
      }
      index = (index &+ 1) & mask
    }
  }

  /// Adds a name that isn't in the table and returns its number. The table must have room (`count <
  /// capacity`).
  mutating func add(_ name: ShortName, length: Int) -> Int {
    precondition(count < capacity)
    let mask = capacity * 4 - 1
    var index = Int(truncatingIfNeeded: name.hash >> shift)
    while slots[index] != 0 { index = (index + 1) & mask }
    slots[index] = UInt16(count + 1)
    names[count] = name
    lengths[count] = UInt8(length)
    count += 1
    return count - 1
  }

  /// The name of a number below `count`.
  @inline(__always)
  func name(of number: Int) -> (name: ShortName, length: Int) { (names[number], Int(lengths[number])) }

  func utf8(of number: Int) -> UnsafeBufferPointer<UInt8> {
    UnsafeRawPointer(names + number).withMemoryRebound(to: UInt8.self, capacity: 16) {
      UnsafeBufferPointer(start: $0, count: Int(lengths[number]))
    }
  }

  /// Returns whether a name can be a shared key: at most 16 bytes of `A-Z a-z 0-9 _ -`.
  static func isEligible(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count <= FleeceLimits.sharedKeyLength else { return false }
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
        continue
      default: return false
      }
    }
    return true
  }
}
