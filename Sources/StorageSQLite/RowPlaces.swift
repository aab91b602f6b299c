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
  private static let numberBits: UInt64 = 40
  private static let numberMask: UInt64 = 1 << numberBits - 1

  init() {
    let count = 2 << Int(Self.bucketBits)
    // Half a megabyte of which the system gives what is used.
    guard let memory = calloc(count, MemoryLayout<UInt64>.stride) else {
      preconditionFailure("out of memory")
    }
    words = memory.bindMemory(to: UInt64.self, capacity: count)
  }

  deinit { free(words) }

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
