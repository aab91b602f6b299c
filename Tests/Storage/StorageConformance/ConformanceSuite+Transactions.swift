import Storage

/// An error that a test throws on purpose inside a transaction.
struct DeliberateError: Error, Equatable {
  var number = 0
}

/// Runs a transaction whose body throws the error that it is given. It has to come back.
package func expectUndone(_ transaction: (_ undo: any Error) throws -> Void) throws {
  let undo = DeliberateError(number: 77)
  do { try transaction(undo) } catch let error as DeliberateError where error == undo { return }
  throw ConformanceFailure("a transaction whose body threw was committed")
}

extension StorageEngine {
  /// Runs `body` in a write transaction that is undone.
  package func undoneWrite(_ body: (any WriteTransaction) throws -> Void) throws {
    try expectUndone { undo in
      try write { transaction in
        try body(transaction)
        throw undo
      }
    }
  }
}

extension ConformanceSuite {
  static let transactionBehaviours: [Behaviour] = [
    Behaviour("a write transaction sees its own writes") { _, engine in
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put("a", "1", in: keyspace)
        try expectEqual(transaction.text("a", in: keyspace), "1", "get after put")
        try transaction.put("a", "22", in: keyspace)
        try expectEqual(transaction.text("a", in: keyspace), "22", "get after a second put")
        try expectEqual(transaction.count(of: keyspace), 1, "count after two puts of one key")
        try expect(transaction.delete(Array("a".utf8), in: keyspace), "delete found nothing")
        try expectEqual(transaction.text("a", in: keyspace), nil, "get after delete")
        try expectEqual(transaction.entries(of: keyspace), [], "scan after delete")
      }
    },

    Behaviour("a body's error is rethrown and nothing remains, in any keyspace") { suite, engine in
      let before = try suite.fill(engine)
      do {
        try engine.write { transaction in
          let documents = try transaction.known("documents")
          let entries = try transaction.known("entries")
          let sequences = try transaction.known("sequences")
          try transaction.put("new", "value", in: documents)
          try transaction.put(Array("key3".utf8), [UInt8](repeating: 7, count: 50_000), in: documents)
          _ = try transaction.deleteRange(.all, in: entries)
          try transaction.append(sequenceKey(1 << 40), [1], in: sequences)
          try transaction.dropKeyspace(sequences)
          _ = try transaction.createKeyspace("made", shape: .entries)
          throw DeliberateError(number: 5)
        }
        throw ConformanceFailure("write returned although its body threw")
      } catch let error as DeliberateError {
        try expectEqual(error, DeliberateError(number: 5), "the error of the body")
      }
      try expectEqual(Content(engine), before, "content after a rolled back transaction")
      try engine.write { try $0.put("after", "x", in: $0.known("documents")) }
      try expect(Content(engine) != before, "a write after a rolled back transaction is lost")
    },

