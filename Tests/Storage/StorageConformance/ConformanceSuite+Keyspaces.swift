import Storage

extension ConformanceSuite {
  static let keyspaceBehaviours: [Behaviour] = [
    Behaviour("keyspaces are found by name with their shape, and don't share keys") { _, engine in
      try engine.write { transaction in
        for shape in KeyspaceShape.allCases {
          let keyspace = try transaction.createKeyspace("of-\(shape.rawValue)", shape: shape)
          try expectEqual(keyspace.shape, shape, "shape of a made keyspace")
          try expectEqual(
            transaction.createKeyspace("of-\(shape.rawValue)", shape: shape), keyspace, "a second creation")
          try transaction.put(sequenceKey(5), [shape.rawValue], in: keyspace)
        }
      }
      try engine.read { transaction in
        try expectEqual(
          Set(transaction.keyspaces().keys), ["of-1", "of-2", "of-3"], "names of all keyspaces")
        for shape in KeyspaceShape.allCases {
          let keyspace = try transaction.known("of-\(shape.rawValue)")
          try expectEqual(keyspace.shape, shape, "shape of a found keyspace")
          try expectEqual(transaction.keyspaces()["of-\(shape.rawValue)"], keyspace, "handle in the list")
          try expectEqual(transaction.bytes(sequenceKey(5), in: keyspace), [shape.rawValue], "value")
        }
        try expectEqual(transaction.keyspace(named: "of-4"), nil, "an unknown name")
      }
    },

    Behaviour("names are letters, digits, dots, hyphens and underscores, told apart by case") {
      _, engine in
      let longest = String(repeating: "n", count: engine.limits.keyspaceNameBytes)
      try engine.write { transaction in
        for name in [
          "a", "A", "0", ".", "-", "_", "index.by-Type_2", "sqlite_x", "main", "select", longest,
        ] {
          let keyspace = try transaction.createKeyspace(name, shape: .documents)
          try transaction.put("name", name, in: keyspace)
        }
        for name in ["", longest + "n", "a b", "é", "a/b", "a\"b", "a'b", "a\0b", "a;b"] {
          try expectError(.invalidArgument, from: "createKeyspace(“\(name)”)") {
            _ = try transaction.createKeyspace(name, shape: .documents)
          }
        }
      }
      try engine.read { transaction in
        for (name, keyspace) in try transaction.keyspaces() {
          try expectEqual(transaction.text("name", in: keyspace), name, "the entry of a keyspace")
        }
        try expectEqual(transaction.keyspaces().count, 11, "keyspaces")
        try expectEqual(transaction.keyspace(named: ""), nil, "an empty name")
      }
    },

    Behaviour("a keyspace can't be had with another shape") { _, engine in
      try engine.write { _ = try $0.createKeyspace("k", shape: .entries) }
      try engine.write { transaction in
        for shape in [KeyspaceShape.documents, .sequences] {
          try expectError(.shapeMismatch, from: "createKeyspace with \(shape)") {
            _ = try transaction.createKeyspace("k", shape: shape)
          }
        }
        _ = try transaction.createKeyspace("k", shape: .entries)
      }
    },

    Behaviour("as many keyspaces as the engine's limit, and no more") { _, engine in
      let limit = engine.limits.keyspaces
      let shapes = KeyspaceShape.allCases
      try engine.write { transaction in
        for number in 0..<limit {
          let keyspace = try transaction.createKeyspace("k\(number)", shape: shapes[number % 3])
          try transaction.put(sequenceKey(UInt64(number)), [1], in: keyspace)
        }
        try expectError(.tooManyKeyspaces, from: "one keyspace too many") {
          _ = try transaction.createKeyspace("k\(limit)", shape: .entries)
        }
      }
      try engine.write { transaction in
        _ = try transaction.createKeyspace("k7", shape: shapes[7 % 3])
        try transaction.dropKeyspace(transaction.known("k5"))
        _ = try transaction.createKeyspace("another", shape: .entries)
        try expectError(.tooManyKeyspaces, from: "one keyspace too many after a drop") {
          _ = try transaction.createKeyspace("k\(limit)", shape: .entries)
        }
      }
      try engine.read { transaction in
        try expectEqual(transaction.keyspaces().count, limit, "keyspaces")
        for number in 0..<limit where number != 5 {
          try expectEqual(
            transaction.bytes(sequenceKey(UInt64(number)), in: transaction.known("k\(number)")), [1],
            "the entry of keyspace \(number)")
        }
      }
      try expectEqual(engine.maintenance.statistics().entries.count, limit, "keyspaces in the statistics")
    },

    Behaviour("keyspaces can be made, dropped and made again by the thousand") { suite, engine in
      var numbers: Set<Int> = []
      for round in 0..<(suite.isLong ? 5_000 : 1_200) {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k", shape: KeyspaceShape.allCases[round % 3])
          try expect(numbers.insert(keyspace.number).inserted, "number \(keyspace.number) was used twice")
          try expectEqual(transaction.count(of: keyspace), 0, "count of a new keyspace")
          try transaction.put(sequenceKey(UInt64(round)), [1], in: keyspace)
          if round % 2 == 0 { try transaction.dropKeyspace(keyspace) }
        }
        if round % 2 == 1 { try engine.write { try $0.dropKeyspace($0.known("k")) } }
      }
      try expectEqual(engine.read { try $0.keyspaces().count }, 0, "keyspaces at the end")
      try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
    },

