import Storage

extension ConformanceSuite {
  static let cursorBehaviours: [Behaviour] = [
    Behaviour("random operations agree with a sorted map", { try $0.compareWithSortedMap() }),

    Behaviour("a cursor moves both ways, past both ends and back") { suite in
      try suite.withEngine { engine in
        let keyspace = try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k", shape: .entries)
          for number: UInt8 in [10, 20, 30, 40, 50] { try transaction.put([number], [number], in: keyspace) }
          return keyspace
        }
        try engine.read { transaction in
          let range = KeyRange(lower: .exclusive([10]), upper: .inclusive([40]))
          let cursor = try transaction.unsafeCursor(in: keyspace, range)
          let walk: [(String, () throws -> Entry?, UInt8?)] = [
            ("next", cursor.next, 20), ("next", cursor.next, 30), ("previous", cursor.previous, 20),
            ("previous", cursor.previous, nil), ("previous", cursor.previous, nil), ("next", cursor.next, 20),
            ("last", cursor.last, 40), ("next", cursor.next, nil), ("next", cursor.next, nil),
            ("previous", cursor.previous, 40), ("previous", cursor.previous, 30), ("first", cursor.first, 20),
            ("previous", cursor.previous, nil), ("next", cursor.next, 20),
            ("seek 5", { try cursor.seek([5]) }, 20), ("previous", cursor.previous, nil),
            ("seek 25", { try cursor.seek([25]) }, 30), ("previous", cursor.previous, 20),
            ("seek 40", { try cursor.seek([40]) }, 40), ("seek 41", { try cursor.seek([41]) }, nil),
            ("previous", cursor.previous, 40), ("seek 40 0", { try cursor.seek([40, 0]) }, nil),
            ("next", cursor.next, nil), ("previous", cursor.previous, 40),
          ]
          for (step, (name, move, wanted)) in walk.enumerated() {
            try expectEqual(move().map { $0.key[0] }, wanted, "step \(step), \(name)")
          }
          for range in [
            KeyRange(lower: .inclusive([60])), KeyRange(lower: .exclusive([20]), upper: .exclusive([30])),
            KeyRange(lower: .inclusive([40]), upper: .inclusive([20])), KeyRange(upper: .exclusive([10])),
          ] {
            let cursor = try transaction.unsafeCursor(in: keyspace, range)
            let moves = [cursor.next, cursor.previous, cursor.first, cursor.last, { try cursor.seek([20]) }]
            for move in moves + moves.reversed() {
              try expect(move() == nil, "an entry in an empty range")
            }
          }
        }
      }
    },

    Behaviour("several cursors of one transaction don't disturb each other") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine)
        try engine.read { transaction in
          let keyspace = try transaction.known("documents")
          let all = try transaction.entries(of: keyspace)
          let up = try transaction.unsafeCursor(in: keyspace, .all)
          let down = try transaction.unsafeCursor(in: keyspace, .all)
          _ = try down.last()
          _ = try down.next()
          for index in all.indices {
            let left = try up.next().map { SortedMap.Entry($0) }
            try expectEqual(left, all[index], "the ascending cursor")
            try expectEqual(
              transaction.bytes(all[index].key, in: keyspace), all[index].value, "get between moves")
            try expectEqual(
              down.previous().map { SortedMap.Entry($0) }, all[all.count - 1 - index], "the descending one")
          }
        }
      }
    },

    Behaviour("a scan ends when its body says so or throws, and nested scans agree") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine)
        try engine.read { transaction in
          let keyspace = try transaction.known("entries")
          for order in [ScanOrder.ascending, .descending, .stored] {
            var seen = 0
            try transaction.unsafeScan(keyspace, order: order) { _, _ in
              seen += 1
              return seen < 5
            }
            try expectEqual(seen, 5, "entries before a scan was ended (\(order))")
            do {
              try transaction.unsafeScan(keyspace, order: order) { _, _ in throw DeliberateError(number: 3) }
              throw ConformanceFailure("a scan whose body threw returned")
            } catch let error as DeliberateError { try expectEqual(error.number, 3, "error") }
            var batches = 0
            try transaction.unsafeScanBatches(keyspace, .all, order: order) { _ in
              batches += 1
              return batches < 3
            }
            try expectEqual(batches, 3, "batches before a scan was ended (\(order))")
            do {
              try transaction.unsafeScanBatches(keyspace, .all, order: order) { _ in
                throw DeliberateError(number: 4)
              }
              throw ConformanceFailure("a scan of batches whose body threw returned")
            } catch let error as DeliberateError { try expectEqual(error.number, 4, "error") }
          }
          var inner = 0
          var outer = 0
          try transaction.unsafeScan(keyspace) { key, _ in
            let outerKey = [UInt8](key)
            try transaction.unsafeScan(keyspace, .prefix(outerKey)) { innerKey, _ in
              inner += innerKey.elementsEqual(outerKey) ? 1 : 0
              return true
            }
            try expect(key.elementsEqual(outerKey), "the outer scan's key changed under an inner scan")
            outer += 1
            return true
          }
          try expectEqual([outer, inner], [200, 200], "entries of nested scans")
        }
      }
    },

    Behaviour("a scan of keys hands over keys and empty values") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine)
        try engine.read { transaction in
          for keyspace in try transaction.keyspaces().values {
            for order in [ScanOrder.ascending, .descending, .stored] {
              var keys: [[UInt8]] = []
              try transaction.unsafeScan(keyspace, .all, order: order, fetch: .keys) { key, value in
                try expect(value.isEmpty, "a scan of keys handed over a value")
                keys.append([UInt8](key))
                return true
              }
              var wanted = try transaction.entries(of: keyspace, order: order).map(\.key)
              if order == .stored {
                // Keys alone may be stored elsewhere, in another order.
                keys.sort { isBefore($0, $1) }
                wanted.sort { isBefore($0, $1) }
              }
              try expect(keys == wanted, "keys differ (\(order))")
            }
          }
        }
      }
    },

    Behaviour("bounds of any length hold, in keyspaces of sequences too") { suite in
      try suite.withEngine { engine in
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
                let cursor = try transaction.unsafeCursor(in: keyspace, range)
                try expectEqual(cursor.first().map { SortedMap.Entry($0) }, wanted.first, "first of \(range)")
                try expectEqual(cursor.last().map { SortedMap.Entry($0) }, wanted.last, "last of \(range)")
                try expectEqual(
                  cursor.seek(lower).map { SortedMap.Entry($0) },
                  wanted.first { !isBefore($0.key, lower) }, "seek of \(hexadecimal(lower)) in \(range)")
              }
            }
          }
        }
      }
    },
  ]
}

extension SortedMap.Entry {
  init(_ entry: Entry) { self.init(key: [UInt8](entry.key), value: [UInt8](entry.value)) }
}

extension UnsafeCursor {
  func seek(_ key: [UInt8]) throws -> Entry? { try key.withUnsafeBytes { try seek($0) } }
}
