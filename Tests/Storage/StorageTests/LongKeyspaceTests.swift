import StorageMemory
import TestTools

@testable import Storage
@testable import StorageConformance

/// Ordered maps with long keys, on every engine, compared with a sorted array.
@Suite("Keyspaces with long keys") struct LongKeyspaceTests {
  private func withMap(
    _ subject: ConformanceSuite.Subject, _ body: (any StorageEngine, LongKeyspace) throws -> Void
  ) throws {
    try withTemporaryDirectory { directory in
      let key = subject.engine.encrypts ? [UInt8](repeating: 7, count: 32) : nil
      let path = "\(directory)/main.\(subject.engine.fileExtension)"
      let engine = try subject.engine.open(path, EngineOptions(durability: .none, key: key))
      let map = LongKeyspace(try engine.write { try $0.createKeyspace("map", shape: .entries) })
      try body(engine, map)
      try engine.close()
    }
  }

  /// But for engines on servers: these tests open files, or nothing. A short run takes one engine of each kind.
  private static let all = (subjects.filter { $0.locations == nil } + strictSubjects).filter {
    !isShort || ["memory", "lmdb", "sqlite", "strict(lmdb)"].contains($0.engine.name)
  }.map(LongKeyEngine.init)

  /// Keys that share prefixes of all lengths, most of all around those where stems begin and end.
  private static func anyKey(_ random: inout SeededGenerator, _ known: [[UInt8]]) -> [UInt8] {
    let lengths = [
      1, 2, 40, 470, 476, 477, 478, 479, 492, 493, 494, 495, 509, 510, 511, 512, 513, 988, 989, 990, 1_467,
    ]
    var key: [UInt8] = []
    if !known.isEmpty, !random.once(in: 3) {
      let other = random.pick(known)
      let shared = random.once(in: 2) ? random.pick(lengths) + random.below(3) : random.below(other.count + 1)
      key = [UInt8](other.prefix(shared))
    }
    let target = random.once(in: 3) ? 1 + random.below(5_000) : random.pick(lengths)
    let letters: [UInt8] = [0, 1, 0x61, 0x61, 0x61, 0xFE, 0xFF]
    let isFlat = random.once(in: 2)
    while key.count < target { key.append(isFlat ? 0x61 : random.pick(letters)) }
    if key.isEmpty { key = [1] }
    if key[0] == 0xFF { key[0] = 0xFE }
    return key
  }

  private static func anyRange(_ random: inout SeededGenerator, _ known: [[UInt8]]) -> KeyRange {
    func bound(_ random: inout SeededGenerator) -> KeyRange.Bound {
      let key = random.once(in: 2) && !known.isEmpty ? random.pick(known) : anyKey(&random, known)
      switch random.below(12) {
      case 0: return .unbounded
      case 1: return .inclusive([])
      case 2: return .exclusive([0xFF] + key)
      case 3...7: return .inclusive(key)
      default: return .exclusive(key)
      }
    }
    return KeyRange(lower: bound(&random), upper: bound(&random))
  }

  private static func entries(
    _ map: LongKeyspace, _ range: KeyRange, _ order: ScanOrder, _ transaction: any ReadTransaction
  ) throws -> [SortedMap.Entry] {
    var found: [SortedMap.Entry] = []
    try map.scan(range, order: order, in: transaction) { key, value in
      found.append(.init(key: [UInt8](copying: key), value: [UInt8](copying: value)))
      return true
    }
    return found
  }

  @Test("random puts, deletes, scans and cursors give what a sorted array gives", arguments: all)
  func random(_ engine: LongKeyEngine) throws {
    try withMap(engine.subject) { engine, map in
      var random = SeededGenerator(seed: testSeed)
      var model = SortedMap()
      var steps = 0
      while steps < (isLong ? 10_000 : 2_000) {
        try engine.write { (transaction: any WriteTransaction) throws -> Void in
          for _ in 0..<500 {
            let known = model.entries.map(\.key)
            let key = random.once(in: 2) && !known.isEmpty ? random.pick(known) : Self.anyKey(&random, known)
            // The map grows to some hundred entries, and shrinks to nothing from time to time.
            if random.once(in: 2) || known.count > 300 || (steps / 500) % 7 == 6 {
              let wasThere = try map.delete(key.span.bytes, in: transaction)
              #expect(wasThere == model.delete(key))
            } else {
              let value = random.bytes(random.below(20))
              try map.put(key.span.bytes, value.span.bytes, in: transaction)
              model.put(key, value)
            }
            steps += 1
            if steps % 20 == 0 { try compare(map, model, &random, transaction) }
          }
          let faults = try map.check(in: transaction)
          #expect(faults == [])
        }
        try engine.read { try compare(map, model, &random, $0) }
      }
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for key in model.entries.map(\.key) { #expect(try map.delete(key.span.bytes, in: transaction)) }
        #expect(try transaction.count(of: map.keyspace) == 0, "no stem is left")
      }
    }
  }

