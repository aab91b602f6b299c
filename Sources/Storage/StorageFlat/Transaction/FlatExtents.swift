import Bytes

/// How far keyspaces reach: how many entries they have, and their greatest keys. Only what a write transaction asked for is in it.
///
/// The engine keeps it from one write transaction to the next, since nobody else writes the directory meanwhile. A transaction
/// takes it, and gives it back when it has committed. After any other end it is gone, and read again.
struct FlatExtents {
  /// How far a keyspace reaches.
  private struct Extent {
    var count: Int?
    /// Whether the record of the count says another number.
    var isCountChanged = false
    /// No key is greater, with its prefix. Nil if that was never looked for.
    var bound: [UInt8]?
    /// Whether there is a key of the bound's bytes, or none at all.
    var isBoundThere = false
    /// The number of keys that were written while there was no bound.
    var unboundedWrites = 0
  }

  /// So many writes are a load, which may be in the order of keys.
  private static let unboundedWrites = 16

  private var extents: [Extent] = []
  private var places: [Int: Int] = [:]
  /// The places of keyspaces that were forgotten.
  private var free: [Int] = []
  /// The keyspace that was asked for last. Most calls are about one that was just written to.
  private var lastNumber = -1
  private var lastPlace = 0

  private mutating func place(of number: Int) -> Int {
    if number == lastNumber { return lastPlace }
    let place = places[number] ?? free.popLast() ?? extents.count
    if place == extents.count { extents.append(Extent()) }
    places[number] = place
    (lastNumber, lastPlace) = (number, place)
    return place
  }

  // MARK: Counts

  mutating func count(of number: Int) -> Int? { extents[place(of: number)].count }

  /// Notes a count that was read.
  mutating func noteCount(_ count: Int, of number: Int) { extents[place(of: number)].count = count }

  /// Changes a count, whose record is then to be written.
  mutating func setCount(_ count: Int, of number: Int) {
    let place = place(of: number)
    extents[place].count = count
    extents[place].isCountChanged = true
  }

  /// The keyspaces whose counts have changed, in their order, with the counts. Their records are written now.
  mutating func takeChangedCounts() -> [(number: Int, count: Int)] {
    var changed: [(number: Int, count: Int)] = []
    for (number, place) in places where extents[place].isCountChanged {
      changed.append((number, extents[place].count ?? 0))
      extents[place].isCountChanged = false
    }
    return changed.sorted { $0.number < $1.number }
  }

  // MARK: Greatest keys

  /// Whether a key is greater than all keys of its keyspace, as far as is known.
  mutating func isGreatest(_ key: UnsafeRawBufferPointer, in number: Int) -> Bool {
    extents[place(of: number)].bound?.withUnsafeBytes { compareBytes($0, key) < 0 } ?? false
  }

  /// Whether the greatest key of a keyspace is known. It isn't after it was deleted, though no key is greater.
  mutating func knowsGreatest(of number: Int) -> Bool {
    let extent = extents[place(of: number)]
    return extent.bound != nil && extent.isBoundThere
  }

  /// Counts a key that was written to a keyspace whose greatest one isn't known. Returns true when it is time to look for that.
  mutating func shouldFindGreatest(of number: Int) -> Bool {
    let place = place(of: number)
    guard extents[place].bound == nil else { return false }
    extents[place].unboundedWrites += 1
    return extents[place].unboundedWrites == Self.unboundedWrites
  }

  /// Notes the greatest key. Of an empty keyspace it is the prefix of all keys.
  mutating func noteGreatest(_ key: UnsafeRawBufferPointer, in number: Int) {
    let place = place(of: number)
    extents[place].isBoundThere = true
    guard extents[place].bound != nil else { return extents[place].bound = [UInt8](key) }
    extents[place].bound?.removeAll(keepingCapacity: true)
    extents[place].bound?.append(contentsOf: key)
  }

  /// Notes that a key isn't there any more.
  mutating func noteDeletion(of key: UnsafeRawBufferPointer, in number: Int) {
    let place = place(of: number)
    if let bound = extents[place].bound, bound.elementsEqual(key) { extents[place].isBoundThere = false }
  }

  /// Notes that a range of keys isn't there any more.
  mutating func noteDeletions(in number: Int) { extents[place(of: number)].isBoundThere = false }

  /// Forgets what is known of a keyspace.
  mutating func forget(_ number: Int) {
    guard let place = places.removeValue(forKey: number) else { return }
    extents[place] = Extent()
    free.append(place)
    lastNumber = -1
  }
}
