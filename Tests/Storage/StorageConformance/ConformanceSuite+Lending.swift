import Storage

extension ConformanceSuite {
  /// Lent bytes are valid until their closure returns, whatever else is read. Writes are refused until then.
  static let lendingBehaviours: [Behaviour] = [
    Behaviour("what is lent stays as it is, whatever is read meanwhile, to a depth of eight") {
      suite, engine in
      var nesting = Nesting(seed: suite.seed)
      try nesting.fill(engine)
      for _ in 0..<(suite.isLong ? 300 : 15) { try engine.read { try nesting.go($0, depth: 8) } }
      // A write transaction also lends its own writes.
      for _ in 0..<(suite.isLong ? 100 : 5) {
        try engine.write { transaction in
          for _ in 0..<3 {
            try nesting.change(transaction)
            try nesting.go(transaction, depth: 8)
          }
        }
      }
      try engine.read { try nesting.go($0, depth: 8) }
    },

    Behaviour("what is lent stays while another transaction writes") { suite, engine in
      var nesting = Nesting(seed: suite.seed)
      try nesting.fill(engine)
      let snapshot = try engine.beginRead()
      defer { snapshot.end() }
      var writer = nesting
      try nesting.eachWay(snapshot) { _ in
        for _ in 0..<4 { try engine.write { try writer.change($0) } }
      }
      try nesting.go(snapshot, depth: 3)
    },

    Behaviour("a write where bytes are lent is refused, changes nothing, and can be made afterwards") {
      suite, engine in
      var nesting = Nesting(seed: suite.seed)
      try nesting.fill(engine)
      try engine.write { transaction in
        try nesting.eachWay(transaction) { way in
          try nesting.expectRefused(transaction, way)
          // Also after an inner closure has returned or thrown.
          try nesting.eachWay(transaction) { inner in
            try nesting.expectRefused(transaction, "\(inner) in \(way)")
          }
          do {
            try transaction.scan(nesting.keyspace(0)) { _, _ in throw DeliberateError(number: 1) }
          } catch is DeliberateError {}
          try nesting.expectRefused(transaction, "\(way), after others")
        }
        for place in 0..<Nesting.shapes.count {
          try expectEqual(
            transaction.entries(of: nesting.keyspace(place)), nesting.maps[place].entries,
            "entries after refused writes")
        }
        try nesting.change(transaction)
      }
      try engine.read { try nesting.go($0, depth: 2) }
    },

    Behaviour("a closure that throws ends its read: writes are possible afterwards") { suite, engine in
      var nesting = Nesting(seed: suite.seed)
      try nesting.fill(engine)
      try engine.write { transaction in
        for way in 0..<Nesting.wayCount {
          do {
            try nesting.lend(transaction, way, Nesting.shapes.count - 2) {
              throw DeliberateError(number: way)
            }
            throw ConformanceFailure("way \(way) lost an error")
          } catch let error as DeliberateError { try expectEqual(error.number, way, "the error") }
          try nesting.change(transaction)
        }
      }
      try engine.read { try nesting.go($0, depth: 2) }
    },

    Behaviour("a cursor can't move while it lends, and others can") { suite, engine in
      _ = try suite.fill(engine)
      func check(_ transaction: any ReadTransaction) throws {
        let keyspace = try transaction.known("entries")
        let entries = try transaction.entries(of: keyspace)
        let (first, second) = (
          try transaction.cursor(in: keyspace, .all), try transaction.cursor(in: keyspace, .all)
        )
        try expectError(.notOnEntry, from: "an entry before the first move") {
          try first.lendEntry { _, _ in }
        }
        let firstKey = entries[0].key
        for index in entries.indices {
          _ = try first.next()
          try first.lendEntry { key, value in
            for (name, move) in [
              ("next", first.next), ("previous", first.previous), ("first", first.first),
              ("last", first.last),
              ("seek", { try first.seek(firstKey.span.bytes) }),
            ] {
              try expectError(.bytesAreLent, from: "\(name) of a cursor that lends") { _ = try move() }
            }
            let next = try second.nextEntry()
            try expectEqual(next, entries[index], "another cursor")
            // A cursor may lend its entry a second time.
            try first.lendEntry {
              let again = SortedMap.Entry($0, $1)
              try expectEqual(again, entries[index], "what a cursor lends twice")
            }
            let entry = SortedMap.Entry(key, value)
            try expectEqual(entry, entries[index], "what a cursor lends")
          }
        }
        try expect(!first.next(), "an entry after the last")
        try expectError(.notOnEntry, from: "an entry after the last move") {
          try first.lendEntry { _, _ in }
        }
      }
      try engine.read { try check($0) }
      try engine.write { try check($0) }
    },

    Behaviour("a write leaves a cursor nowhere, until it is placed anew") { suite, engine in
      _ = try suite.fill(engine)
      try engine.write { transaction in
        let keyspace = try transaction.known("entries")
        let cursor = try transaction.cursor(in: keyspace, .all)
        let place: [() throws -> Bool] = [
          cursor.first, cursor.last, { try cursor.seekEntry([0x6B]) != nil },
        ]
        for place in place {
          _ = try place()
          try transaction.put("new", "x", in: keyspace)
          try expectError(.notOnEntry, from: "next after a write") { _ = try cursor.next() }
          try expectError(.notOnEntry, from: "previous after a write") { _ = try cursor.previous() }
          try expectError(.notOnEntry, from: "an entry after a write") { try cursor.lendEntry { _, _ in } }
          try expect(place(), "a cursor that is placed anew finds nothing")
        }
        let dropped = try transaction.createKeyspace("dropped", shape: .entries)
        try expect(cursor.first(), "no entry before another keyspace is dropped")
        try transaction.dropKeyspace(dropped)
        try expectError(.notOnEntry, from: "next after another keyspace was dropped") {
          _ = try cursor.next()
        }
        try expect(cursor.last(), "a cursor that is placed again after another keyspace was dropped")
        _ = try transaction.deleteRange(.all, in: keyspace)
        try expect(!cursor.first(), "an entry of an empty keyspace")
      }
    },

    Behaviour("a transaction and its cursors are closed once it has ended") { suite, engine in
      _ = try suite.fill(engine)
      func expectClosed(_ transaction: any ReadTransaction, _ cursor: any Cursor, _ what: String) throws {
        let keyspace = Keyspace(number: 1, shape: .documents)
        for (name, use) in [
          ("read", { _ = try transaction.bytes([1], in: keyspace) }),
          ("scan", { try transaction.scan(keyspace) { _, _ in true } }),
          ("count", { _ = try transaction.count(of: keyspace) }),
          ("keyspaces", { _ = try transaction.keyspaces() }),
          ("keyspace", { _ = try transaction.keyspace(named: "documents") }),
          ("cursor", { _ = try transaction.cursor(in: keyspace, .all) }),
          ("next", { _ = try cursor.next() }), ("first", { _ = try cursor.first() }),
          ("lendEntry", { try cursor.lendEntry { _, _ in } }),
        ] as [(String, () throws -> Void)] {
          try expectError(.closed, from: "\(name) of \(what) that has ended", use)
        }
      }
      let snapshot = try engine.beginRead()
      let cursor = try snapshot.cursor(in: snapshot.known("documents"), .all)
      _ = try cursor.first()
      snapshot.end()
      try expectClosed(snapshot, cursor, "a snapshot")

      var kept: (any WriteTransaction)?
      var keptCursor: (any Cursor)?
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        kept = transaction
        keptCursor = try transaction.cursor(in: transaction.known("documents"), .all)
        _ = try keptCursor?.first()
        // `end()` has no effect here.
        transaction.end()
        try transaction.put("a", "b", in: transaction.known("documents"))
        _ = try keptCursor?.first()
      }
      if let kept, let keptCursor {
        try expectClosed(kept, keptCursor, "a write transaction")
        try expectError(.closed, from: "put after the end") {
          try kept.put("a", "b", in: Keyspace(number: 1, shape: .documents))
        }
      }
      try expectEqual(engine.read { try $0.text("a", in: $0.known("documents")) }, "b", "the value")
    },