  private func compare(
    _ map: LongKeyspace, _ model: SortedMap, _ random: inout SeededGenerator,
    _ transaction: any ReadTransaction
  ) throws {
    let range = Self.anyRange(&random, model.entries.map(\.key))
    let wanted = model.entries(in: range)
    for order in [ScanOrder.ascending, .descending] {
      let found = try Self.entries(map, range, order, transaction)
      #expect(found == (order == .ascending ? wanted : wanted.reversed()), "seed \(testSeed)")
    }
    let key = Self.anyKey(&random, model.entries.map(\.key))
    var value: [UInt8]?
    _ = try map.read(key.span.bytes, in: transaction) { value = [UInt8](copying: $0) }
    #expect(value == model.entries(in: KeyRange(lower: .inclusive(key), upper: .inclusive(key))).first?.value)
    // -1 and the count are the places before the first and behind the last entry.
    let cursor = try map.cursor(range, in: transaction)
    var place = -1
    for _ in 0..<12 {
      let isThere: Bool
      switch random.below(7) {
      case 0:
        isThere = try cursor.first()
        place = wanted.isEmpty ? wanted.count : 0
      case 1:
        isThere = try cursor.last()
        place = wanted.count - 1
      case 2:
        let key =
          random.once(in: 2) && !wanted.isEmpty
          ? random.pick(wanted).key : Self.anyKey(&random, model.entries.map(\.key))
        isThere = try cursor.seek(key.span.bytes)
        place = wanted.firstIndex { !$0.key.lexicographicallyPrecedes(key) } ?? wanted.count
      case 3, 4:
        isThere = try cursor.next()
        place = min(place + 1, wanted.count)
      default:
        isThere = try cursor.previous()
        place = max(place - 1, -1)
      }
      #expect(isThere == wanted.indices.contains(place), "seed \(testSeed)")
      guard isThere, wanted.indices.contains(place) else {
        if isThere { return }
        continue
      }
      let entry = try cursor.withEntry {
        SortedMap.Entry(key: [UInt8](copying: $0), value: [UInt8](copying: $1))
      }
      #expect(entry == wanted[place], "seed \(testSeed)")
    }
  }

  @Test("a load gives the entries that it gets", arguments: all)
  func load(_ engine: LongKeyEngine) throws {
    for (count, valueBytes, isShort) in [
      (0, 0, false), (1, 1, true), (400, 30, false), (700, 60_000, false), (700, 300, true),
    ] {
      try withMap(engine.subject) { engine, map in
        var random = SeededGenerator(seed: testSeed)
        var model = SortedMap()
        for _ in 0..<count {
          model.put(
            Self.anyKey(&random, model.entries.map(\.key)), random.bytes(random.below(valueBytes + 1)))
        }
        let longest = isShort ? 510 : LongKeyspace.maximumKeyBytes
        let entries = model.entries(in: .all).filter { $0.key.count <= longest }
        try engine.write { (transaction: any WriteTransaction) throws -> Void in
          try map.load(longestKey: longest, in: transaction) { append in
            for entry in entries { try append(entry.key.span.bytes, entry.value.span.bytes) }
          }
        }
        try engine.read { transaction in
          #expect(try map.check(in: transaction) == [])
          let isSame = try Self.entries(map, .all, .ascending, transaction) == entries
          #expect(isSame, "seed \(testSeed)")
        }
      }
    }
  }

