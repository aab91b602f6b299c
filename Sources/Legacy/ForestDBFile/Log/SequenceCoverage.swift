/// Which of the sequences that a store gave since the log was flushed have a record in the log.
///
/// Each change of a store has a sequence, and an unfinished transaction leaves none out. One bit is kept for each.
struct SequenceCoverage {
  private let first: UInt64
  private let count: UInt64
  private var bits: [UInt64] = []
  private var found: UInt64 = 0

  /// The sequences `first...last`. Nothing is kept for more than `limit` sequences, which then count as missing.
  init(_ first: UInt64, _ last: UInt64, limit: UInt64) {
    self.first = first
    count = last >= first ? last - first &+ 1 : 0
    if count > 0, count <= limit { bits = Array(repeating: 0, count: Int(count / 64 + 1)) }
  }

  mutating func add(_ sequence: UInt64) {
    let place = sequence &- first
    guard place < count, !bits.isEmpty else { return }
    let mask = UInt64(1) << (place & 63)
    if bits[Int(place >> 6)] & mask == 0 { found += 1 }
    bits[Int(place >> 6)] |= mask
  }

  /// Whether a sequence was given and has no record.
  func isMissing(_ sequence: UInt64) -> Bool {
    let place = sequence &- first
    guard place < count else { return false }
    return bits.isEmpty || bits[Int(place >> 6)] >> (place & 63) & 1 == 0
  }

  /// The number of sequences without a record.
  var missing: UInt64 { count - found }
}