    Behaviour("what a snapshot has lent stays when it ends inside of the closure, others see newer data") {
      _, engine in
      let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
      let key = Array("key".utf8)
      try engine.write { try $0.put("key", "0", in: keyspace) }
      for round in 1...20 {
        let snapshot = try engine.beginRead()
        let cursor = try snapshot.cursor(in: keyspace, .all)
        try expect(cursor.first(), "there is an entry")
        _ = try snapshot.withValue(at: key, in: keyspace) { value in
          snapshot.end()
          try expectError(.closed, from: "a move after the end") { _ = try cursor.next() }
          try expectError(.closed, from: "a place after the end") { _ = try cursor.first() }
          try engine.write { try $0.put("key", "\(round)", in: keyspace) }
          try expectEqual(engine.read { try $0.text("key", in: keyspace) }, "\(round)", "the newer value")
          let lent = [UInt8](copying: value)
          try expectEqual(lent, Array("\(round - 1)".utf8), "what is lent")
        }
        try expectError(.closed, from: "a read after the end") { _ = try snapshot.bytes(key, in: keyspace) }
      }
    },

    Behaviour("a cursor keeps its snapshot open") { _, engine in
      let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
      try engine.write { try $0.put("key", "old", in: keyspace) }
      let cursor = try engine.beginRead().cursor(in: keyspace, .all)
      try engine.write { try $0.put("key", "new", in: keyspace) }
      try expect(cursor.first(), "there is an entry")
      try cursor.withEntry { _, value in
        try expectEqual([UInt8](copying: value), Array("old".utf8), "the entry of the snapshot")
      }
      try expect(!cursor.next(), "there is one entry")
    },