  @Test("a load of keys out of order is refused, and into what isn't empty")
  func loadOrder() throws {
    let long = [UInt8](repeating: 9, count: 600)
    for keys in [[[1], [1]], [[2], [1]], [long + [1], long], [long, long], [long, [9]]] as [[[UInt8]]] {
      try withMap(subjects[0]) { engine, map in
        let code = try storageCode {
          try engine.write { transaction in
            try map.load(in: transaction) { append in
              for key in keys { try append(key.span.bytes, RawSpan()) }
            }
          }
        }
        #expect(code == .outOfOrder)
      }
    }
    try withMap(subjects[0]) { engine, map in
      try engine.write { try $0.put([1], [], in: map.keyspace) }
      #expect(try storageCode { try engine.write { try map.load(in: $0) { _ in } } } == .outOfOrder)
      #expect(
        try storageCode { try engine.write { try map.load(longestKey: 9, in: $0) { _ in } } } == .outOfOrder)
    }
    try withMap(subjects[0]) { engine, map in
      for key in [[], [0xFF], long] as [[UInt8]] {
        let code = try storageCode {
          try engine.write { transaction in
            try map.load(longestKey: 9, in: transaction) { try $0(key.span.bytes, RawSpan()) }
          }
        }
        #expect(code == .invalidKey)
      }
    }
  }

  @Test("keys may have 1 byte to 1 MiB, and don't begin with FF", arguments: all)
  func limits(_ engine: LongKeyEngine) throws {
    try withMap(engine.subject) { engine, map in
      let longest = [UInt8](repeating: 0x61, count: LongKeyspace.maximumKeyBytes)
      var other = longest
      other[other.count - 1] = 0x62
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        try map.put(longest.span.bytes, bytes(1).span.bytes, in: transaction)
        try map.put(other.span.bytes, bytes(2).span.bytes, in: transaction)
      }
      try engine.read { transaction in
        let found = try Self.entries(map, .all, .descending, transaction)
        #expect(found.map(\.value) == [[2], [1]])
        // Compared outside of the expectation, which would print the keys.
        let isSame = found.map(\.key) == [other, longest]
        #expect(isSame)
        let above = try Self.entries(map, KeyRange(lower: .exclusive(longest)), .ascending, transaction)
        #expect(above.map(\.value) == [[2]])
      }
      for key in [longest + [0x61], [], [0xFF], [0xFF, 1]] {
        try engine.write { (transaction: any WriteTransaction) throws -> Void in
          #expect(try storageCode { try map.put(key.span.bytes, RawSpan(), in: transaction) } == .invalidKey)
          #expect(try storageCode { try map.delete(key.span.bytes, in: transaction) } == .invalidKey)
          #expect(
            try storageCode { _ = try map.read(key.span.bytes, in: transaction) { _ in } } == .invalidKey)
        }
      }
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        #expect(try map.delete(longest.span.bytes, in: transaction))
        #expect(try map.delete(other.span.bytes, in: transaction))
        #expect(try transaction.count(of: map.keyspace) == 0)
      }
    }
  }

  @Test("writes where bytes are lent are refused", arguments: all)
  func lending(_ engine: LongKeyEngine) throws {
    try withMap(engine.subject) { engine, map in
      let keys: [[UInt8]] = [[1], [UInt8](repeating: 2, count: 600), [UInt8](repeating: 2, count: 5_000)]
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        for key in keys { try map.put(key.span.bytes, bytes(7).span.bytes, in: transaction) }
        func refused() throws {
          for key in keys {
            #expect(
              try storageCode { try map.put(key.span.bytes, RawSpan(), in: transaction) } == .bytesAreLent)
            #expect(try storageCode { try map.delete(key.span.bytes, in: transaction) } == .bytesAreLent)
          }
        }
        for order in [ScanOrder.ascending, .descending] {
          try map.scan(.all, order: order, in: transaction) { _, _ in
            try refused()
            return true
          }
        }
        let cursor = try map.cursor(.all, in: transaction)
        for key in keys {
          _ = try map.read(key.span.bytes, in: transaction) { _ in try refused() }
          #expect(try cursor.next())
          try cursor.withEntry { _, _ in
            try refused()
            #expect(try storageCode { _ = try cursor.next() } == .bytesAreLent)
            #expect(try storageCode { _ = try cursor.first() } == .bytesAreLent)
          }
        }
        for key in keys {
          #expect(try cursor.seek(key.span.bytes))
          try map.put(bytes(0).span.bytes, RawSpan(), in: transaction)
          #expect(try storageCode { _ = try cursor.next() } == .notOnEntry)
          #expect(try storageCode { try cursor.withEntry { _, _ in } } == .notOnEntry)
        }
      }
      // A body that stops or throws ends the scan wherever it is.
      try engine.read { transaction in
        for stop in 1...4 {
          var seen = 0
          try map.scan(.all, in: transaction) { _, _ in
            seen += 1
            return seen < stop
          }
          #expect(seen == stop)
        }
      }
    }
  }

  @Test("what is wrong with entries is found")
  func faults() throws {
    try withMap(subjects[0]) { engine, map in
      let long = [UInt8](repeating: 2, count: 600)
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        try map.put(long.span.bytes, RawSpan(), in: transaction)
        #expect(try map.check(in: transaction) == [])
        try transaction.put([UInt8](repeating: 3, count: 511), [], in: map.keyspace)
        #expect(try map.check(in: transaction) == ["1 stems have no entries"])
        _ = try transaction.delete([UInt8](repeating: 3, count: 511).span.bytes, in: map.keyspace)
        _ = try transaction.delete([UInt8](repeating: 2, count: 511).span.bytes, in: map.keyspace)
        #expect(try map.check(in: transaction) == ["1 nodes have no stem"])
      }
    }
  }
}

/// One byte.
private func bytes(_ byte: UInt8) -> [UInt8] { [byte] }

/// An engine as an argument of a test.
struct LongKeyEngine: CustomTestStringConvertible, Sendable {
  let subject: ConformanceSuite.Subject
  var testDescription: String { subject.engine.name }
}
