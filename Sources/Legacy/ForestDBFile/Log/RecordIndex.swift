/// A table from keys to the offsets of their records. Keys stay in the file: a hash finds them, and the record says
/// whether it is the right one.
final class RecordIndex {
  struct Entry {
    var hash: UInt64
    var offset: UInt64
    var sequence: UInt64
    var state: UInt64
  }

  /// What is known of an entry. Raw values are bits of `state`.
  enum State: UInt64 {
    /// The key is deleted.
    case deleted = 1
    /// The record is damaged, though its key could be read.
    case damaged = 2
    /// The trie has a later record of the key.
    case superseded = 4
    /// The commit mark of the record was probably lost.
    case unconfirmed = 8
  }

  /// The states in which a record hides older ones of its key, whatever its sequence says.
  static let hidesOlder = State.damaged.rawValue | State.unconfirmed.rawValue

  private let entries: ScratchMemory
  private let slots: ScratchMemory
  private var mask: Int
  private(set) var count = 0
  private static let stride = MemoryLayout<Entry>.stride

  init(directory: String) {
    entries = ScratchMemory(64 * Self.stride, directory: directory)
    slots = ScratchMemory(256 * 4, directory: directory)
    mask = 255
  }

  static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The entry with this number, in the order in which keys were added.
  subscript(_ number: Int) -> Entry {
    get { entries.base.load(fromByteOffset: number * Self.stride, as: Entry.self) }
    set { entries.base.storeBytes(of: newValue, toByteOffset: number * Self.stride, as: Entry.self) }
  }

  /// Returns the number of the entry of a key. `isSame` is asked whether the record at an offset has it.
  func find(_ hash: UInt64, _ isSame: (UInt64) throws -> Bool) rethrows -> Int? {
    var slot = Int(truncatingIfNeeded: hash) & mask
    while true {
      let number = Int(slots.base.load(fromByteOffset: slot * 4, as: UInt32.self)) - 1
      guard number >= 0 else { return nil }
      let entry = self[number]
      if entry.hash == hash, try isSame(entry.offset) { return number }
      slot = (slot + 1) & mask
    }
  }

  /// Adds an entry of a key that isn't there.
  func add(_ entry: Entry) throws {
    guard count < Int(Int32.max) else {
      throw ForestDBError(.damaged, "the log has too many records", path: "")
    }
    let needed = (count + 1) * Self.stride
    if needed > entries.byteCount { try entries.grow(to: entries.byteCount * 2) }
    self[count] = entry
    count += 1
    guard count * 2 > mask else { return place(count - 1) }
    let larger = (mask + 1) * 2
    try slots.grow(to: larger * 4)
    mask = larger - 1
    slots.base.initializeMemory(as: UInt8.self, repeating: 0, count: larger * 4)
    for number in 0..<count { place(number) }
  }

  private func place(_ number: Int) {
    var slot = Int(truncatingIfNeeded: self[number].hash) & mask
    while slots.base.load(fromByteOffset: slot * 4, as: UInt32.self) != 0 { slot = (slot + 1) & mask }
    slots.base.storeBytes(of: UInt32(number + 1), toByteOffset: slot * 4, as: UInt32.self)
  }
}
