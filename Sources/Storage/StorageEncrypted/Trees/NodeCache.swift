import Glibc
import Storage

/// A cache of decrypted nodes for all transactions of a file, with a maximum size in bytes.
///
/// It evicts by the clock algorithm, so nodes that are read again stay. An evicted node lives on until its
/// last user releases it. A node is identified by its reference, which never stands for two contents. So no
/// node in the cache is ever out of date, and snapshots of different ages share it.
final class NodeCache: Sendable {
  private static let shardCount = 8
  /// The estimated size of a node's object and of its places here, in bytes.
  private static let overheadBytes = 128

  private let shards: [Lock<Shard>]
  /// The maximum number of nodes.
  let capacity: Int

  init(byteCount: Int, nodeBytes: Int) {
    let nodes = max(Self.shardCount, byteCount / (nodeBytes + Self.overheadBytes))
    capacity = nodes / Self.shardCount * Self.shardCount
    let share = nodes / Self.shardCount
    shards = (0..<Self.shardCount).map { _ in Lock(Shard(capacity: share)) }
  }

  @inline(__always)
  private static func hash(_ number: UInt64) -> UInt64 { number &* 0x9E37_79B9_7F4A_7C15 }

  @inline(__always)
  private func shard(_ hash: UInt64) -> Lock<Shard> { shards[Int(truncatingIfNeeded: hash >> 61)] }

  @inline(__always)
  func find(_ reference: Reference) -> Node? {
    let hash = Self.hash(reference.number)
    return shard(hash).withLock { $0.find(reference, hash) }
  }

  func insert(_ node: Node) {
    let hash = Self.hash(node.reference.number)
    // The evicted node is released outside the lock.
    let evicted = shard(hash).withLock { $0.insert(node, hash) }
    _ = evicted
  }

  func remove(_ reference: Reference) {
    let hash = Self.hash(reference.number)
    let removed = shard(hash).withLock { $0.remove(reference, hash) }
    _ = removed
  }

  func removeAll() {
    for shard in shards { shard.withLock { $0.removeAll() } }
  }

  /// A part of the cache: a ring of places, and a hash table with linear probing that leads to them. Both grow
  /// with use, the ring up to `capacity`.
  private struct Shard: @unchecked Sendable {
    private struct Place {
      var node: Node?
      var isWanted = false
    }

    private static let firstPlaces = 16

    private let capacity: Int
    private var places: [Place] = []
    /// The places of removed nodes.
    private var free: [Int32] = []
    /// A place plus one, or 0 if the slot is free. At most half of the slots are taken.
    private var table: [Int32]
    private var hand = 0

    init(capacity: Int) {
      self.capacity = max(1, capacity)
      table = Array(repeating: 0, count: 2 * Self.firstPlaces)
    }

    private func slot(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 24) & (table.count - 1) }

    /// Returns the slot of a node in the table, or nil.
    private func position(_ reference: Reference, _ hash: UInt64) -> Int? {
      let mask = table.count - 1
      var slot = slot(hash)
      while table[slot] != 0 {
        if let node = places[Int(table[slot]) - 1].node, node.reference == reference { return slot }
        slot = (slot + 1) & mask
      }
      return nil
    }

    mutating func find(_ reference: Reference, _ hash: UInt64) -> Node? {
      guard let position = position(reference, hash) else { return nil }
      let place = Int(table[position]) - 1
      places[place].isWanted = true
      return places[place].node
    }

    mutating func insert(_ node: Node, _ hash: UInt64) -> Node? {
      guard position(node.reference, hash) == nil else { return nil }
      var evicted: Node?
      let place: Int
      if let reused = free.popLast() {
        place = Int(reused)
        // The hand may be about to reach this place, so it passes once before it evicts the node.
        places[place] = Place(node: node, isWanted: true)
      } else if places.count < capacity {
        place = places.count
        grow()
        places.append(Place(node: node))
      } else {
        place = nextVictim()
        evicted = places[place].node
        if let evicted { forget(evicted) }
        places[place] = Place(node: node)
      }
      enter(place, hash)
      return evicted
    }

    /// Makes room for one more place.
    private mutating func grow() {
      if places.count == places.capacity {
        places.reserveCapacity(min(capacity, max(Self.firstPlaces, 2 * places.count)))
      }
      guard 2 * (places.count + 1) > table.count else { return }
      table = Array(repeating: 0, count: 2 * table.count)
      for (place, entry) in places.enumerated() {
        if let node = entry.node { enter(place, NodeCache.hash(node.reference.number)) }
      }
    }

    private mutating func enter(_ place: Int, _ hash: UInt64) {
      var slot = slot(hash)
      while table[slot] != 0 { slot = (slot + 1) & (table.count - 1) }
      table[slot] = Int32(place + 1)
    }

    /// Moves the hand past a place whose node wasn't read since the hand last passed, and returns the place.
    private mutating func nextVictim() -> Int {
      while places[hand].isWanted {
        places[hand].isWanted = false
        hand = (hand + 1) % places.count
      }
      defer { hand = (hand + 1) % places.count }
      return hand
    }

    mutating func remove(_ reference: Reference, _ hash: UInt64) -> Node? {
      guard let position = position(reference, hash) else { return nil }
      let place = Int(table[position]) - 1
      let node = places[place].node
      if let node { forget(node) }
      places[place] = Place(node: nil)
      free.append(Int32(place))
      return node
    }

    mutating func removeAll() { self = Shard(capacity: capacity) }

    /// Removes a node from the table. Moves later nodes that its slot had displaced.
    private mutating func forget(_ node: Node) {
      guard var hole = position(node.reference, NodeCache.hash(node.reference.number)) else { return }
      let mask = table.count - 1
      var next = (hole + 1) & mask
      while table[next] != 0 {
        if let other = places[Int(table[next]) - 1].node {
          let home = slot(NodeCache.hash(other.reference.number))
          // A node may move if its home isn't between the hole and its slot.
          if (next - home) & mask >= (next - hole) & mask {
            table[hole] = table[next]
            hole = next
          }
        }
        next = (next + 1) & mask
      }
      table[hole] = 0
    }
  }
}
