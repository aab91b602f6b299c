import Datasets
import Limits

#if canImport(Glibc)
  import Glibc
#endif

/// The keys and values of the engine suite. Engines and limits read the same data.
///
/// A key has 24 digits, as in db_bench. Even numbers exist, odd ones are missing. Values are parts of one
/// megabyte of random bytes.
final class KeyValueData: @unchecked Sendable {
  // Never changes after `init`.
  static let keyBytes = 24
  private static let poolBytes = 1 << 20

  let valueBytes: Int
  /// In ascending order of keys.
  let sequential: Records
  /// In the random order in which databases are filled.
  let shuffled: Records
  /// In another random order, with other values, for reading and overwriting.
  let reshuffled: Records
  /// Keys between the existing ones, in random order.
  let missing: Records
  /// Keys in random order, each followed by at least `rangeLength` entries. Their ranges together have as
  /// many entries as the database.
  let rangeStarts: Records

  private let keys: UnsafeMutablePointer<UInt8>
  private let pool: UnsafeMutablePointer<UInt8>

  init(count: Int, valueBytes: Int, rangeLength: Int, seed: UInt64) {
    self.valueBytes = valueBytes
    let keyBytes = KeyValueData.keyBytes
    keys = .allocate(capacity: 2 * count * keyBytes)
    pool = .allocate(capacity: KeyValueData.poolBytes + valueBytes)
    var random = SeededRandom(seed: seed)
    for index in 0..<KeyValueData.poolBytes + valueBytes {
      pool[index] = UInt8(truncatingIfNeeded: random.next())
    }
    for number in 0..<2 * count {
      var rest = number
      for digit in stride(from: keyBytes - 1, through: 0, by: -1) {
        keys[number * keyBytes + digit] = 0x30 + UInt8(rest % 10)
        rest /= 10
      }
    }
    let keys = keys
    let pool = pool
    func records(_ order: [Int], isMissing: Bool = false) -> Records {
      let records = UnsafeMutableBufferPointer<limit_record>.allocate(capacity: order.count)
      for (index, number) in order.enumerated() {
        records[index] = limit_record(
          key: limit_bytes(bytes: keys + (2 * number + (isMissing ? 1 : 0)) * keyBytes, count: keyBytes),
          value: limit_bytes(bytes: pool + random.below(KeyValueData.poolBytes), count: valueBytes))
      }
      return Records(records)
    }
    sequential = records(Array(0..<count))
    shuffled = records(random.order(count))
    reshuffled = records(random.order(count))
    missing = records(random.order(count), isMissing: true)
    rangeStarts = records(
      Array(random.order(count).filter { $0 + rangeLength <= count }.prefix(count / rangeLength)))
  }

  deinit {
    for records in [sequential, shuffled, reshuffled, missing, rangeStarts] { records.deallocate() }
    keys.deallocate()
    pool.deallocate()
  }
}
