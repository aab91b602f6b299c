import Fleece
import Storage

/// Reads plain entries of an index (ValueIndexEntry.swift). Values that expressions need are stored to their
/// slots, and the others are skipped. Values that all entries of a range share are read once.
///
/// Its memory is in the arena of a context. It is valid for one run of a step.
struct EntryReading: BitwiseCopyable {
  /// For each expression of the index, the slot of its value. -1 means none.
  private let slots: UnsafeMutablePointer<Int>
  /// The number of expressions of the index, and the number of leading values that are read.
  private let width: Int
  private let columnsRead: Int
  private let needsID: Bool
  /// The common prefix of all keys: its number of values, and its length in bytes.
  private let sharedCount: Int
  private let sharedBytes: Int
  private let shared: UnsafeMutablePointer<QueryValue>

  /// Decodes the shared prefix and sets its slots.
  init(
    _ access: CompiledIndexAccess, _ prefix: (bytes: [UInt8], count: Int), _ context: EvaluationContext
  ) throws {
    let arena = context.arena
    width = access.index.keys.count
    columnsRead = access.columnsRead
    needsID = access.needsID
    sharedCount = prefix.count
    sharedBytes = prefix.bytes.count
    slots = arena.allocate(width, of: Int.self)
    for index in 0..<width {
      slots[index] = access.slotsRead.indices.contains(index) ? access.slotsRead[index] : -1
    }
    shared = arena.allocate(prefix.count, of: QueryValue.self)
    let bytes = UnsafeMutableRawBufferPointer(
      start: arena.allocate(bytes: prefix.bytes.count), count: prefix.bytes.count)
    bytes.copyBytes(from: prefix.bytes)
    var columns = EntryColumns(UnsafeRawBufferPointer(bytes), from: 0)
    for index in 0..<prefix.count { shared[index] = try columns.next(arena) }
    readShared(context)
  }

  /// Sets the slots of the values that all entries share.
  func readShared(_ context: EvaluationContext) {
    for index in 0..<sharedCount where slots[index] >= 0 { context.slots[slots[index]] = shared[index] }
  }

  /// For each expression of the index, the result column of its value, or -1. With these columns, plain
  /// entries become result rows directly. A value has at most one column. Nil when a result needs anything
  /// but values of the index.
  func columns(of slots: [Int], in arena: EvaluationArena) -> UnsafeMutablePointer<Int>? {
    guard !needsID else { return nil }
    let targets = arena.allocate(max(1, width), of: Int.self)
    for index in 0..<width { targets[index] = -1 }
    for (column, slot) in slots.enumerated() where slot != DirectRows.number {
      guard let index = (0..<width).first(where: { self.slots[$0] == slot }) else { return nil }
      targets[index] = column
    }
    return targets
  }

  /// Copies the shared values into the storage of the results.
  func keepShared(in storage: ResultStorage, _ sharedKeys: SharedKeys) {
    for index in 0..<sharedCount { shared[index] = storage.keep(shared[index], sharedKeys) }
  }

  /// Appends a result row with an entry's values, and returns it. `targets` says which column each value goes to.
  @inline(__always)
  func append(
    _ key: UnsafeRawBufferPointer, to storage: ResultStorage, _ targets: UnsafeMutablePointer<Int>,
    _ context: EvaluationContext
  ) throws -> UnsafeMutablePointer<QueryValue> {
    guard key.count > sharedBytes else { throw ValueIndexEntry.damaged }
    let row = storage.appendRow()
    var column = 0
    while column < sharedCount {
      let target = targets[column]
      if target >= 0 { row[target] = shared[column] }
      column &+= 1
    }
    var columns = EntryColumns(key, from: sharedBytes)
    while column < columnsRead {
      let target = targets[column]
      if target < 0 {
        try columns.skip()
      } else if let text = columns.plainText() {
        row[target] = .string(storage.keep(text))
      } else {
        row[target] = try context.arena.scope {
          storage.keep(try columns.nextOfAnyType(context.arena), context.sharedKeys)
        }
      }
      column &+= 1
    }
    return row
  }

  /// Sets the slots to the values of an entry. The values point into `key` or into the arena.
  @inline(__always)
  func read(_ key: UnsafeRawBufferPointer, _ context: EvaluationContext) throws {
    guard key.count > sharedBytes else { throw ValueIndexEntry.damaged }
    var columns = EntryColumns(key, from: sharedBytes)
    var column = sharedCount
    while column < columnsRead {
      let slot = slots[column]
      if slot >= 0 { context.slots[slot] = try columns.next(context.arena) } else { try columns.skip() }
      column &+= 1
    }
  }

