import Storage

/// Runs the operations of one part, in a transaction and on sorted maps.
struct ScriptWriter {
  private let transaction: any WriteTransaction
  private let valueLimit: Int
  private(set) var model: ScriptRun.Model
  private var keyspaces: [Int: Keyspace] = [:]

  init(_ transaction: any WriteTransaction, _ model: ScriptRun.Model, _ valueLimit: Int) {
    self.transaction = transaction
    self.model = model
    self.valueLimit = valueLimit
  }

  mutating func perform(_ operation: ScriptOperation) throws {
    if case .createKeyspace(let name, let shape) = operation { return try create(name, shape) }
    guard let name = operation.names.first, let table = model[name] else { return }
    let keyspace = try keyspace(name)
    let (shape, map) = (table.shape, table.map)
    switch operation {
    case .createKeyspace: break
    case .dropKeyspace:
      try transaction.dropKeyspace(keyspace)
      model[name] = nil
      keyspaces[name] = nil
      try expectError(.noSuchKeyspace, from: "the count of a dropped keyspace") {
        _ = try transaction.count(of: keyspace)
      }
      return
    case .put(_, let key, let value):
      let (key, value) = (key.bytes(shape), value.bytes(limit: valueLimit))
      try transaction.put(key, value, in: keyspace)
      model[name]?.map.put(key, value)
    case .insert(_, let key, let value):
      let (key, value) = (key.bytes(shape), value.bytes(limit: valueLimit))
      let isNew = map[key] == nil
      try expectEqual(transaction.insert(key, value, in: keyspace), isNew, "insert of \(hexadecimal(key))")
      if isNew { model[name]?.map.put(key, value) }
    case .append(_, let key, let value):
      let (key, value) = (key.bytes(shape), value.bytes(limit: valueLimit))
      if let last = map.entries.last?.key, !isBefore(last, key) {
        try expectError(.outOfOrder, from: "append of \(hexadecimal(key))") {
          try transaction.append(key, value, in: keyspace)
        }
      } else {
        try transaction.append(key, value, in: keyspace)
        model[name]?.map.put(key, value)
      }
    case .load(_, let entries, let end):
      try load(entries, end, name, keyspace)
    case .delete(_, let key):
      let key = key.bytes(shape)
      let wanted = model[name]?.map.delete(key) ?? false
      try expectEqual(transaction.delete(key, in: keyspace), wanted, "delete of \(hexadecimal(key))")
    case .deleteRange(_, let range):
      let range = range.range(shape)
      let wanted = model[name]?.map.deleteRange(range) ?? 0
      try expectEqual(transaction.deleteRange(range, in: keyspace), wanted, "deleteRange of \(range)")
    case .refuseKey(_, let count):
      let key = [UInt8](repeating: 1, count: count)
      try expectError(.invalidKey, from: "put of a key of \(count) bytes") {
        try transaction.put(key, [], in: keyspace)
      }
      try expectError(.invalidKey, from: "a read of a key of \(count) bytes") {
        _ = try transaction.bytes(key, in: keyspace)
      }
    case .read(_, let key):
      let key = key.bytes(shape)
      try expectEqual(transaction.bytes(key, in: keyspace), map[key], "the value at \(hexadecimal(key))")
    case .scan(_, let range, let order, let fetch, let limit):
      try scan(keyspace, map, range.range(shape), order, fetch, limit)
    case .walk(_, let range, let seed, let steps):
      try walk(keyspace, map, range.range(shape), seed, steps)
    case .nest(let names, let seed):
      var generator = SeededGenerator(seed: seed)
      try nest(names[...], &generator)
    }
    if let count = model[name]?.map.entries.count {
      try expectEqual(transaction.count(of: keyspace), count, "count of keyspace \(name)")
    }
  }

  private mutating func create(_ name: Int, _ shape: KeyspaceShape) throws {
    if let table = model[name], table.shape != shape {
      try expectError(.shapeMismatch, from: "making a keyspace again with another shape") {
        _ = try transaction.createKeyspace(ScriptRun.name(name), shape: shape)
      }
    } else {
      keyspaces[name] = try transaction.createKeyspace(ScriptRun.name(name), shape: shape)
      if model[name] == nil { model[name] = .init(shape: shape) }
    }
  }

  private mutating func keyspace(_ name: Int) throws -> Keyspace {
    if let keyspace = keyspaces[name] { return keyspace }
    let keyspace = try transaction.known(ScriptRun.name(name))
    keyspaces[name] = keyspace
    return keyspace
  }

