// Strings of 2 to 15 bytes are written once per body. Later uses point to the first copy.
//
// This is a cache and not a map: 512 entries and four probes. If there is no free place, an older entry is
// replaced, and its string may be written again. Entries of earlier bodies are recognised by their
// generation, so starting a body costs nothing.

/// The places of short strings in the current body.
struct StringInterner: ~Copyable {
  private struct Entry: BitwiseCopyable {
    /// The bytes of the string. The last byte of `high` holds the length; it is free because strings have at
    /// most 15 bytes.
    var low: UInt64
    var high: UInt64
    var generation: UInt32
    /// The offset in the body, in units of 2 bytes.
    var unit: UInt32
  }

  private let entries: UnsafeMutablePointer<Entry>
  private var generation: UInt32 = 0
  private static let bits: UInt64 = 9
  private static var mask: Int { 1 << Int(bits) - 1 }

  init() {
    entries = .allocate(capacity: 1 << Int(StringInterner.bits))
    entries.initialize(
      repeating: Entry(low: 0, high: 0, generation: 0, unit: 0), count: 1 << Int(StringInterner.bits))
  }

  deinit { entries.deallocate() }

  /// Removes all strings.
  mutating func removeAll() {
    generation &+= 1
    if generation == 0 {
      entries.update(
        repeating: Entry(low: 0, high: 0, generation: 0, unit: 0), count: 1 << Int(StringInterner.bits))
      generation = 1
    }
  }

  /// Returns the unit at which a string was written, if it is `oldest` or later. Otherwise records `unit` and
  /// returns nil.
  @inline(__always)
  func find(_ name: ShortName, length: Int, oldest: UInt32, orRecord unit: UInt32) -> UInt32? {
    let high = name.high | UInt64(truncatingIfNeeded: length) &<< 56
    let start = Int(
      truncatingIfNeeded: ShortName(low: name.low, high: high).hash &>> (64 &- StringInterner.bits))
    var chosen = start
    var probe = 0
    while probe < 4 {
      let index = (start &+ probe) & StringInterner.mask
      let entry = entries + index
      if entry.pointee.generation != generation {
        chosen = index
        break
      }
      if entry.pointee.low == name.low, entry.pointee.high == high {
        if entry.pointee.unit >= oldest { return entry.pointee.unit }
        chosen = index
        break
      }
      probe &+= 1
    }
    entries[chosen] = Entry(low: name.low, high: high, generation: generation, unit: unit)
    return nil
  }
}