  /// The document ID of an entry.
  @inline(__always)
  func documentID(_ key: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer {
    guard key.count > sharedBytes else { throw ValueIndexEntry.damaged }
    var columns = EntryColumns(key, from: sharedBytes)
    for _ in sharedCount..<max(width, sharedCount) { try columns.skip() }
    let id = columns.rest
    guard id.count > 0 else { throw ValueIndexEntry.damaged }
    return id
  }

  /// An empty ID, for entries whose ID isn't read.
  @inline(__always)
  func noID(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: key.baseAddress, count: 0)
  }
}

/// Decodes the values of a key one after the other. Plain text, the most frequent type, has a fast path.
struct EntryColumns {
  private let key: UnsafeRawBufferPointer
  private var offset: Int

  init(_ key: UnsafeRawBufferPointer, from offset: Int) {
    self.key = key
    self.offset = offset
  }

  /// The bytes that aren't decoded yet.
  @inline(__always)
  var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: key[offset...]) }

  /// The next value. It points into the key, or into the arena when it has to be built.
  @inline(__always)
  mutating func next(_ arena: EvaluationArena) throws -> QueryValue {
    if let text = plainText() { return .string(text) }
    return try nextOfAnyType(arena)
  }

  @inline(__always)
  mutating func skip() throws {
    if plainText() == nil, !skipNumber() { try skipAnyType() }
  }

  /// Skips a number (OrderedKeyNumber.swift): a magnitude of up to 8 bytes, whose last bit says whether a
  /// fraction follows. False when the next value isn't a complete number.
  @inline(__always)
  private mutating func skipNumber() -> Bool {
    guard offset < key.count else { return false }
    let code = Int(key[offset])
    let isNegative = code < EntryColumns.zero
    let length = isNegative ? EntryColumns.zero &- 1 &- code : code &- EntryColumns.zero
    // Zero is a number without magnitude. There is no negative zero.
    guard length >= (isNegative ? 1 : 0), length <= 8, offset &+ length < key.count else { return false }
    var end = offset &+ length &+ 1
    if length > 0 {
      let last = isNegative ? ~key[offset &+ length] : key[offset &+ length]
      if last & 1 != 0 { end &+= length > 1 || last > 1 ? 7 : 8 }
    }
    guard end <= key.count else { return false }
    offset = end
    return true
  }

  /// The next value when it is text without escapes. Such text ends at the first byte below 2, and that byte
  /// is 0.
  @inline(__always)
  mutating func plainText() -> TextSlice? {
    guard offset < key.count, key[offset] == EntryColumns.string, let base = key.baseAddress else {
      return nil
    }
    var end = offset &+ 1
    while end &+ 8 <= key.count {
      let word = base.loadUnaligned(fromByteOffset: end, as: UInt64.self).littleEndian
      // The high bit is set for each byte below 2. Above the first such byte it may be set for others too.
      let below = (word &- 0x0202_0202_0202_0202) & ~word & 0x8080_8080_8080_8080
      if below != 0 {
        end &+= below.trailingZeroBitCount &>> 3
        return finish(base, end)
      }
      end &+= 8
    }
    while end < key.count, key[end] >= 2 { end &+= 1 }
    return end < key.count ? finish(base, end) : nil
  }

  @inline(__always)
  private mutating func finish(_ base: UnsafeRawPointer, _ end: Int) -> TextSlice? {
    guard key[end] == 0 else { return nil }
    let text = TextSlice(UnsafeRawBufferPointer(start: base + offset + 1, count: end &- offset &- 1))
    offset = end &+ 1
    return text
  }

  @inline(never)
  mutating func nextOfAnyType(_ arena: EvaluationArena) throws -> QueryValue {
    var decoder = OrderedKeyDecoder(rest)
    do {
      let value = try arena.value(from: &decoder) ?? .missing
      offset += decoder.offset
      return value
    } catch { throw ValueIndexEntry.damaged }
  }

  @inline(never)
  private mutating func skipAnyType() throws {
    var decoder = OrderedKeyDecoder(rest)
    do { try decoder.skip() } catch { throw ValueIndexEntry.damaged }
    offset += decoder.offset
  }

  /// Type codes of text and of zero (docs/ordered-keys.md).
  private static let string: UInt8 = 0x50
  private static let zero = 0x30
}