    Behaviour("a rolled back keyspace never was, and its handle is of no use") { suite, engine in
      var stale: Keyspace?
      try engine.undoneWrite { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put("a", "1", in: keyspace)
        stale = keyspace
      }
      try expectEqual(engine.read { try $0.keyspace(named: "k") }, nil, "a rolled back keyspace")
      guard let stale else { throw ConformanceFailure("the body didn't run") }
      try suite.expectStale(stale, engine)
      let again = try engine.write { try $0.createKeyspace("k", shape: .documents) }
      try expectEqual(engine.read { try $0.count(of: again) }, 0, "count of the keyspace made anew")
    },

    Behaviour("a rolled back drop leaves keyspace, entries and handle") { _, engine in
      let keyspace = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put("a", "1", in: keyspace)
        return keyspace
      }
      try engine.undoneWrite { transaction in
        try transaction.dropKeyspace(keyspace)
        try expectEqual(transaction.keyspace(named: "k"), nil, "the keyspace dropped in this transaction")
        try expectError(.noSuchKeyspace, from: "put into it") { try transaction.put("b", "2", in: keyspace) }
        try transaction.put("c", "3", in: transaction.createKeyspace("k", shape: .entries))
      }
      try engine.write { try $0.put("b", "2", in: keyspace) }
      let found: Keyspace? = try engine.read { try $0.keyspace(named: "k") }
      try expectEqual(found, keyspace, "the handle")
      try expectEqual(engine.read { try $0.entries(of: keyspace).count }, 2, "entries")
    },

    Behaviour("a handle of a dropped keyspace is refused, whatever lives under its name") { suite, engine in
      for shape in KeyspaceShape.allCases {
        let keyspace = try engine.write { try $0.createKeyspace("k", shape: shape) }
        try engine.write { try $0.put(sequenceKey(1), [1], in: keyspace) }
        try engine.write { try $0.dropKeyspace(keyspace) }
        try suite.expectStale(keyspace, engine)
        let again = try engine.write { try $0.createKeyspace("k", shape: shape) }
        try suite.expectStale(keyspace, engine)
        // Also in a transaction that has changed the keyspace before.
        try engine.write { transaction in
          let other = try transaction.createKeyspace("other", shape: shape)
          for round in 0..<2 { try transaction.put(sequenceKey(1), [UInt8(round)], in: other) }
          let first = sequenceKey(1)
          _ = try transaction.delete(first.span.bytes, in: other)
          try transaction.dropKeyspace(other)
          try expectError(.noSuchKeyspace, from: "count") { _ = try transaction.count(of: other) }
        }
        try expectEqual(engine.read { try $0.count(of: again) }, 0, "count of the keyspace made anew")
        try engine.write { try $0.dropKeyspace(again) }
      }
    },

    Behaviour("handles hold in every transaction until the keyspace is dropped") { _, engine in
      let keyspace = try engine.write { try $0.createKeyspace("k", shape: .sequences) }
      for number in 0..<50 {
        try engine.write { try $0.append(sequenceKey(UInt64(number)), [], in: keyspace) }
        try expectEqual(engine.read { try $0.count(of: keyspace) }, number + 1, "count")
      }
    },
  ]
}
