import Glibc
import Storage

/// Where entries of a keyspace lie in the map, for keys that were looked up last: they aren't searched for from the root
/// again.
///
/// It belongs to a slot, and is for one thread at a time. Pages that a snapshot sees never change, so what was found holds for
/// as long as snapshots are of the same transaction; for another it begins anew.
final class EntryPlaces {
  /// What places hold for.
  struct Version: Equatable {
    var keyspace: Int
    /// LMDB's number of the snapshot's transaction.
    var transaction: Int
    /// How often the map has changed its size, and maybe its place.
    var map: Int
  }

  private struct Place: BitwiseCopyable {
    /// The key's hash, whose lowest bits say where the place is.
    var hash: UInt64 = 0
    var generation: UInt32 = 0
    var keyCount: UInt16 = 0
    var key = UnsafeRawPointer(bitPattern: 8).unsafelyUnwrapped
    var value = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  private static let count = 2048
  // 80 KB.
  private let places: UnsafeMutablePointer<Place>
  @exclusivity(unchecked) private var version: Version
  /// What places of this version carry; those with another are empty.
  @exclusivity(unchecked) private var generation: UInt32 = 1

  init(_ version: Version) {
    places = .allocate(capacity: Self.count)
    places.initialize(repeating: Place(), count: Self.count)
    self.version = version
  }

  deinit { places.deallocate() }

  /// Forgets what was found for another version.
  func begin(_ version: Version) {
    if version == self.version { return }
    self.version = version
    generation &+= 1
    if generation == 0 {
      places.update(repeating: Place(), count: Self.count)
      generation = 1
    }
  }

  @inline(__always)
  private func place(_ hash: UInt64) -> UnsafeMutablePointer<Place> {
    places + Int(truncatingIfNeeded: hash & UInt64(Self.count - 1))
  }

  /// The value of a key that was noted; nil when it isn't known here.
  @inline(__always)
  func value(of key: UnsafeRawBufferPointer, _ hash: UInt64) -> UnsafeRawBufferPointer? {
    let place = place(hash)
    guard place.pointee.hash == hash, place.pointee.generation == generation,
      Int(place.pointee.keyCount) == key.count, let start = key.baseAddress,
      memcmp(place.pointee.key, start, key.count) == 0
    else { return nil }
    return place.pointee.value
  }

  /// Remembers where a key and its value lie in the map.
  @inline(__always)
  func note(_ key: UnsafeRawBufferPointer, _ hash: UInt64, _ value: UnsafeRawBufferPointer) {
    guard let start = key.baseAddress, let keyCount = UInt16(exactly: key.count) else { return }
    place(hash).pointee = Place(
      hash: hash, generation: generation, keyCount: keyCount, key: start, value: value)
  }
}
