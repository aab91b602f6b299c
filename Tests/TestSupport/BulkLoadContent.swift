import Storage
import StorageConformance

/// What new files are filled with page by page, and what an engine says of it afterwards: the same for all engines that can.
public struct BulkLoadContent {
  /// Keys and their values.
  public typealias Entries = [(key: [UInt8], value: [UInt8])]

  /// A keyspace each; entries in the order of their keys.
  public private(set) var keyspaces: [(shape: KeyspaceShape, entries: Entries)] = []

  /// No keyspaces.
  public init() {}

  /// Adds a keyspace of random entries. Keys are in order and of these lengths and four bytes more; those of sequences are
  /// numbers with gaps.
  public mutating func add(
    _ shape: KeyspaceShape, _ count: Int, keyBytes: ClosedRange<Int>, valueBytes: ClosedRange<Int>,
    _ random: inout SeededGenerator
  ) {
    var number = UInt64.random(in: 0...1, using: &random)
    var entries: Entries = []
    for index in 0..<count {
      let value = random.bytes(Int.random(in: valueBytes, using: &random))
      if shape == .sequences {
        entries.append((withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }, value))
        number += UInt64.random(
          in: 1...UInt64(1) << UInt64.random(in: 0...40, using: &random), using: &random)
      } else {
        let prefix = withUnsafeBytes(of: UInt32(index).bigEndian) { [UInt8]($0) }
        entries.append((prefix + random.bytes(Int.random(in: keyBytes, using: &random)), value))
      }
    }
    keyspaces.append((shape, entries))
  }

  /// Adds a keyspace of these entries.
  public mutating func add(_ shape: KeyspaceShape, _ entries: Entries) { keyspaces.append((shape, entries)) }

  /// Makes the keyspaces and fills them. Nil when the engine doesn't fill this file so.
  public func load(into engine: some BulkLoadingEngine) throws -> [Keyspace]? {
    let made = try Self.make(keyspaces.map(\.shape), in: engine)
    let isLoaded = try engine.bulkLoad { load in
      for (keyspace, content) in zip(made, keyspaces) {
        for entry in content.entries { try load.append(entry.key, entry.value, in: keyspace) }
      }
    }
    return isLoaded ? made : nil
  }

  /// Empty keyspaces of these shapes.
  public static func make(_ shapes: [KeyspaceShape], in engine: some StorageEngine) throws -> [Keyspace] {
    try engine.write { (transaction: any WriteTransaction) -> [Keyspace] in
      try shapes.enumerated().map { try transaction.createKeyspace("k\($0.offset)", shape: $0.element) }
    }
  }

  /// Deletes a third of the entries, gives a fifth other values, and adds one behind the last, in the engine and here.
  public mutating func change(
    in engine: some StorageEngine, _ made: [Keyspace], _ random: inout SeededGenerator
  ) throws {
    for (place, keyspace) in made.enumerated() {
      var kept: Entries = []
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for (index, entry) in keyspaces[place].entries.enumerated() {
          if index % 3 == 1 {
            _ = try entry.key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
          } else {
            let value = index % 5 == 0 ? random.bytes(Int.random(in: 0...5_000, using: &random)) : entry.value
            if index % 5 == 0 { try transaction.put(entry.key, value, in: keyspace) }
            kept.append((entry.key, value))
          }
        }
        if keyspace.shape != .sequences {
          kept.append(([255, 255, 255, 255, 1], [1, 2, 3]))
          try transaction.put([255, 255, 255, 255, 1], [1, 2, 3], in: keyspace)
        }
      }
      keyspaces[place].entries = kept
    }
  }

  /// What is wrong in the engine: its own check, counts, scans in these orders (`stored` is that of the keys until the file
  /// is changed) and each entry by itself.
  public func faults(
    in engine: some StorageEngine, _ made: [Keyspace], _ orders: [ScanOrder] = [.ascending, .descending]
  ) throws -> [String] {
    var faults = try engine.checkIntegrity()
    try engine.read { transaction in
      for (keyspace, content) in zip(made, keyspaces) {
        let entries = content.entries
        let count = try transaction.count(of: keyspace)
        if count != entries.count { faults.append("\(keyspace) has \(count) entries, not \(entries.count)") }
        for order in orders {
          let expected = order == .descending ? entries.reversed() : entries
          var index = 0
          var isEqual = true
          try transaction.scan(keyspace, .all, order: order, fetch: .entries) { key, value in
            isEqual =
              index < expected.count && [UInt8](copying: key).elementsEqual(expected[index].key)
              && [UInt8](copying: value).elementsEqual(expected[index].value)
            index += 1
            return isEqual
          }
          if !isEqual || index != expected.count { faults.append("\(keyspace), \(order), at \(index)") }
        }
        for entry in entries where try transaction.bytes(entry.key, in: keyspace) != entry.value {
          faults.append("\(keyspace): the value of \(entry.key)")
        }
      }
    }
    return faults
  }
}

extension BulkLoad {
  /// Appends an entry of these bytes.
  public func append(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try key.withUnsafeBytes { key in try value.withUnsafeBytes { try append(key, $0, in: keyspace) } }
  }
}
