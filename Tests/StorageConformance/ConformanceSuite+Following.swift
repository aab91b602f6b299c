import Storage

extension ConformanceSuite {
  static let followingBehaviours: [Behaviour] = [
    Behaviour("entries are followed to what they refer to, as a scan and a get find it") { suite in
      try suite.withEngine { engine in
        var generator = SeededGenerator(seed: suite.seed)
        let (index, docs) = try engine.write { transaction in
          (
            try transaction.createKeyspace("index", shape: .entries),
            try transaction.createKeyspace("docs", shape: .documents)
          )
        }
        var snapshots: [any ReadTransaction] = []
        defer { for snapshot in snapshots { snapshot.end() } }
        for round in 0..<(suite.isLong ? 200 : 12) {
          try engine.write { transaction in
            // The last rows go, and their numbers are used again by others.
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
          // Earlier snapshots see other rows under the same numbers.
          for snapshot in snapshots.suffix(3) {
            try suite.expectFollowed(snapshot, index, docs, &generator)
          }
          if round % 4 == 3 { snapshots.removeFirst().end() }
        }
      }
    },

    Behaviour("following ends when either closure says so, and passes its errors on") { suite in
      struct Stop: Error {}
      try suite.withEngine { engine in
        let (index, docs) = try engine.write { transaction in
          let index = try transaction.createKeyspace("index", shape: .entries)
          let docs = try transaction.createKeyspace("docs", shape: .documents)
          for number in 10..<90 {
            try transaction.put("e\(number)", "", in: index)
            if number % 3 != 0 { try transaction.put("d\(number)", "value \(number)", in: docs) }
          }
          return (index, docs)
        }
        try engine.read { transaction in
          // Twice: the second time all rows are known.
          for _ in 0..<2 {
            for order in [ScanOrder.ascending, .descending] {
              var seen: [String] = []
              try transaction.unsafeFollow(index, .all, order: order, into: docs) { key, _ in
                let number = Int(String(decoding: key.dropFirst(), as: UTF8.self)) ?? 0
                return number == 50 ? .end : .none
              } _: { _, _ in
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
                try transaction.unsafeFollow(index, .all, order: order, into: docs) { _, _ in
                  throw Stop()
                } _: { _, _ in
                  true
                }
                throw ConformanceFailure("an error of the reference was lost")
              } catch is Stop {}
              try expectError(.invalidKey, from: "a key that no keyspace can hold") {
                let empty = UnsafeRawBufferPointer(start: nil, count: 0)
                try transaction.unsafeFollow(index, .all, order: order, into: docs) { _, _ in
                  .key(empty)
                } _: { _, _ in
                  true
                }
              }
            }
          }
        }
      }
    },

    Behaviour("what following hands out stays while other things are read") { suite in
      try suite.withEngine { engine in
        let (index, docs) = try engine.write { transaction in
          let index = try transaction.createKeyspace("index", shape: .entries)
          let docs = try transaction.createKeyspace("docs", shape: .documents)
          for number in 10..<60 {
            try transaction.put("e\(number)", "", in: index)
            let filling = String(repeating: "x", count: number % 7 == 0 ? 20_000 : 10)
            try transaction.put("d\(number)", "\(filling) \(number)", in: docs)
          }
          return (index, docs)
        }
        func check(_ transaction: any ReadTransaction) throws {
          for _ in 0..<2 {
            var count = 0
            try transaction.unsafeFollow(index, .all, order: .ascending, into: docs) { key, _ in
              var name = [UInt8](key)
              name[0] = UInt8(ascii: "d")
              return .key(suite.kept(name))
            } _: { key, value in
              let before = ([UInt8](key), [UInt8](value))
              for number in 10..<60 { _ = try transaction.text("d\(number)", in: docs) }
              try suite.follow(transaction, index, docs, .descending) { _, _ in true }
              try transaction.unsafeScan(docs) { _, _ in true }
              try expectEqual([UInt8](key), before.0, "a key, after other reads")
              try expectEqual([UInt8](value), before.1, "a value, after other reads")
              count += 1
              return true
            }
            try expectEqual(count, 50, "documents followed")
          }
        }
        try engine.read { try check($0) }
        try engine.write { try check($0) }
      }
    },
  ]

  private static func document(_ generator: inout SeededGenerator) -> [UInt8] {
    Array("document \(generator.below(150))".utf8)
  }

  /// Bytes at an address of their own, which nobody frees.
  fileprivate func kept(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
    return UnsafeRawBufferPointer(memory)
  }

  /// Follows entries `eN` to `dN`.
  private func follow(
    _ transaction: any ReadTransaction, _ index: Keyspace, _ docs: Keyspace, _ order: ScanOrder,
    _ body: (String, String) throws -> Bool
  ) throws {
    let name = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
    defer { name.deallocate() }
    try transaction.unsafeFollow(index, .all, order: order, into: docs) { key, _ in
      name.copyMemory(from: key)
      name[0] = UInt8(ascii: "d")
      return .key(UnsafeRawBufferPointer(rebasing: name[..<key.count]))
    } _: { key, value in
      try body(String(decoding: key, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
  }

  /// Compares with a scan and a get, over ranges and in both orders.
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
        try transaction.unsafeFollow(index, range, order: order, into: docs) { key, value in
          guard value.isEmpty, let zero = key.lastIndex(of: 0) else { return .none }
          return .key(UnsafeRawBufferPointer(rebasing: key[(zero + 1)...]))
        } _: { key, value in
          found.append(.init(key: [UInt8](key), value: [UInt8](value)))
          return true
        }
        try expectEqual(found, wanted, "what was followed")
      }
    }
  }
}
