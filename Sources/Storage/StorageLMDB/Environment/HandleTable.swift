import CLMDB

/// The handles by keyspace number: a hash table with open addressing and a power of two as its size, at most
/// half full. Numbers are mostly consecutive, so a lookup is usually one load and one comparison.
struct HandleTable: @unchecked Sendable {
  private struct Slot {
    var number: Int
    var handle: MDB_dbi
  }

  private let slots: UnsafeMutablePointer<Slot>
  private let mask: Int

  /// The table of no keyspaces.
  static let none = HandleTable([])

  init(_ items: some Collection<Catalog.Item>) {
    var capacity = 16
    while capacity < items.count * 2 { capacity *= 2 }
    slots = .allocate(capacity: capacity)
    slots.initialize(repeating: Slot(number: -1, handle: 0), count: capacity)
    mask = capacity - 1
    for item in items {
      var index = item.keyspace.number & mask
      while slots[index].number != -1 { index = (index + 1) & mask }
      slots[index] = Slot(number: item.keyspace.number, handle: item.handle)
    }
  }

  func deallocate() { slots.deallocate() }

  /// Returns the handle of a keyspace, or 0 if there is none. Handle 0 is LMDB's free list and never a
  /// keyspace.
  @inline(__always)
  func handle(of number: Int) -> MDB_dbi {
    var index = number & mask
    while true {
      let slot = slots[index]
      if slot.number == number { return slot.handle }
      if slot.number == -1 { return 0 }
      index = (index + 1) & mask
    }
  }
}
