import Storage

/// Nested reads. Each one checks the bytes lent to it before and after the inner reads.
struct Nesting {
  static let shapes: [KeyspaceShape] = [.documents, .entries, .sequences, .documents, .entries]
  /// `read`, `scan` in both directions and of keys, `follow`, its `reference`, `getMany`, a cursor.
  static let wayCount = 8
  private static let keyCount = 60

  var maps = [SortedMap](repeating: SortedMap(), count: shapes.count)
  private var keyspaces: [Keyspace] = []
  private var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  func keyspace(_ place: Int) -> Keyspace { keyspaces[place] }

  /// Fills keyspaces with values of no bytes, some bytes, a page and many pages.
  mutating func fill(_ engine: any StorageEngine) throws {
    var changed = self
    try engine.write { transaction in
      for (place, shape) in Self.shapes.enumerated() {
        let keyspace = try transaction.createKeyspace("n\(place)", shape: shape)
        changed.keyspaces.append(keyspace)
        for number in 0..<Self.keyCount {
          let (key, value) = (changed.key(number, shape), changed.anyValue())
          try transaction.put(key, value, in: keyspace)
          changed.maps[place].put(key, value)
        }
      }
    }
    self = changed
  }

  /// Puts and deletes a few entries.
  mutating func change(_ transaction: any WriteTransaction) throws {
    for _ in 0..<4 {
      let place = generator.below(Self.shapes.count)
      let key = key(generator.below(Self.keyCount), Self.shapes[place])
      if generator.once(in: 3), maps[place].entries.count > Self.keyCount / 2 {
        let isThere = maps[place].delete(key)
        try expectEqual(transaction.delete(key, in: keyspaces[place]), isThere, "whether a key was there")
      } else {
        let value = anyValue()
        try transaction.put(key, value, in: keyspaces[place])
        maps[place].put(key, value)
      }
    }
  }

  /// Reads in a random way, with nested reads inside.
  mutating func go(_ transaction: any ReadTransaction, depth: Int) throws {
    guard depth > 0 else { return }
    let (way, place) = (generator.below(Self.wayCount), generator.below(Self.shapes.count))
    var inner = self
    try lend(transaction, way, place) {
      // Two reads at the outer levels, so that memory freed by the first is reused.
      for _ in 0..<(depth > 6 ? 2 : 1) { try inner.go(transaction, depth: depth - 1) }
    }
    generator = inner.generator
  }

  /// Calls `body` inside each kind of read, in each keyspace.
  func eachWay(_ transaction: any ReadTransaction, _ body: (_ way: String) throws -> Void) throws {
    for place in Self.shapes.indices {
      for way in 0..<Self.wayCount {
        var calls = 0
        try lend(transaction, way, place) {
          calls += 1
          try body("way \(way) in a keyspace of \(Self.shapes[place])")
        }
        try expectEqual(calls, 1, "closures called in way \(way)")
      }
    }
  }

  /// Checks that every write throws `bytesAreLent`.
  func expectRefused(_ transaction: any WriteTransaction, _ way: String) throws {
    let other = keyspaces[1]
    for (name, write) in [
      ("put", { try transaction.put([1], [2], in: other) }),
      ("insert", { _ = try transaction.insert([1], [2], in: other) }),
      ("append", { try transaction.append([0xFF, 0xFF], [2], in: other) }),
      ("delete", { try transaction.delete(maps[1].entries[0].key, in: other) }),
      ("deleteRange", { _ = try transaction.deleteRange(.all, in: other) }),
      ("createKeyspace", { _ = try transaction.createKeyspace("new", shape: .documents) }),
      ("dropKeyspace", { try transaction.dropKeyspace(other) }),
    ] as [(String, () throws -> Void)] {
      try expectError(.bytesAreLent, from: "\(name) inside of \(way)", write)
    }
  }

  /// Reads an entry from the middle of a keyspace in one way. Calls `body` once while the entry is lent, and
  /// checks its bytes before and after.
  func lend(
    _ transaction: any ReadTransaction, _ way: Int, _ place: Int, _ body: () throws -> Void
  ) throws {
    let (keyspace, map) = (keyspaces[place], maps[place])
    let index = (way * 7 + place * 3) % map.entries.count
    let entry = map.entries[index]
    func same(_ bytes: RawSpan, _ wanted: [UInt8], _ what: String) throws {
      if bytes.isEqual(to: wanted.span.bytes) { return }
      throw ConformanceFailure(
        "\(what), way \(way) in a keyspace of \(keyspace.shape): \(bytes.byteCount) bytes that aren't what was put"
      )
    }
    func take(_ key: RawSpan, _ value: RawSpan, _ wanted: [UInt8]) throws {
      try same(key, entry.key, "a key")
      try same(value, wanted, "a value")
      try body()
      try same(key, entry.key, "a key after other reads")
      try same(value, wanted, "a value after other reads")
    }
    switch way {
    case 0:
      let isThere = try transaction.read(entry.key.span.bytes, in: keyspace) {
        try take(entry.key.span.bytes, $0, entry.value)
      }
      try expect(isThere, "there is no value at \(hexadecimal(entry.key))")
    case 1, 2, 3:
      let order: ScanOrder = way == 2 ? .descending : .ascending
      try transaction.scan(
        keyspace, way == 2 ? .all : KeyRange(lower: .inclusive(entry.key)), order: order,
        fetch: way == 3 ? .keys : .entries
      ) { key, value in
        guard key.isEqual(to: entry.key.span.bytes) else { return true }
        try take(key, value, way == 3 ? [] : entry.value)
        return false
      }
    case 4, 5:
      // The target is the keyspace itself.
      try transaction.follow(
        keyspace, KeyRange(lower: .inclusive(entry.key)), order: .ascending, into: keyspace
      ) { key, value in
        if way == 5 {
          try take(key, value, entry.value)
          return .end
        }
        return .inKey(0..<key.byteCount)
      } _: { key, value, found in
        try take(key, found, entry.value)
        try same(value, entry.value, "the value that was followed")
        return false
      }
    case 6:
      var keys = KeyList()
      let other = map.entries[0].key
      keys.append(entry.key.span.bytes)
      keys.append(other.span.bytes)
      try transaction.getMany(keys, in: keyspace) { _, value in
        try take(entry.key.span.bytes, value, entry.value)
        return false
      }
    default:
      let cursor = try transaction.cursor(in: keyspace, .all)
      let found: Void? = try cursor.seek(entry.key.span.bytes) { try take($0, $1, entry.value) }
      try expect(found != nil, "a cursor finds no \(hexadecimal(entry.key))")
    }
  }

  private func key(_ number: Int, _ shape: KeyspaceShape) -> [UInt8] {
    if shape == .sequences { return sequenceKey(UInt64(number * 3)) }
    let key = Array("\(number * 7_919 % 100)/\(number)".utf8)
    return number % 10 == 0 ? key + [UInt8](repeating: 0x61, count: 400) : key
  }

  private mutating func anyValue() -> [UInt8] {
    switch generator.below(12) {
    case 0: []
    case 1: generator.bytes(100_000 + generator.below(50_000))
    case 2: generator.bytes(10_000)
    case 3: generator.bytes(4_000 + generator.below(200))
    default: generator.bytes(generator.below(300))
    }
  }
}
