import CSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// A cache of row numbers of documents, by the hash of their keys. The library finds a row by its number in
/// half the time.
///
/// The cache holds the most recent rows and is shared by all connections of a file. An entry is only a guess:
/// the row may be gone, or belong to another key in a snapshot. The reader must compare the row's key.
final class RowPlaces: @unchecked Sendable {
  // One word per row: the upper 24 bits of the key's hash and the row's number. Each bucket has two words for
  // the keys that share the lower bits of the hash, the newer one first. Threads read and write the words
  // without a lock. The worst result is a lost guess.
  private let words: UnsafeMutablePointer<UInt64>
  private static let bucketBits: UInt64 = 15
  private static var byteCount: Int { MemoryLayout<UInt64>.stride * 2 << Int(bucketBits) }
  private static let numberBits: UInt64 = 40
  private static let numberMask: UInt64 = 1 << numberBits - 1

  init() {
    // mmap provides zeroed pages as they are used. Memory from malloc would have to be cleared.
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    guard let memory = mmap(nil, Self.byteCount, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED
    else { preconditionFailure("out of memory") }
    words = memory.bindMemory(to: UInt64.self, capacity: Self.byteCount / MemoryLayout<UInt64>.stride)
  }

  deinit { munmap(words, Self.byteCount) }

  @inline(__always)
  private static func bucket(_ hash: UInt64) -> Int { Int(hash & (1 << bucketBits - 1)) &* 2 }

  /// Returns the number of the row where a key was found, or 0 if it isn't known.
  @inline(__always)
  func row(of hash: UInt64) -> Int64 {
    let bucket = words + Self.bucket(hash)
    let first = csqlite_load_relaxed(bucket)
    if (first ^ hash) >> Self.numberBits == 0 { return Int64(first & Self.numberMask) }
    let second = csqlite_load_relaxed(bucket + 1)
    if (second ^ hash) >> Self.numberBits == 0 { return Int64(second & Self.numberMask) }
    return 0
  }

  /// Stores the row of a key.
  func note(_ hash: UInt64, _ row: Int64) {
    guard row > 0, UInt64(row) <= Self.numberMask else { return }
    let bucket = words + Self.bucket(hash)
    let word = hash & ~Self.numberMask | UInt64(row)
    let first = csqlite_load_relaxed(bucket)
    if first != 0, (first ^ hash) >> Self.numberBits != 0 { csqlite_store_relaxed(bucket + 1, first) }
    csqlite_store_relaxed(bucket, word)
  }
}
