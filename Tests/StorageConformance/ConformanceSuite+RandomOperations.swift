import Storage

extension ConformanceSuite {
  /// Thousands of random operations on keyspaces of all shapes, in transactions of random length of which some
  /// are rolled back, beside snapshots of older states; every answer is compared with a sorted map.
  func compareWithSortedMap() throws {
    for round in 0..<(isLong ? 30 : 2) {
      try withEngine("random\(round)") { engine in
        var run = RandomOperations(seed: seed &+ UInt64(round))
        try run.go(engine, transactions: isLong ? 600 : 250)
      }
    }
  }
}

private struct RandomOperations {
  private var generator: SeededGenerator
  private var maps: [KeyspaceShape: SortedMap] = [:]
  private var keyspaces: [KeyspaceShape: Keyspace] = [:]
  private var snapshots: [(any ReadTransaction, [KeyspaceShape: SortedMap])] = []

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func go(_ engine: any StorageEngine, transactions: Int) throws {
    defer { for (snapshot, _) in snapshots { snapshot.end() } }
    try engine.write { transaction in
      for shape in KeyspaceShape.allCases {
        keyspaces[shape] = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
        maps[shape] = SortedMap()
      }
    }
    for step in 0..<transactions {
      let before = maps
      let isRolledBack = generator.once(in: 6)
      do {
        try engine.write { transaction in
          for _ in 0..<(1 + generator.below(40)) {
            let shape = generator.pick(KeyspaceShape.allCases)
            if generator.once(in: 3) {
              try read(transaction, shape, maps)
            } else {
              try write(transaction, shape)
            }
          }
          if isRolledBack { throw DeliberateError(number: step) }
        }
        try expect(!isRolledBack, "a transaction whose body threw returned")
      } catch let error as DeliberateError {
        try expectEqual(error.number, step, "the error of the body")
        maps = before
      }
      if generator.once(in: 5) { snapshots.append((try engine.beginRead(), maps)) }
      if snapshots.count > 4 {
        let (snapshot, _) = snapshots.remove(at: generator.below(snapshots.count))
        snapshot.end()
      }
      for (snapshot, maps) in snapshots {
        try read(snapshot, generator.pick(KeyspaceShape.allCases), maps)
      }
      let shape = generator.pick(KeyspaceShape.allCases)
      try engine.read { try read($0, shape, maps) }
    }
    try engine.read { transaction in
      for shape in KeyspaceShape.allCases {
        try expectEqual(
          transaction.entries(of: keyspaces[shape]!), maps[shape]!.entries, "all entries of \(shape)")
      }
    }
    try expectEqual(engine.checkIntegrity(), [], "faults")
  }

  /// One random change, made to both.
  private mutating func write(_ transaction: any WriteTransaction, _ shape: KeyspaceShape) throws {
    let keyspace = keyspaces[shape]!
    let key = anyKey(shape)
    switch generator.below(20) {
    case 0..<8:
      let value = anyValue()
      try transaction.put(key, value, in: keyspace)
      maps[shape]!.put(key, value)
    case 8..<12:
      let value = anyValue()
      let isThere = maps[shape]![key] != nil
      try expectEqual(transaction.insert(key, value, in: keyspace), !isThere, "insert of \(hexadecimal(key))")
      if !isThere { maps[shape]!.put(key, value) }
    case 12..<14:
      let value = anyValue()
      if let last = maps[shape]!.entries.last?.key, !isBefore(last, key) {
        try expectError(.outOfOrder, from: "append of \(hexadecimal(key))") {
          try transaction.append(key, value, in: keyspace)
        }
      } else {
        try transaction.append(key, value, in: keyspace)
        maps[shape]!.put(key, value)
      }
    case 14..<19:
      let wanted = maps[shape]!.delete(key)
      try expectEqual(transaction.delete(key, in: keyspace), wanted, "delete of \(hexadecimal(key))")
    default:
      let range = generator.once(in: 8) ? anyRange(shape) : narrowRange(shape)
      let wanted = maps[shape]!.deleteRange(range)
      try expectEqual(transaction.deleteRange(range, in: keyspace), wanted, "deleteRange \(describe(range))")
    }
    try expectEqual(transaction.count(of: keyspace), maps[shape]!.entries.count, "count of \(shape)")
  }

  /// One random read, compared.
  private mutating func read(
    _ transaction: any ReadTransaction, _ shape: KeyspaceShape, _ maps: [KeyspaceShape: SortedMap]
  ) throws {
    let keyspace = keyspaces[shape]!
    let map = maps[shape]!
    try expectEqual(transaction.count(of: keyspace), map.entries.count, "count of \(shape)")
    switch generator.below(4) {
    case 0:
      for _ in 0..<4 {
        let key = anyKey(shape)
        try expectEqual(transaction.bytes(key, in: keyspace), map[key], "get of \(hexadecimal(key))")
      }
    case 1:
      let range = anyRange(shape)
      let limit = generator.once(in: 2) ? Int.max : generator.below(10) + 1
      let order = generator.pick([ScanOrder.ascending, .descending, .stored])
      let fetch = generator.once(in: 3) ? ScanFetch.keys : .entries
      var found: [SortedMap.Entry] = []
      try transaction.scan(keyspace, range, order: order, fetch: fetch) { key, value in
        found.append(.init(key, value))
        return found.count < limit
      }
      var wanted = map.entries(in: range)
      if order == .descending { wanted.reverse() }
      if fetch == .keys { for index in wanted.indices { wanted[index].value = [] } }
      if order == .stored {
        try expectEqual(
          found.count, min(limit, wanted.count), "entries of a stored scan of \(describe(range))")
        let foundKeys = Set(found.map(\.key))
        try expectEqual(foundKeys.count, found.count, "different keys of a stored scan")
        wanted = wanted.filter { foundKeys.contains($0.key) }
        found.sort { isBefore($0.key, $1.key) }
      }
      try expectEqual(
        found, Array(wanted.prefix(limit)), "\(order) scan of \(fetch) in \(describe(range)) of \(shape)")
    default:
      try walk(transaction, shape, map)
    }
  }