  /// Loads the entries that are after all existing ones, sorted. After a failed load, the first of them may
  /// be there.
  private mutating func load(
    _ entries: [ScriptEntry], _ end: ScriptLoadEnd, _ name: Int, _ keyspace: Keyspace
  ) throws {
    guard let before = model[name]?.map else { return }
    let last = before.entries.last?.key
    var ordered = SortedMap()
    for entry in entries {
      let key = Self.loadedKey(entry.key, keyspace.shape, behind: last)
      if let last, !isBefore(last, key) { continue }
      ordered.put(key, entry.value.bytes(limit: valueLimit))
    }
    func loadAll(then again: [UInt8]? = nil, failing: Bool = false) throws {
      try transaction.load(keyspace) { append in
        for entry in ordered.entries { try append(entry.key.span.bytes, entry.value.span.bytes) }
        if let again { try append(again.span.bytes, again.span.bytes) }
        if failing { throw StorageError(.invalidArgument, "on purpose") }
      }
    }
    let greatest = ordered.entries.last?.key ?? last
    switch end {
    case .outOfOrder:
      guard let greatest else { return }
      try expectError(.outOfOrder, from: "a load that ends with \(hexadecimal(greatest)) again") {
        try loadAll(then: greatest)
      }
    case .thrown:
      try expectError(.invalidArgument, from: "a load whose body throws") {
        try loadAll(failing: true)
      }
    case .well:
      try loadAll()
      for entry in ordered.entries { model[name]?.map.put(entry.key, entry.value) }
      return
    }
    var added = ordered.entries.count
    while added > 0, try transaction.bytes(ordered.entries[added - 1].key, in: keyspace) == nil { added -= 1 }
    for entry in ordered.entries.prefix(added) { model[name]?.map.put(entry.key, entry.value) }
    try expectEqual(
      transaction.entries(of: keyspace), model[name]?.map.entries ?? [], "entries after a load that failed")
  }

  /// The key to load. For a keyspace of sequences it is after the last key, with a gap.
  private static func loadedKey(_ key: ScriptKey, _ shape: KeyspaceShape, behind last: [UInt8]?) -> [UInt8] {
    guard shape == .sequences else { return key.bytes(shape) }
    let number = (last ?? sequenceKey(0)).reduce(0) { $0 << 8 | UInt64($1) }
    return sequenceKey(min(number + 1 + UInt64(key.number), UInt64(Int64.max)))
  }

  private func scan(
    _ keyspace: Keyspace, _ map: SortedMap, _ range: KeyRange, _ order: ScanOrder, _ fetch: ScanFetch,
    _ limit: Int
  ) throws {
    var found: [SortedMap.Entry] = []
    try transaction.scan(keyspace, range, order: order, fetch: fetch) { key, value in
      found.append(.init(key, value))
      return found.count < limit
    }
    var wanted = map.entries(in: range)
    if order == .descending { wanted.reverse() }
    if fetch == .keys { for index in wanted.indices { wanted[index].value = [] } }
    if order == .stored {
      // Any of the entries, each once.
      try expectEqual(found.count, min(limit, wanted.count), "entries of a stored scan of \(range)")
      let keys = Set(found.map(\.key))
      try expectEqual(keys.count, found.count, "different keys of a stored scan of \(range)")
      wanted = wanted.filter { keys.contains($0.key) }
      found.sort { isBefore($0.key, $1.key) }
    }
    try expectEqual(found, Array(wanted.prefix(limit)), "\(order) scan of \(fetch) in \(range)")
  }

  private func walk(
    _ keyspace: Keyspace, _ map: SortedMap, _ range: KeyRange, _ seed: UInt64, _ steps: Int
  ) throws {
    var generator = SeededGenerator(seed: seed)
    let entries = map.entries(in: range)
    let cursor = try transaction.cursor(in: keyspace, range)
    var index = -1
    for step in 0..<steps {
      let found: SortedMap.Entry?
      let move: String
      switch generator.below(12) {
      case 0:
        (found, move) = (try cursor.firstEntry(), "first")
        index = 0
      case 1:
        (found, move) = (try cursor.lastEntry(), "last")
        index = entries.count - 1
      case 2..<4:
        var key = ScriptKey(number: generator.below(300)).bytes(keyspace.shape)
        // Sometimes an invalid key.
        if generator.once(in: 6) { key = generator.once(in: 2) ? key + [0] : key.dropLast() }
        (found, move) = (try cursor.seekEntry(key), "seek \(hexadecimal(key))")
        index = entries.firstIndex { !isBefore($0.key, key) } ?? entries.count
      case 4..<8:
        (found, move) = (try cursor.nextEntry(), "next")
        index += 1
      default:
        (found, move) = (try cursor.previousEntry(), "previous")
        index -= 1
      }
      index = min(max(index, -1), entries.count)
      let wanted = entries.indices.contains(index) ? entries[index] : nil
      try expectEqual(found, wanted, "move \(step), \(move), of a cursor in \(range)")
    }
  }

  /// Scans the first keyspace, and the others inside that scan.
  private mutating func nest(_ names: ArraySlice<Int>, _ generator: inout SeededGenerator) throws {
    guard let name = names.first else { return }
    guard let map = model[name]?.map, !map.entries.isEmpty else {
      return try nest(names.dropFirst(), &generator)
    }
    let keyspace = try keyspace(name)
    let index = generator.below(map.entries.count)
    let entry = map.entries[index]
    var inner = self
    var isLent = false
    try transaction.scan(keyspace, KeyRange(lower: .inclusive(entry.key))) { key, value in
      isLent = true
      try inner.nest(names.dropFirst(), &generator)
      guard key.isEqual(to: entry.key.span.bytes), value.isEqual(to: entry.value.span.bytes) else {
        throw ConformanceFailure("what a scan of keyspace \(name) lent changed, or was wrong: \(entry)")
      }
      return false
    }
    try expect(isLent, "a scan found nothing from \(entry) on")
  }
}