    Behaviour("nested reads hold at the limits of keys, keyspaces and snapshots") { suite, engine in
      let count = suite.isLong ? engine.limits.keyspaces : 60
      var generator = SeededGenerator(seed: suite.seed)
      let longest = generator.bytes(engine.limits.keyBytes)
      let keyspaces = try engine.write { transaction in
        try (0..<count).map { number in
          let keyspace = try transaction.createKeyspace(
            "k\(number)", shape: number % 2 == 0 ? .documents : .entries)
          let value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: number % 7 * 5_000)
          try transaction.put(longest, value, in: keyspace)
          return keyspace
        }
      }
      func nest(_ transaction: any ReadTransaction, _ depth: Int, _ generator: inout SeededGenerator) throws {
        guard depth > 0 else { return }
        let number = generator.below(count)
        let wanted = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: number % 7 * 5_000)
        try transaction.scan(keyspaces[number]) { key, value in
          let isLongest = key.isEqual(to: longest.span.bytes)
          try nest(transaction, depth - 1, &generator)
          let isEqual = value.isEqual(to: wanted.span.bytes)
          try expect(isLongest, "another key than the one of \(longest.count) bytes")
          try expect(isEqual, "another value in keyspace \(number) at depth \(depth)")
          return true
        }
      }
      for _ in 0..<(suite.isLong ? 200 : 20) { try engine.read { try nest($0, 8, &generator) } }
      // Many snapshots that lend bytes at the same time.
      func lendFromMany(_ depth: Int) throws {
        guard depth > 0 else { return }
        try engine.read { transaction in
          _ = try transaction.withValue(at: longest, in: keyspaces[depth % count]) { value in
            let bytes = [UInt8](copying: value)
            try lendFromMany(depth - 1)
            let isEqual = value.isEqual(to: bytes.span.bytes)
            try expect(isEqual, "the value lent by snapshot \(depth)")
          }
        }
      }
      try lendFromMany(suite.isLong ? 500 : 50)
    },
  ]
}