  /// Moves a cursor about.
  private mutating func walk(
    _ transaction: any ReadTransaction, _ shape: KeyspaceShape, _ map: SortedMap
  ) throws {
    let range = anyRange(shape)
    let entries = map.entries(in: range)
    let cursor = try transaction.cursor(in: keyspaces[shape]!, range)
    var index = -1
    for step in 0..<(2 + generator.below(25)) {
      let found: SortedMap.Entry?
      let name: String
      switch generator.below(12) {
      case 0:
        (found, name) = (try cursor.firstEntry(), "first")
        index = 0
      case 1:
        (found, name) = (try cursor.lastEntry(), "last")
        index = entries.count - 1
      case 2..<4:
        let key = generator.once(in: 6) ? anyBound(shape) : anyKey(shape)
        (found, name) = (try cursor.seekEntry(key), "seek \(hexadecimal(key))")
        index = entries.firstIndex { !isBefore($0.key, key) } ?? entries.count
      case 4..<8:
        (found, name) = (try cursor.nextEntry(), "next")
        index += 1
      default:
        (found, name) = (try cursor.previousEntry(), "previous")
        index -= 1
      }
      index = min(max(index, -1), entries.count)
      let wanted = entries.indices.contains(index) ? entries[index] : nil
      try expectEqual(
        found, wanted, "step \(step), \(name), in \(describe(range)) of \(shape)")
    }
  }

  private mutating func anyKey(_ shape: KeyspaceShape) -> [UInt8] {
    guard shape != .sequences else {
      return sequenceKey(
        generator.once(in: 10) ? generator.next() >> 1 : UInt64(generator.below(300)))
    }
    let bytes: [UInt8] = [0, 1, 0x61, 0x62, 0x7F, 0x80, 0xFE, 0xFF]
    switch generator.below(12) {
    case 0: return generator.bytes(1 + generator.below(StorageLimits.maximumKeyBytes))
    case 1:
      // Long keys that differ at their ends.
      return [UInt8](repeating: 0x61, count: 490)
        + (0..<generator.below(21)).map { _ in generator.pick(bytes) }
    default: return (0...generator.below(4)).map { _ in generator.pick(bytes) }
    }
  }

  private mutating func anyValue() -> [UInt8] {
    switch generator.below(30) {
    case 0: return []
    case 1: return generator.bytes(generator.below(30_000))
    case 2: return generator.bytes(4_000 + generator.below(200))
    default: return generator.bytes(generator.below(200))
    }
  }

  private mutating func anyBound(_ shape: KeyspaceShape) -> [UInt8] {
    switch generator.below(8) {
    case 0: return generator.bytes(generator.below(12))
    case 1: return anyKey(shape) + [0]
    case 2: return Array(anyKey(shape).dropLast())
    default: return anyKey(shape)
    }
  }

  private mutating func anyRange(_ shape: KeyspaceShape) -> KeyRange {
    func bound(_ generator: inout SeededGenerator, _ key: [UInt8]) -> KeyRange.Bound {
      switch generator.below(3) {
      case 0: .unbounded
      case 1: .inclusive(key)
      default: .exclusive(key)
      }
    }
    if generator.once(in: 10) { return .prefix(Array(anyKey(shape).prefix(generator.below(4)))) }
    var keys = [anyBound(shape), anyBound(shape)]
    if !generator.once(in: 10) { keys.sort { isBefore($0, $1) } }
    return KeyRange(lower: bound(&generator, keys[0]), upper: bound(&generator, keys[1]))
  }

  /// A range that seldom has more than a few keys, so that maps grow.
  private mutating func narrowRange(_ shape: KeyspaceShape) -> KeyRange {
    let key = anyKey(shape)
    guard shape != .sequences else {
      return KeyRange(
        lower: .inclusive(key), upper: .exclusive(Array(key.dropLast()) + [min(0xFF, key[7] &+ 3)]))
    }
    return .prefix(key)
  }

  private func describe(_ range: KeyRange) -> String {
    func text(_ bound: KeyRange.Bound, _ inclusive: String, _ exclusive: String) -> String {
      switch bound {
      case .unbounded: ""
      case .inclusive(let key): inclusive + hexadecimal(key)
      case .exclusive(let key): exclusive + hexadecimal(key)
      }
    }
    return "\(text(range.lower, "≥", ">")) \(text(range.upper, "≤", "<"))"
  }
}
