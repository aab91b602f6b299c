import Bytes

#if canImport(Glibc)
  import Glibc
#endif

/// A cache from folded words to their stems. Stop words have no stem. For one thread at a time.
///
/// An open-addressing hash table refers to bytes in one growing buffer. A full table or buffer is cleared.
/// The state is behind a pointer because Swift would check exclusive access to a class's stored properties
/// for each word.
struct WordCache {
  /// The maximum length in bytes of a cached word.
  static let longestWord = 63
  private static let slotLimit = 1 << 16
  private static let byteLimit = 4 << 20

  /// A slot of the hash table. `word` is the length of the word, or 0 for a free slot.
  struct Slot {
    var hash: UInt32
    /// The offset of the word in the bytes. A stem that isn't a prefix of the word follows the word.
    var offset: UInt32
    var word: UInt8
    /// The length of the stem; 0 for a stop word.
    var stem: UInt8
    /// Whether the stem has its own bytes.
    var isOwn: Bool
  }

  private struct State {
    var slots: UnsafeMutablePointer<Slot>
    var slotMask: Int
    var count = 0
    var bytes: UnsafeMutablePointer<UInt8>
    var capacity: Int
    var used = 0
  }

  private let state: UnsafeMutablePointer<State>

  /// Creates an empty cache. Call `free` when it is no longer used.
  init() {
    state = .allocate(capacity: 1)
    let capacity = 1 << 14
    state.initialize(
      to: State(
        slots: Self.slots(1 << 10), slotMask: 1 << 10 - 1, bytes: .allocate(capacity: capacity),
        capacity: capacity))
  }

  func free() {
    state.pointee.slots.deallocate()
    state.pointee.bytes.deallocate()
    state.deallocate()
  }

  private static func slots(_ count: Int) -> UnsafeMutablePointer<Slot> {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: count)
    slots.initialize(
      repeating: Slot(hash: 0, offset: 0, word: 0, stem: 0, isOwn: false), count: count)
    return slots
  }

  @inline(__always)
  static func hash(_ word: UnsafeRawBufferPointer) -> UInt32 {
    UInt32(truncatingIfNeeded: ByteHash.of(word, 0))
  }

  /// Returns the stem of a cached word, no bytes for a stop word, or nil if the word isn't cached.
  @inline(__always)
  func find(_ word: UnsafeRawBufferPointer, _ hash: UInt32) -> UnsafeRawBufferPointer? {
    let slots = state.pointee.slots
    let mask = state.pointee.slotMask
    let bytes = UnsafeRawPointer(state.pointee.bytes)
    var index = Int(hash) & mask
    while slots[index].word != 0 {
      let slot = slots[index]
      if slot.hash == hash, Int(slot.word) == word.count, let base = word.baseAddress,
        memcmp(bytes + Int(slot.offset), base, word.count) == 0
      {
        let start = bytes + Int(slot.offset) + (slot.isOwn ? word.count : 0)
        return UnsafeRawBufferPointer(start: start, count: Int(slot.stem))
      }
      index = (index + 1) & mask
    }
    return nil
  }

  /// Adds a word of at most `longestWord` bytes and its stem. A stem of more than 255 bytes isn't cached.
  func insert(_ word: UnsafeRawBufferPointer, _ hash: UInt32, stem: UnsafeRawBufferPointer) {
    guard let base = word.baseAddress, stem.count <= 255 else { return }
    let isBeginning = stem.count <= word.count && stem.elementsEqual(word.prefix(stem.count))
    let isOwn = !isBeginning
    let needed = word.count + (isOwn ? stem.count : 0)
    if state.pointee.used + needed > state.pointee.capacity { growBytes() }
    if state.pointee.count * 4 >= (state.pointee.slotMask + 1) * 3 { growSlots() }
    let offset = state.pointee.used
    let to = UnsafeMutableRawPointer(state.pointee.bytes + offset)
    to.copyMemory(from: base, byteCount: word.count)
    if isOwn, let stemBase = stem.baseAddress {
      (to + word.count).copyMemory(from: stemBase, byteCount: stem.count)
    }
    state.pointee.used = offset + needed
    state.pointee.count += 1
    place(
      Slot(
        hash: hash, offset: UInt32(offset), word: UInt8(word.count), stem: UInt8(stem.count), isOwn: isOwn))
  }

  private func place(_ slot: Slot) {
    var index = Int(slot.hash) & state.pointee.slotMask
    while state.pointee.slots[index].word != 0 { index = (index + 1) & state.pointee.slotMask }
    state.pointee.slots[index] = slot
  }

  private func growBytes() {
    guard state.pointee.capacity < Self.byteLimit else { return clear() }
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: state.pointee.capacity * 4)
    bytes.update(from: state.pointee.bytes, count: state.pointee.used)
    state.pointee.bytes.deallocate()
    state.pointee.bytes = bytes
    state.pointee.capacity *= 4
  }

  private func growSlots() {
    let old = state.pointee.slots
    let count = state.pointee.slotMask + 1
    guard count < Self.slotLimit else { return clear() }
    state.pointee.slots = Self.slots(count * 4)
    state.pointee.slotMask = count * 4 - 1
    for index in 0..<count where old[index].word != 0 { place(old[index]) }
    old.deallocate()
  }

  private func clear() {
    for index in 0...state.pointee.slotMask { state.pointee.slots[index].word = 0 }
    state.pointee.count = 0
    state.pointee.used = 0
  }
}
