import Fleece

/// A hash set of values. It owns its table, but not the memory that the values point at. Any thread may read
/// it while none inserts.
final class ValueSet {
  private struct Entry: BitwiseCopyable {
    var hash: UInt64
    var value: QueryValue
  }

  private var entries: UnsafeMutablePointer<Entry>
  /// The index of the entry plus 1. 0 marks a free slot.
  private var places: UnsafeMutablePointer<UInt32>
  private var capacity: Int
  private(set) var count = 0
  private let budget: QueryMemoryBudget?
  private static let bytesPerPlace = MemoryLayout<Entry>.stride + MemoryLayout<UInt32>.stride

  /// Creates a set. Its memory counts towards the budget, if there is one.
  init(minimumCapacity: Int = 8, _ budget: QueryMemoryBudget? = nil) {
    self.budget = budget
    capacity = 16
    while capacity < minimumCapacity * 2 { capacity *= 2 }
    entries = .allocate(capacity: capacity)
    places = .allocate(capacity, repeating: 0)
    budget?.take(capacity * Self.bytesPerPlace)
  }

  deinit {
    budget?.giveBack(capacity * Self.bytesPerPlace)
    entries.deallocate()
    places.deallocate()
  }

  var isEmpty: Bool { count == 0 }

  /// The values in the order of insertion.
  subscript(index: Int) -> QueryValue { entries[index].value }

  /// Replaces each value by an equal one from `body`.
  func replaceValues(_ body: (QueryValue) -> QueryValue) {
    for index in 0..<count { entries[index].value = body(entries[index].value) }
  }

  /// Whether the set contains an equal value.
  func contains(_ value: QueryValue, _ order: ValueOrder) -> Bool {
    count > 0 && find(value, order.hash(value), order).found != nil
  }

  /// The index of an equal value, which has to be in the set.
  func place(of value: QueryValue, _ order: ValueOrder) -> Int {
    guard let found = find(value, order.hash(value), order).found else {
      preconditionFailure("a value isn't in its set")
    }
    return found
  }

  /// Adds a value, after `copy` has made a copy to keep. Returns false when the set contains an equal value.
  @discardableResult
  func insert(
    _ value: QueryValue, _ order: ValueOrder, copy: (QueryValue) -> QueryValue = { $0 }
  ) -> Bool {
    let hash = order.hash(value)
    var (found, place) = find(value, hash, order)
    guard found == nil else { return false }
    if count * 2 >= capacity {
      grow()
      place = find(value, hash, order).place
    }
    entries[count] = Entry(hash: hash, value: copy(value))
    count += 1
    places[place] = UInt32(count)
    return true
  }

  private func find(
    _ value: QueryValue, _ hash: UInt64, _ order: ValueOrder
  ) -> (found: Int?, place: Int) {
    var place = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while places[place] != 0 {
      let index = Int(places[place]) - 1
      if entries[index].hash == hash, order.areEqual(entries[index].value, value) { return (index, place) }
      place = (place + 1) & (capacity - 1)
    }
    return (nil, place)
  }

  private func grow() {
    let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity * 2)
    larger.update(from: entries, count: count)
    entries.deallocate()
    entries = larger
    places.deallocate()
    budget?.take(capacity * Self.bytesPerPlace)
    capacity *= 2
    places = .allocate(capacity, repeating: 0)
    for index in 0..<count {
      var place = Int(truncatingIfNeeded: entries[index].hash) & (capacity - 1)
      while places[place] != 0 { place = (place + 1) & (capacity - 1) }
      places[place] = UInt32(index + 1)
    }
  }
}
