import Bytes
import Documents
import Storage

// The statistics of a value index for the planner. They are stored in the keyspace `index.NUMBER.statistics`
// under the key "s".
//
//   statistics := version:u8=1  entries:varint  distinct:varint*     one for each expression
//
// They are written when the index is built, after as many entries were added or deleted as there are, and by
// a compaction.

/// The statistics of a value index for the planner.
struct ValueIndexStatistics: Sendable, Equatable {
  /// The number of entries when they were counted.
  var entries = 0
  /// For the first 1, 2, … expressions, the number of different values they had together.
  var distinct: [Int]

  static let version: UInt8 = 1
  static let key = Array("s".utf8)

  init(columns: Int) { distinct = Array(repeating: 0, count: columns) }

  /// For the first 1, 2, … expressions, the approximate number of entries that share their values, when the
  /// index has `count` entries. Empty when nothing is known.
  func entriesPerPrefix(of count: Int) -> [Double] {
    guard entries > 0 else { return [] }
    return distinct.map { distinct in
      // The ratio is assumed to stay the same: unique values mostly stay unique, and few values stay few.
      max(1, Double(count) * (Double(entries) / Double(max(distinct, 1))) / Double(entries))
    }
  }

  var encoded: [UInt8] {
    var bytes = [ValueIndexStatistics.version]
    bytes.append(varint: UInt64(entries))
    for number in distinct { bytes.append(varint: UInt64(number)) }
    return bytes
  }

  /// Decodes stored statistics. Nil when they can't be read, because statistics are optional.
  init?(_ bytes: UnsafeRawBufferPointer, columns: Int) {
    var offset = 1
    guard bytes.first == ValueIndexStatistics.version,
      let entries = bytes.varint(at: &offset).flatMap({ Int(exactly: $0) })
    else { return nil }
    self.entries = entries
    distinct = []
    for _ in 0..<columns {
      guard let number = bytes.varint(at: &offset).flatMap({ Int(exactly: $0) }), number <= entries else {
        return nil
      }
      distinct.append(number)
    }
  }

  /// The statistics of an index in `transaction`. Nil when there are none.
  static func load(_ index: IndexRecord, columns: Int, _ transaction: any ReadTransaction) throws
    -> ValueIndexStatistics?
  {
    guard let keyspace = try transaction.keyspace(named: index.keyspaceName + ".statistics") else {
      return nil
    }
    return try transaction.withValue(at: key, in: keyspace) {
      $0.withUnsafeBytes { ValueIndexStatistics($0, columns: columns) }
    } ?? nil
  }

  func write(_ keyspace: Keyspace, _ transaction: any WriteTransaction) throws {
    try transaction.put(ValueIndexStatistics.key, encoded, in: keyspace)
  }
}

/// Counts the different values in keys that come in order.
struct ValueIndexCounter {
  private(set) var statistics: ValueIndexStatistics
  private let columns: Int
  private var last: [UInt8] = []
  private var lastLength = 0

  init(columns: Int) {
    self.columns = columns
    statistics = ValueIndexStatistics(columns: columns)
    last = Array(repeating: 0, count: StorageLimits.maximumKeyBytes)
  }

  /// Adds the next stored key.
  mutating func add(_ key: UnsafeRawBufferPointer) {
    var common = 0
    let limit = min(lastLength, key.count)
    last.withUnsafeMutableBytes { last in
      while common < limit, last[common] == key[common] { common += 1 }
      if let source = key.baseAddress, key.count <= last.count {
        // The common prefix is already there.
        (last.baseAddress.unsafelyUnwrapped + common).copyMemory(
          from: source + common, byteCount: key.count - common)
      }
    }
    lastLength = min(key.count, last.count)
    statistics.entries += 1
    var decoder = OrderedKeyDecoder(key)
    for column in 0..<columns {
      // The values of a cut key may be incomplete. Then the key counts as a value of its own.
      let isWhole = (try? decoder.skip()) != nil
      if !isWhole || decoder.offset > common || statistics.entries == 1 {
        for rest in column..<columns { statistics.distinct[rest] += 1 }
        return
      }
    }
  }
}