    Behaviour("a transaction finds the greatest keys and the counts that others left") { _, engine in
      let keyspace = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("sequences", shape: .sequences)
        for number in [1, 2] as [UInt64] { try transaction.append(sequenceKey(number), [1], in: keyspace) }
        return keyspace
      }
      func append(_ number: UInt64) throws {
        try engine.write { try $0.append(sequenceKey(number), [2], in: keyspace) }
      }
      func expectRefused(_ number: UInt64) throws {
        try expectError(.outOfOrder, from: "append of \(number)") { try append(number) }
      }
      func expectCount(_ count: Int) throws {
        try engine.write { try expectEqual($0.count(of: keyspace), count, "count in a transaction") }
        try engine.read { try expectEqual($0.count(of: keyspace), count, "count in a snapshot") }
      }
      try expectRefused(2)
      try append(3)
      // The greatest key goes, and may come again.
      try engine.write { try expect($0.delete(sequenceKey(3), in: keyspace), "nothing was deleted") }
      try expectCount(2)
      try append(3)
      // Others than the greatest key don't matter.
      try engine.write { transaction in
        try expect(transaction.delete(sequenceKey(1), in: keyspace), "nothing was deleted")
        try transaction.put(sequenceKey(2), [3], in: keyspace)
      }
      try expectRefused(3)
      // A put may be the greatest one.
      try engine.write { try $0.put(sequenceKey(10), [4], in: keyspace) }
      try expectRefused(5)
      try expectRefused(10)
      try append(11)
      try engine.write { try expect($0.insert(sequenceKey(20), [5], in: keyspace), "nothing was inserted") }
      try expectRefused(15)
      try expectCount(5)
      // What a transaction undoes isn't there for the next one.
      try expectError(.invalidArgument, from: "a body that throws") {
        try engine.write { transaction in
          try transaction.append(sequenceKey(30), [6], in: keyspace)
          throw StorageError(.invalidArgument, "undone")
        }
      }
      try expectCount(5)
      try append(25)
      try engine.write { _ = try $0.deleteRange(KeyRange(lower: .inclusive(sequenceKey(11))), in: keyspace) }
      try expectCount(3)
      try append(11)
      // Another keyspace with the name begins anew.
      let again = try engine.write { transaction in
        try transaction.dropKeyspace(keyspace)
        return try transaction.createKeyspace("sequences", shape: .sequences)
      }
      try engine.write { try $0.append(sequenceKey(1), [7], in: again) }
      try engine.read { try expectEqual($0.count(of: again), 1, "count of a new keyspace") }
    },

    Behaviour("refused calls leave the transaction usable") { _, engine in
      try engine.write { transaction in
        let documents = try transaction.createKeyspace("documents", shape: .documents)
        let sequences = try transaction.createKeyspace("sequences", shape: .sequences)
        try transaction.put("m", "1", in: documents)
        try expectError(.invalidKey, from: "put of an empty key") {
          try transaction.put([], [1], in: documents)
        }
        try expectError(.outOfOrder, from: "append below the last key") {
          try transaction.append([0x61], [1], in: documents)
        }
        try expectError(.invalidKey, from: "put of a short key of sequences") {
          try transaction.put([1], [1], in: sequences)
        }
        try expectError(.shapeMismatch, from: "createKeyspace with another shape") {
          _ = try transaction.createKeyspace("documents", shape: .entries)
        }
        try expectError(.noSuchKeyspace, from: "put into an unknown keyspace") {
          try transaction.put([1], [1], in: Keyspace(number: 1_000_000, shape: .entries))
        }
        try transaction.put("n", "2", in: documents)
      }
      try engine.read { transaction in
        let documents = try transaction.known("documents")
        try expectEqual(transaction.entries(of: documents).count, 2, "entries after refused calls")
      }
    },

    Behaviour("a write inside a write is refused, and the outer one goes on") { _, engine in
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put("a", "1", in: keyspace)
        try expectError(.nestedWrite, from: "a nested write") {
          try engine.write { _ in throw DeliberateError() }
        }
        try transaction.put("b", "2", in: keyspace)
      }
      try expectEqual(
        engine.read { try $0.entries(of: $0.known("k")).count }, 2, "entries after a refused nested write")
      try engine.write { try $0.put("c", "3", in: $0.known("k")) }
    },

    Behaviour("a snapshot begun inside a write sees the last commit") { _, engine in
      try engine.write { try $0.put("a", "old", in: $0.createKeyspace("k", shape: .documents)) }
      try engine.write { transaction in
        try transaction.put("a", "new", in: transaction.known("k"))
        try expectEqual(
          engine.read { try $0.text("a", in: $0.known("k")) }, "old", "read beside an open write")
      }
      try expectEqual(engine.read { try $0.text("a", in: $0.known("k")) }, "new", "read after it")
    },

    Behaviour("write gives back what its body gives back") { _, engine in
      let keyspace: Keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
      try expectEqual(keyspace.shape, .entries, "the shape of a made keyspace")
      let nothing: Int? = try engine.write { _ in nil }
      try expectEqual(nothing, nil, "a body that gives nil")
    },

    Behaviour("an empty transaction commits") { _, engine in
      for _ in 0..<10 { try engine.write { (_: any WriteTransaction) in } }
      try expectEqual(engine.read { try $0.keyspaces().count }, 0, "keyspaces of an untouched file")
    },
  ]

  /// Fills three keyspaces, one of each shape, and returns the content.
  func fill(_ engine: any StorageEngine, count: Int = 200) throws -> Content {
    try engine.write { transaction in
      let documents = try transaction.createKeyspace("documents", shape: .documents)
      let entries = try transaction.createKeyspace("entries", shape: .entries)
      let sequences = try transaction.createKeyspace("sequences", shape: .sequences)
      for number in 0..<count {
        // Every 50th value is larger than a page.
        let value = [UInt8](
          repeating: UInt8(truncatingIfNeeded: number), count: number % 50 == 7 ? 9_000 : 90)
        try transaction.put(Array("key\(number)".utf8), value, in: documents)
        try transaction.put(Array("entry\(number % 97)/\(number)".utf8), [], in: entries)
        try transaction.append(sequenceKey(UInt64(number) * 3), Array("key\(number)".utf8), in: sequences)
      }
    }
    return try Content(engine)
  }
}

/// The content of an engine, to compare two states.
struct Content: Equatable, CustomStringConvertible {
  struct Table: Equatable {
    var shape: KeyspaceShape
    var entries: [SortedMap.Entry]
  }
  var tables: [String: Table] = [:]

  /// No content.
  init() {}

  init(_ engine: any StorageEngine) throws {
    self = try engine.read { try Content($0) }
  }

  /// Reads every keyspace in its three orders. They must agree with each other and with the count.
  init(_ transaction: any ReadTransaction) throws {
    for (name, keyspace) in try transaction.keyspaces() {
      let entries = try transaction.entries(of: keyspace)
      try expect(
        transaction.entries(of: keyspace, order: .descending) == entries.reversed(),
        "the descending scan of “\(name)” isn't the ascending one reversed")
      let stored = try transaction.entries(of: keyspace, order: .stored)
      try expect(
        stored.sorted { isBefore($0.key, $1.key) } == entries,
        "the stored scan of “\(name)” has other entries than the ascending one")
      try expectEqual(transaction.count(of: keyspace), entries.count, "count of “\(name)”")
      tables[name] = Table(shape: keyspace.shape, entries: entries)
    }
  }

  var description: String {
    tables.sorted { $0.key < $1.key }.map { name, table in
      var digest: UInt64 = 0xCBF2_9CE4_8422_2325
      for entry in table.entries {
        for byte in entry.key + [0] + entry.value { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
      }
      return "\(name):\(table.shape):\(table.entries.count):\(String(digest, radix: 16))"
    }.joined(separator: ",")
  }
}
