import Storage

extension ConformanceSuite {
  static let cursorBehaviours: [Behaviour] = [
    Behaviour("a cursor moves both ways, past both ends and back") { _, engine in
      let keyspace = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .entries)
        for number: UInt8 in [10, 20, 30, 40, 50] { try transaction.put([number], [number], in: keyspace) }
        return keyspace
      }
      try engine.read { transaction in
        let range = KeyRange(lower: .exclusive([10]), upper: .inclusive([40]))
        let cursor = try transaction.cursor(in: keyspace, range)
        let walk: [(String, () throws -> SortedMap.Entry?, UInt8?)] = [
          ("next", cursor.nextEntry, 20), ("next", cursor.nextEntry, 30),
          ("previous", cursor.previousEntry, 20),
          ("previous", cursor.previousEntry, nil), ("previous", cursor.previousEntry, nil),
          ("next", cursor.nextEntry, 20),
          ("last", cursor.lastEntry, 40), ("next", cursor.nextEntry, nil), ("next", cursor.nextEntry, nil),
          ("previous", cursor.previousEntry, 40), ("previous", cursor.previousEntry, 30),
          ("first", cursor.firstEntry, 20),
          ("previous", cursor.previousEntry, nil), ("next", cursor.nextEntry, 20),
          ("seek 5", { try cursor.seekEntry([5]) }, 20), ("previous", cursor.previousEntry, nil),
          ("seek 25", { try cursor.seekEntry([25]) }, 30), ("previous", cursor.previousEntry, 20),
          ("seek 40", { try cursor.seekEntry([40]) }, 40), ("seek 41", { try cursor.seekEntry([41]) }, nil),
          ("previous", cursor.previousEntry, 40), ("seek 40 0", { try cursor.seekEntry([40, 0]) }, nil),
          ("next", cursor.nextEntry, nil), ("previous", cursor.previousEntry, 40),
        ]
        for (step, (name, move, wanted)) in walk.enumerated() {
          try expectEqual(move().map { $0.key[0] }, wanted, "step \(step), \(name)")
        }
        for range in [
          KeyRange(lower: .inclusive([60])), KeyRange(lower: .exclusive([20]), upper: .exclusive([30])),
          KeyRange(lower: .inclusive([40]), upper: .inclusive([20])), KeyRange(upper: .exclusive([10])),
        ] {
          let cursor = try transaction.cursor(in: keyspace, range)
          let moves = [
            cursor.nextEntry, cursor.previousEntry, cursor.firstEntry, cursor.lastEntry,
            { try cursor.seekEntry([20]) },
          ]
          for move in moves + moves.reversed() {
            try expect(move() == nil, "an entry in an empty range")
          }
        }
      }
    },

    Behaviour("several cursors of one transaction don't disturb each other") { suite, engine in
      _ = try suite.fill(engine)
      try engine.read { transaction in
        let keyspace = try transaction.known("documents")
        let all = try transaction.entries(of: keyspace)
        let up = try transaction.cursor(in: keyspace, .all)
        let down = try transaction.cursor(in: keyspace, .all)
        _ = try down.last()
        _ = try down.next()
        for index in all.indices {
          try expectEqual(up.nextEntry(), all[index], "the ascending cursor")
          try expectEqual(
            transaction.bytes(all[index].key, in: keyspace), all[index].value, "get between moves")
          try expectEqual(down.previousEntry(), all[all.count - 1 - index], "the descending one")
        }
      }
    },

    Behaviour("a scan ends when its body says so or throws, and nested scans agree") { suite, engine in
      _ = try suite.fill(engine)
      try engine.read { transaction in
        let keyspace = try transaction.known("entries")
        for order in [ScanOrder.ascending, .descending, .stored] {
          var seen = 0
          try transaction.scan(keyspace, order: order) { _, _ in
            seen += 1
            return seen < 5
          }
          try expectEqual(seen, 5, "entries before a scan was ended (\(order))")
          do {
            try transaction.scan(keyspace, order: order) { _, _ in throw DeliberateError(number: 3) }
            throw ConformanceFailure("a scan whose body threw returned")
          } catch let error as DeliberateError { try expectEqual(error.number, 3, "error") }
        }
        var inner = 0
        var outer = 0
        try transaction.scan(keyspace) { key, _ in
          let outerKey = [UInt8](copying: key)
          try transaction.scan(keyspace, .prefix(outerKey)) { innerKey, _ in
            inner += innerKey.isEqual(to: outerKey.span.bytes) ? 1 : 0
            return true
          }
          let isSame = key.isEqual(to: outerKey.span.bytes)
          try expect(isSame, "the outer scan's key changed under an inner scan")
          outer += 1
          return true
        }
        try expectEqual([outer, inner], [200, 200], "entries of nested scans")
      }
    },

    Behaviour("a scan of keys hands over keys and empty values") { suite, engine in
      _ = try suite.fill(engine)
      try engine.read { transaction in
        for keyspace in try transaction.keyspaces().values {
          for order in [ScanOrder.ascending, .descending, .stored] {
            var keys: [[UInt8]] = []
            try transaction.scan(keyspace, .all, order: order, fetch: .keys) { key, value in
              try expect(value.isEmpty, "a scan of keys handed over a value")
              keys.append([UInt8](copying: key))
              return true
            }
            var wanted = try transaction.entries(of: keyspace, order: order).map(\.key)
            if order == .stored {
              // A scan of keys alone may have another stored order.
              keys.sort { isBefore($0, $1) }
              wanted.sort { isBefore($0, $1) }
            }
            try expect(keys == wanted, "keys differ (\(order))")
          }
        }
      }
    },

    Behaviour("bounds of any length hold, in keyspaces of sequences too") { _, engine in
      var model = SortedMap()
      let keyspace = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("s", shape: .sequences)
        for number: UInt64 in [
          0, 1, 2, 255, 256, 0x0100_0000_0000_0000, 0x7F00_0000_0000_0000, UInt64(Int64.max),
        ] {
          try transaction.append(sequenceKey(number), [], in: keyspace)
          model.put(sequenceKey(number), [])
        }
        return keyspace
      }
      let bounds: [[UInt8]] = [
        [], [0], [1], [0x7F], [0x80], [0xFF], sequenceKey(1), sequenceKey(1) + [0],
        [UInt8](sequenceKey(256).dropLast()), sequenceKey(UInt64(Int64.max)) + [0], sequenceKey(1 << 63),
        sequenceKey(.max), [UInt8](repeating: 0xFF, count: 600), [UInt8](repeating: 0, count: 600),
      ]
      try engine.read { transaction in
        for lower in bounds {
          for upper in bounds {
            for range in [
              KeyRange(lower: .inclusive(lower), upper: .inclusive(upper)),
              KeyRange(lower: .exclusive(lower), upper: .exclusive(upper)),
              KeyRange(lower: .inclusive(lower)), KeyRange(upper: .inclusive(upper)),
              KeyRange(lower: .exclusive(lower)), KeyRange(upper: .exclusive(upper)),
            ] {
              let wanted = model.entries(in: range)
              try expectEqual(transaction.entries(of: keyspace, range), wanted, "scan of \(range)")
              let cursor = try transaction.cursor(in: keyspace, range)
              try expectEqual(cursor.firstEntry(), wanted.first, "first of \(range)")
              try expectEqual(cursor.lastEntry(), wanted.last, "last of \(range)")
              try expectEqual(
                cursor.seekEntry(lower),
                wanted.first { !isBefore($0.key, lower) }, "seek of \(hexadecimal(lower)) in \(range)")
            }
          }
        }
      }
    },
  ]
}

extension SortedMap.Entry {
  /// A copy of lent bytes.
  init(_ key: RawSpan, _ value: RawSpan) {
    self.init(key: [UInt8](copying: key), value: [UInt8](copying: value))
  }
}

// Cursor moves that return a copy of the entry.
extension Cursor {
  func firstEntry() throws -> SortedMap.Entry? { try first { SortedMap.Entry($0, $1) } }
  func lastEntry() throws -> SortedMap.Entry? { try last { SortedMap.Entry($0, $1) } }
  func nextEntry() throws -> SortedMap.Entry? { try next { SortedMap.Entry($0, $1) } }
  func previousEntry() throws -> SortedMap.Entry? { try previous { SortedMap.Entry($0, $1) } }
  func seekEntry(_ key: [UInt8]) throws -> SortedMap.Entry? {
    try seek(key.span.bytes) { SortedMap.Entry($0, $1) }
  }
}
