import Documents
import Storage

// What a planner knows of a value index: the one entry of the keyspace `index.NUMBER.statistics`, under "s".
//
//   statistics := version:u8=1  entries:varint  distinct:varint*     one for each expression
//
// Written when the index is built, when as many entries have come or gone as there were, and by a compaction.

/// What a planner knows of a value index.
struct ValueIndexStatistics: Sendable, Equatable {
  /// How many entries there were when they were counted.
  var entries = 0
  /// For each number of leading expressions, from one on, how many different values they had together.
  var distinct: [Int]

  static let version: UInt8 = 1
  static let key = Array("s".utf8)

  init(columns: Int) { distinct = Array(repeating: 0, count: columns) }

  /// For each number of leading expressions, from one on, about how many entries share their values, when the index
  /// has `count` entries. Empty when nothing is known.
  func entriesPerPrefix(of count: Int) -> [Double] {
    guard entries > 0 else { return [] }
    return distinct.map { distinct in
      // What has no two alike mostly stays so; what has few values, too.
      max(1, Double(count) * (Double(entries) / Double(max(distinct, 1))) / Double(entries))
    }
  }

  var encoded: [UInt8] {
    var bytes = [ValueIndexStatistics.version]
    bytes.append(varint: UInt64(entries))
    for number in distinct { bytes.append(varint: UInt64(number)) }
    return bytes
  }

  /// Reads what is stored; nil for what can't be read, as statistics are only of use.
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

  /// Those of the index as `transaction` has them; nil when there are none.
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

/// Counts different values in keys that come in order.
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

  /// The next key, as it is stored.
  mutating func add(_ key: UnsafeRawBufferPointer) {
    var common = 0
    let limit = min(lastLength, key.count)
    last.withUnsafeMutableBytes { last in
      while common < limit, last[common] == key[common] { common += 1 }
      if let source = key.baseAddress, key.count <= last.count {
        // What is alike stands there already.
        (last.baseAddress.unsafelyUnwrapped + common).copyMemory(
          from: source + common, byteCount: key.count - common)
      }
    }
    lastLength = min(key.count, last.count)
    statistics.entries += 1
    var decoder = OrderedKeyDecoder(key)
    for column in 0..<columns {
      // Of a cut key the values may end too early: it counts as one of its own.
      let isWhole = (try? decoder.skip()) != nil
      if !isWhole || decoder.offset > common || statistics.entries == 1 {
        for rest in column..<columns { statistics.distinct[rest] += 1 }
        return
      }
    }
  }
}
