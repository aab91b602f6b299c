import Storage

extension ConformanceSuite {
  static let followingBehaviours: [Behaviour] = [
    Behaviour("entries are followed to what they refer to, as a scan and a get find it") { suite, engine in
      var generator = SeededGenerator(seed: suite.seed)
      let (index, docs) = try engine.write { transaction in
        (
          try transaction.createKeyspace("index", shape: .entries),
          try transaction.createKeyspace("docs", shape: .documents)
        )
      }
      var snapshots: [any ReadTransaction] = []
      defer { for snapshot in snapshots { snapshot.end() } }
      for round in 0..<(suite.times(5, 12, long: 200)) {
        try engine.write { transaction in
          // Removed rows free their numbers, which other rows then reuse.
          for _ in 0..<20 { try transaction.delete(Self.document(&generator), in: docs) }
          for _ in 0..<40 {
            let value = generator.bytes(generator.below(8) == 0 ? 9_000 : generator.below(300))
            try transaction.put(Self.document(&generator), value, in: docs)
            let entry = generator.bytes(1 + generator.below(6)) + [0] + Self.document(&generator)
            try transaction.put(entry, generator.below(5) == 0 ? [7] : [], in: index)
          }
          try suite.expectFollowed(transaction, index, docs, &generator)
        }
        snapshots.append(try engine.beginRead())
        // Earlier snapshots see other rows with the same numbers.
        for snapshot in snapshots.suffix(3) {
          try suite.expectFollowed(snapshot, index, docs, &generator)
        }
        if round % 4 == 3 { snapshots.removeFirst().end() }
      }
    },

    Behaviour("following ends when either closure says so, and passes its errors on") { suite in
      struct Stop: Error {}
      try suite.withEngine { engine in
        let (index, docs) = try engine.write { transaction in
          let index = try transaction.createKeyspace("index", shape: .entries)
          let docs = try transaction.createKeyspace("docs", shape: .documents)
          for number in 10..<90 {
            try transaction.put("e\(number)", "d\(number)", in: index)
            if number % 3 != 0 { try transaction.put("d\(number)", "value \(number)", in: docs) }
          }
          return (index, docs)
        }
        try engine.read { transaction in
          // The second time, all rows are cached.
          for _ in 0..<2 {
            for order in [ScanOrder.ascending, .descending] {
              var seen: [String] = []
              try transaction.follow(index, .all, order: order, into: docs) { key, _ in
                String(copying: key) == "e50" ? .end : .none
              } _: { _, _, _ in
                seen.append("none")
                return true
              }
              try expectEqual(seen, [], "bodies of entries that refer to nothing")
              try suite.follow(transaction, index, docs, order) { key, value in
                seen.append("\(key) \(value)")
                return seen.count < 3
              }
              let numbers = order == .ascending ? [10, 11, 13] : [89, 88, 86]
              try expectEqual(seen, numbers.map { "d\($0) value \($0)" }, "what was followed")
              var bodies = 0
              do {
                try suite.follow(transaction, index, docs, order) { _, _ in
                  bodies += 1
                  if bodies == 5 { throw Stop() }
                  return true
                }
                throw ConformanceFailure("an error of the body was lost")
              } catch is Stop { try expectEqual(bodies, 5, "bodies before the error") }
              do {
                try transaction.follow(index, .all, order: order, into: docs) { _, _ in
                  throw Stop()
                } _: { _, _, _ in
                  true
                }
                throw ConformanceFailure("an error of the reference was lost")
              } catch is Stop {}
              try expectError(.invalidKey, from: "a key that no keyspace can hold") {
                try transaction.follow(index, .all, order: order, into: docs) { _, _ in
                  .inKey(0..<0)
                } _: { _, _, _ in
                  true
                }
              }
            }
          }
        }
      }
    },
  ]

  private static func document(_ generator: inout SeededGenerator) -> [UInt8] {
    Array("document \(generator.below(150))".utf8)
  }

  /// Follows the entries `eN` to `dN`.
  private func follow(
    _ transaction: any ReadTransaction, _ index: Keyspace, _ docs: Keyspace, _ order: ScanOrder,
    _ body: (String, String) throws -> Bool
  ) throws {
    try transaction.follow(index, .all, order: order, into: docs) { _, value in
      .inValue(0..<value.byteCount)
    } _: { _, value, found in
      try body(String(copying: value), String(copying: found))
    }
  }

  /// Compares `follow` with a scan and gets, over ranges and in both orders.
  private func expectFollowed(
    _ transaction: any ReadTransaction, _ index: Keyspace, _ docs: Keyspace,
    _ generator: inout SeededGenerator
  ) throws {
    for order in [ScanOrder.ascending, .descending] {
      let lower = generator.bytes(1)
      let upper = generator.bytes(2)
      let ranges: [KeyRange] = [
        .all, KeyRange(lower: .inclusive(lower)), KeyRange(upper: .exclusive(upper)),
        KeyRange(lower: .exclusive(lower), upper: .inclusive(upper)),
      ]
      for range in ranges {
        var wanted: [SortedMap.Entry] = []
        for entry in try transaction.entries(of: index, range, order: order) where entry.value.isEmpty {
          guard let zero = entry.key.lastIndex(of: 0) else { continue }
          let name = [UInt8](entry.key[(zero + 1)...])
          if let value = try transaction.bytes(name, in: docs) {
            wanted.append(.init(key: name, value: value))
          }
        }
        var found: [SortedMap.Entry] = []
        try transaction.follow(index, range, order: order, into: docs) { key, value in
          guard value.isEmpty, let zero = key.lastZero else { return .none }
          return .inKey((zero + 1)..<key.byteCount)
        } _: { key, _, value in
          found.append(.init(key.extracting(((key.lastZero ?? -1) + 1)..<key.byteCount), value))
          return true
        }
        try expectEqual(found, wanted, "what was followed")
      }
    }
  }
}

extension RawSpan {
  /// The index of the last zero byte.
  fileprivate var lastZero: Int? { withUnsafeBytes { $0.lastIndex(of: 0) } }
}
