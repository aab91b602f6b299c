import Bytes
import Storage

/// What a join's lookups by ID found last: copies of documents, and IDs without a document. Many rows often
/// refer to few documents, as routes do to airlines, and a copy is found many times faster than the document in
/// its tree. (PostgreSQL calls this plan node Memoize.)
///
/// A table of bounded size, in which a document replaces another one with the same slot. When too few lookups
/// find a copy, no more copies are made. Copies are valid until `keep` is called: a step of a query has a memo
/// of its own, and it keeps a document only after the steps that follow have left the row. Use it from one
/// thread at a time, for snapshots with one version: a query's next run often looks up the same documents.
final class LookupMemo {
  private struct Slot: BitwiseCopyable {
    /// The ID, then the record.
    var bytes: UnsafeMutableRawPointer?
    var capacity = 0
    var idBytes = 0
    /// 0 when no document has the ID.
    var recordBytes = 0

    var id: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: bytes, count: idBytes) }
    var record: UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(start: bytes.map { $0 + idBytes }, count: recordBytes)
    }
  }

  private static let slotLimit = 256
  /// Larger documents aren't kept. With this, a memo takes at most 1 MiB.
  private static let maximumBytes = 4096
  /// After so many lookups, one in eight of them has to have found a copy.
  private static let trialLookups = 256

  // Most joins of a few rows need few slots.
  private static let leastSlots = 16
  /// Copies are kept from run to run up to so many bytes.
  private static let keptBytes = 64 << 10
  @exclusivity(unchecked) private var slotCount = LookupMemo.leastSlots
  @exclusivity(unchecked) private var slots: UnsafeMutablePointer<Slot>
  /// The maximum memory of the copies, in bytes.
  private let limit: Int
  /// The memory of the copies, in bytes.
  @exclusivity(unchecked) private(set) var used = 0
  @exclusivity(unchecked) private var lookups = 0
  @exclusivity(unchecked) private var hits = 0
  /// The version of the data that the copies are of.
  @exclusivity(unchecked) private var version: SnapshotVersion?

  /// Creates an empty memo for a run with a memory limit, in bytes. Copies don't count towards that limit, so
  /// that a query which fits without a memo fits with one.
  init(memoryLimit: Int) {
    limit = min(memoryLimit / 2, Self.slotLimit * Self.maximumBytes)
    slots = .allocate(slotCount, repeating: Slot())
  }

  deinit { free() }

  private func free() {
    for index in 0..<slotCount { slots[index].bytes?.deallocate() }
    slots.deallocate()
  }

  /// Begins a run on a snapshot. The copies stay if the last run had a snapshot with the same version.
  func begin(_ version: SnapshotVersion?) {
    lookups = 0
    hits = 0
    if version == nil || version != self.version { removeAll() }
    self.version = version
  }

  /// Ends a run. Copies that take much memory aren't kept for another one.
  func end() { if version == nil || used > Self.keptBytes { removeAll() } }

  private func removeAll() {
    guard used > 0 else { return }
    free()
    used = 0
    slotCount = Self.leastSlots
    slots = .allocate(slotCount, repeating: Slot())
  }

  /// Whether documents are still worth keeping.
  var isUseful: Bool { lookups < Self.trialLookups || hits >= lookups / 8 }

  /// The kept record of an ID, empty when no document has it. Nil when the ID has to be looked up. Valid until
  /// the next call of `keep`.
  func record(of id: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    lookups &+= 1
    let slot = slots + slot(of: id)
    guard slot.pointee.bytes != nil, equalBytes(slot.pointee.id, id) else { return nil }
    hits &+= 1
    return slot.pointee.record
  }

  /// Keeps a copy of a record, unless it is large or the memo is full. An empty record says that no document
  /// has the ID.
  func keep(_ id: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer) {
    let count = id.count + record.count
    guard count > 0, count <= Self.maximumBytes else { return }
    if slotCount < Self.slotLimit, slots[slot(of: id)].bytes != nil { grow() }
    let slot = slots + slot(of: id)
    if slot.pointee.capacity < count {
      let more = count - slot.pointee.capacity
      guard used + more <= limit else { return }
      used += more
      slot.pointee.bytes?.deallocate()
      slot.pointee.bytes = .allocate(byteCount: count, alignment: 16)
      slot.pointee.capacity = count
    }
    guard let bytes = slot.pointee.bytes else { return }
    UnsafeMutableRawBufferPointer(start: bytes, count: id.count).copyMemory(from: id)
    UnsafeMutableRawBufferPointer(start: bytes + id.count, count: record.count).copyMemory(from: record)
    slot.pointee.idBytes = id.count
    slot.pointee.recordBytes = record.count
  }

  /// Makes the table four times as large. Of copies that get the same slot, the last one stays.
  private func grow() {
    let (old, oldCount) = (slots, slotCount)
    slotCount = min(oldCount * 4, Self.slotLimit)
    slots = .allocate(slotCount, repeating: Slot())
    for index in 0..<oldCount where old[index].bytes != nil {
      let slot = slots + slot(of: old[index].id)
      if let bytes = slot.pointee.bytes {
        bytes.deallocate()
        used -= slot.pointee.capacity
      }
      slot.pointee = old[index]
    }
    old.deallocate()
  }

  private func slot(of id: UnsafeRawBufferPointer) -> Int {
    Int(truncatingIfNeeded: ByteHash.of(id, 0)) & (slotCount - 1)
  }
}
