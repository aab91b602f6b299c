import CSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// Where rows of documents were found: for keys that were looked up, the numbers of their rows, by which the library finds
/// them in half the time.
///
/// A memory of the last ones, shared by the connections of a file. What it says is a guess: a row may have gone, or be
/// another's in a snapshot, so whoever reads it compares its key.
final class RowPlaces: @unchecked Sendable {
  // A word for a row: the upper 24 bits of its key's hash, and the row's number. Two words for the keys that share the
  // lower bits, the later one first. Threads read and write them as they come: at worst a guess is lost.
  private let words: UnsafeMutablePointer<UInt64>
  private static let bucketBits: UInt64 = 15
  private static var byteCount: Int { MemoryLayout<UInt64>.stride * 2 << Int(bucketBits) }
  private static let numberBits: UInt64 = 40
  private static let numberMask: UInt64 = 1 << numberBits - 1

  init() {
    // Of the system, which gives pages of zeros as they are used: memory that malloc gives again would have to be cleared.
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    guard let memory = mmap(nil, Self.byteCount, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED
    else { preconditionFailure("out of memory") }
    words = memory.bindMemory(to: UInt64.self, capacity: Self.byteCount / MemoryLayout<UInt64>.stride)
  }

  deinit { munmap(words, Self.byteCount) }

  @inline(__always)
  private static func bucket(_ hash: UInt64) -> Int { Int(hash & (1 << bucketBits - 1)) &* 2 }

  /// The number of the row that a key had; 0 when it isn't known.
  @inline(__always)
  func row(of hash: UInt64) -> Int64 {
    let bucket = words + Self.bucket(hash)
    let first = csqlite_load_relaxed(bucket)
    if (first ^ hash) >> Self.numberBits == 0 { return Int64(first & Self.numberMask) }
    let second = csqlite_load_relaxed(bucket + 1)
    if (second ^ hash) >> Self.numberBits == 0 { return Int64(second & Self.numberMask) }
    return 0
  }

  /// Remembers the row of a key.
  func note(_ hash: UInt64, _ row: Int64) {
    guard row > 0, UInt64(row) <= Self.numberMask else { return }
    let bucket = words + Self.bucket(hash)
    let word = hash & ~Self.numberMask | UInt64(row)
    let first = csqlite_load_relaxed(bucket)
    if first != 0, (first ^ hash) >> Self.numberBits != 0 { csqlite_store_relaxed(bucket + 1, first) }
    csqlite_store_relaxed(bucket, word)
  }
}
