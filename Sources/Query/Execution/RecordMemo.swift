import Storage

/// The records that a join has looked up last, by ID: for one step of one run of a query, while its snapshot lasts.
///
/// What it hands out stays until the next call.
final class RecordMemo {
  private struct Entry {
    var id = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    var idCount = 0
    /// Nil when there is no such document.
    var record: UnsafeRawBufferPointer?
    /// Where the record lies when it was copied.
    var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  private static let bits: UInt64 = 5
  /// Longer ones aren't worth their copies.
  private static let longestCopied = 16_384

  private let entries: UnsafeMutablePointer<Entry>
  private let copies: Bool
  // One thread: accesses needn't be checked.
  @exclusivity(unchecked) private var lookups = 0
  @exclusivity(unchecked) private var hits = 0
  /// For a record that isn't kept, and what else is short-lived.
  private var spare = Entry()

  /// With `copies` records end with the next use of the snapshot, so that they have to be copied.
  init(copies: Bool) {
    self.copies = copies
    entries = .allocate(capacity: 1 << Int(Self.bits))
    entries.initialize(repeating: Entry(), count: 1 << Int(Self.bits))
  }

  deinit {
    for index in 0..<1 << Int(Self.bits) { free(entries[index]) }
    free(spare)
    entries.deallocate()
  }

  private func free(_ entry: Entry) {
    entry.id.deallocate()
    entry.memory.deallocate()
  }

  /// The record of an ID, and the ID in memory that lasts as long; nil when there is none.
  func record(
    of id: UnsafeRawBufferPointer,
    orElse find: (UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer?
  ) throws -> (id: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer)? {
    let entry = entries + Int(KeyHash.of(id, 0) >> (64 - Self.bits))
    lookups &+= 1
    if entry.pointee.idCount == id.count, id.count > 0, entry.pointee.id[..<id.count].elementsEqual(id) {
      hits &+= 1
      return known(entry.pointee)
    }
    guard let found = try find(id) else { return nil }
    // Rows that all have others: copying would cost more than it spares.
    if copies, found.count > Self.longestCopied || (lookups > 64 && hits &* 8 < lookups) {
      Self.set(&spare, id)
      Self.copy(found, &spare)
      return known(spare)
    }
    Self.set(&entry.pointee, id)
    if copies { Self.copy(found, &entry.pointee) } else { entry.pointee.record = found }
    return known(entry.pointee)
  }

  @inline(__always)
  private func known(_ entry: Entry) -> (id: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer)? {
    guard let record = entry.record else { return nil }
    return (UnsafeRawBufferPointer(rebasing: entry.id[..<entry.idCount]), record)
  }

  private static func set(_ entry: inout Entry, _ id: UnsafeRawBufferPointer) {
    if entry.id.count < id.count {
      entry.id.deallocate()
      entry.id = .allocate(byteCount: max(64, id.count), alignment: 8)
    }
    entry.id.copyMemory(from: id)
    entry.idCount = id.count
    entry.record = nil
  }

  private static func copy(_ record: UnsafeRawBufferPointer, _ entry: inout Entry) {
    if entry.memory.count < record.count {
      entry.memory.deallocate()
      entry.memory = .allocate(byteCount: max(1024, record.count), alignment: 8)
    }
    entry.memory.copyMemory(from: record)
    entry.record = UnsafeRawBufferPointer(rebasing: entry.memory[..<record.count])
  }
}
