/// A 64-bit digest of a sequence of entries. Two different sequences have the same digest with a probability
/// of about 2^-63.
///
/// The seeds are random in each process, so no data can be made to collide. The digest is the sum of one
/// number per entry. Each number includes the entry's position, so the digests of consecutive parts can be
/// added.
struct EntryDigest {
  private static let seeds: (UInt64, UInt64, UInt64, UInt64) = (
    .random(in: 1...UInt64.max), .random(in: 1...UInt64.max), .random(in: 1...UInt64.max),
    .random(in: 1...UInt64.max)
  )

  private(set) var value: UInt64 = 0
  private let seeds = EntryDigest.seeds
  /// The number of entries.
  private(set) var entries = 0
  /// The number of bytes in keys and values.
  private(set) var bytes = 0
  /// The position of the first entry in the whole sequence.
  private let first: UInt64

  /// The empty digest of the part that begins after `entries` entries.
  init(behind entries: Int = 0) { first = UInt64(entries) }

  /// The digest of the entries of a range.
  static func of(_ range: KeyRange, in keyspace: Keyspace, _ transaction: any ReadTransaction) throws
    -> EntryDigest
  {
    var digest = EntryDigest()
    try transaction.scan(keyspace, range) { key, value in
      key.withUnsafeBytes { key in value.withUnsafeBytes { digest.add(key, $0) } }
      return true
    }
    return digest
  }

  /// Whether both are of the same entries.
  func isSame(as other: EntryDigest) -> Bool { entries == other.entries && value == other.value }

  mutating func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    var digest = mixed(seeds.0 ^ (first &+ UInt64(entries)), seeds.1 ^ UInt64(key.count))
    digest = mixed(digest ^ seeds.2, seeds.3 ^ UInt64(value.count))
    self.value &+= added(value, to: added(key, to: digest))
    entries += 1
    bytes += key.count + value.count
  }

  /// Adds the digest of the part that follows this one.
  mutating func add(_ next: EntryDigest) {
    assert(next.first == first + UInt64(entries))
    value &+= next.value
    entries += next.entries
    bytes += next.bytes
  }

  @inline(__always)
  private func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  @inline(__always)
  private func added(_ bytes: UnsafeRawBufferPointer, to digest: UInt64) -> UInt64 {
    guard var place = bytes.baseAddress else { return digest }
    var left = bytes.count
    var digest = digest
    if left >= 64 {
      // Four products at a time, because they don't depend on each other.
      var others = (digest ^ seeds.1, digest ^ seeds.2, digest ^ seeds.3)
      repeat {
        digest = mixed(word(place, 0) ^ seeds.0, word(place, 8) ^ digest)
        others.0 = mixed(word(place, 16) ^ seeds.1, word(place, 24) ^ others.0)
        others.1 = mixed(word(place, 32) ^ seeds.2, word(place, 40) ^ others.1)
        others.2 = mixed(word(place, 48) ^ seeds.3, word(place, 56) ^ others.2)
        place += 64
        left -= 64
      } while left >= 64
      digest = mixed(
        mixed(digest ^ seeds.1, others.0 ^ seeds.2), mixed(others.1 ^ seeds.3, others.2 ^ seeds.0))
    }
    while left >= 16 {
      digest = mixed(word(place, 0) ^ seeds.0, word(place, 8) ^ digest)
      place += 16
      left -= 16
    }
    guard left > 0 else { return digest }
    let rest = Self.rest(place, left)
    return mixed(rest.0 ^ seeds.0, rest.1 ^ digest)
  }

  @inline(__always)
  private func word(_ place: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    place.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// Reads 1 to 15 bytes with overlapping loads. The digest already includes the count.
  @inline(__always)
  private static func rest(_ place: UnsafeRawPointer, _ count: Int) -> (UInt64, UInt64) {
    if count >= 8 {
      return (
        place.loadUnaligned(as: UInt64.self),
        place.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
      )
    }
    if count >= 4 {
      return (
        UInt64(place.loadUnaligned(as: UInt32.self)),
        UInt64(place.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
      )
    }
    let ends = (place.load(as: UInt8.self), place.load(fromByteOffset: count - 1, as: UInt8.self))
    let middle = place.load(fromByteOffset: count / 2, as: UInt8.self)
    return (UInt64(ends.0) << 16 | UInt64(middle) << 8 | UInt64(ends.1), UInt64(0))
  }
}
