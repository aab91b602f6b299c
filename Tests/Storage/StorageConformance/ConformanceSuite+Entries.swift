import Foundation
import Storage

extension ConformanceSuite {
  static let entryBehaviours: [Behaviour] = [
    Behaviour("keys of a byte up to the engine's limit are kept, and others refused") { suite, engine in
      let limit = engine.limits.keyBytes
      let counts = [1, 2, 8, 9, 255, 256, limit - 1, limit]
      for shape in [KeyspaceShape.documents, .entries] {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          let longest = [UInt8](repeating: 0xFF, count: limit)
          for count in counts {
            try transaction.put([UInt8](longest[..<count]), [UInt8(count & 0xFF)], in: keyspace)
          }
          for key in [[], longest + [0], longest + longest] {
            try suite.expectRefused(key, "\(key.count) bytes", transaction, keyspace)
          }
          try expectEqual(transaction.entries(of: keyspace).map(\.key.count), counts, "key sizes")
          for count in counts {
            try expectEqual(
              transaction.bytes([UInt8](longest[..<count]), in: keyspace), [UInt8(count & 0xFF)], "value")
          }
        }
      }
    },

    Behaviour("keys with any bytes are ordered unsigned, a prefix first") { _, engine in
      let keys: [[UInt8]] = [
        [0], [0, 0], [0, 0, 0], [0, 1], [0, 0xFF], [1], [0x20], [0x41], [0x41, 0], [0x61], [0x7F],
        [0x7F, 0xFF], [0x80], [0x80, 0], [0xC3, 0xA9], [0xFE, 0xFF], [0xFF], [0xFF, 0], [0xFF, 0xFF],
      ]
      for shape in [KeyspaceShape.documents, .entries] {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          for key in keys.reversed() { try transaction.put(key, key, in: keyspace) }
          try expectEqual(transaction.entries(of: keyspace).map(\.key), keys, "order of keys")
          for key in keys { try expectEqual(transaction.bytes(key, in: keyspace), key, "value") }
        }
      }
    },

    Behaviour("values up to the engine's limit are kept, and longer ones refused") { suite, engine in
      let limit = engine.limits.valueBytes
      // Zero pages that use no memory until they are written.
      guard let start = mmap(nil, limit + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        start != MAP_FAILED
      else { throw ConformanceFailure("no memory for a value of \(limit + 1) bytes") }
      defer { munmap(start, limit + 1) }
      let key = [UInt8](repeating: 0x6B, count: engine.limits.keyBytes)
      let keyspaces = try engine.write { transaction in
        try [KeyspaceShape.documents, .entries].map {
          try transaction.createKeyspace("k\($0.rawValue)", shape: $0)
        }
      }
      for keyspace in keyspaces {
        try engine.write { transaction in
          let tooLong = UnsafeRawBufferPointer(start: start, count: limit + 1)
          try expectError(.valueTooLarge, from: "a put of \(limit + 1) bytes") {
            try key.withUnsafeBytes { try transaction.put($0.bytes, tooLong.bytes, in: keyspace) }
          }
          try suite.expectAbsent(key, transaction, keyspace)
        }
        // One gigabyte at a time.
        guard suite.isLong else { continue }
        let longest = UnsafeMutableRawBufferPointer(start: start, count: limit)
        longest[0] = 1
        longest[limit - 1] = 2
        try engine.write { transaction in
          try key.withUnsafeBytes { try transaction.put($0.bytes, longest.bytes, in: keyspace) }
        }
        try engine.read { transaction in
          let isKept = try transaction.withValue(at: key, in: keyspace) { value in
            value.withUnsafeBytes { value in
              value.count == limit && value.baseAddress.map { memcmp($0, start, limit) == 0 } == true
            }
          }
          try expectEqual(isKept, true, "the longest value")
        }
      }
    },

    Behaviour("empty values are kept and told from absent ones") { _, engine in
      for shape in KeyspaceShape.allCases {
        let keyspace = try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          try transaction.put(sequenceKey(1), [], in: keyspace)
          try expect(transaction.insert(sequenceKey(2), [], in: keyspace), "insert found an entry")
          try expect(!transaction.insert(sequenceKey(2), [9], in: keyspace), "insert over an empty value")
          try transaction.append(sequenceKey(3), [], in: keyspace)
          return keyspace
        }
        try engine.read { transaction in
          for number in 1...3 {
            try expectEqual(
              transaction.bytes(sequenceKey(UInt64(number)), in: keyspace), [], "an empty value")
          }
          try expectEqual(transaction.bytes(sequenceKey(4), in: keyspace), nil, "an absent one")
          try expectEqual(transaction.entries(of: keyspace).map(\.value), [[], [], []], "scanned values")
          let cursor = try transaction.cursor(in: keyspace, .all)
          try expectEqual(cursor.lastEntry()?.value, [], "a cursor's value")
        }
      }
    },

    Behaviour("keys of sequences are 8 bytes, below 2^63") { suite, engine in
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("s", shape: .sequences)
        let sound: [UInt64] = [0, 1, 255, 256, 1 << 32, (1 << 53) + 1, UInt64(Int64.max)]
        for number in sound { try transaction.append(sequenceKey(number), [1], in: keyspace) }
        let unsound: [[UInt8]] = [
          [], [1], [UInt8](repeating: 0, count: 7), [UInt8](repeating: 0, count: 9),
          sequenceKey(1 << 63), sequenceKey(UInt64.max),
        ]
        for key in unsound { try suite.expectRefused(key, hexadecimal(key), transaction, keyspace) }
        try expectEqual(
          transaction.entries(of: keyspace).map(\.key), sound.map { sequenceKey($0) }, "keys of sequences")
      }
    },

    Behaviour("insert keeps what is there, put replaces it") { _, engine in
      for shape in KeyspaceShape.allCases {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          try expect(transaction.insert(sequenceKey(1), [1], in: keyspace), "insert into nothing")
          try expect(!transaction.insert(sequenceKey(1), [2, 2], in: keyspace), "insert over an entry")
          try expectEqual(transaction.bytes(sequenceKey(1), in: keyspace), [1], "value after insert")
          try transaction.put(sequenceKey(1), [3, 3, 3], in: keyspace)
          try expectEqual(transaction.bytes(sequenceKey(1), in: keyspace), [3, 3, 3], "value after put")
          try transaction.put(sequenceKey(1), [], in: keyspace)
          try expectEqual(transaction.bytes(sequenceKey(1), in: keyspace), [], "value after an empty put")
          try expectEqual(transaction.count(of: keyspace), 1, "count")
          try expect(transaction.delete(sequenceKey(1), in: keyspace), "delete found nothing")
          try expect(!transaction.delete(sequenceKey(1), in: keyspace), "delete found a deleted entry")
          try expectEqual(transaction.count(of: keyspace), 0, "count at the end")
        }
      }
    },

    Behaviour("a load appends entries of any number and length, and refuses other writes or does them") {
      suite, engine in
      var round = 0
      for shape in KeyspaceShape.allCases {
        for count in [0, 1, 2, 7, 8, 9, 63, 64, 65, 72, 200] {
          round += 1
          let name = "k\(round)"
          let values = (0..<count).map { number in
            // Some values are long, and some are long together with their neighbours.
            let length = number % 29 == 3 ? 40_000 : number % 17 < 3 ? 5_000 : number % 5
            return [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
          }
          // The second half has gaps.
          func key(_ number: Int) -> [UInt8] {
            sequenceKey(UInt64(10 + number + max(0, number - count / 2)))
          }
          let first = count / 3
          let keyspace = try engine.write { transaction in
            let keyspace = try transaction.createKeyspace(name, shape: shape)
            try transaction.load(arrays: keyspace) { append in
              for number in 0..<first { try append(key(number), values[number]) }
            }
            try expectEqual(transaction.count(of: keyspace), first, "count in between")
            return keyspace
          }
          try engine.write { transaction in
            try transaction.load(arrays: keyspace) { append in
              for number in first..<count { try append(key(number), values[number]) }
            }
            try expectEqual(transaction.count(of: keyspace), count, "count of \(name)")
          }
          try engine.read { snapshot in
            let entries = try snapshot.entries(of: keyspace)
            try expectEqual(entries.map(\.key), (0..<count).map(key), "keys of \(name)")
            try expectEqual(entries.map(\.value), values, "values of \(name)")
            try expectEqual(snapshot.count(of: keyspace), count, "count of \(name) in a snapshot")
          }
        }
      }
      let keyspace = try engine.write { try $0.createKeyspace("other", shape: .documents) }
      try engine.write { transaction in
        try transaction.put([5], [5], in: keyspace)
        for wrong: UInt8 in [4, 5, 6] {
          try expectError(.outOfOrder, from: "a load with \(wrong) behind 6") {
            try transaction.load(arrays: keyspace) { append in
              try append([wrong == 4 ? 5 : 6], [1])
              try append([wrong], [1])
            }
          }
          _ = try transaction.delete([6], in: keyspace)
        }
        var keys: [[UInt8]] = [[5], [7], [9], [10]]
        try transaction.load(arrays: keyspace) { append in
          try append([7], [7])
          let put = { try transaction.put([6], [6], in: keyspace) }
          let load = { try transaction.load(arrays: keyspace) { try $0([8], [8]) } }
          if suite.subject.loadsItself {
            try expectError(.bytesAreLent, from: "put in a load", put)
            try expectError(.bytesAreLent, from: "a load in a load", load)
          } else {
            try put()
            try load()
            keys += [[6], [8]]
          }
          let five: [UInt8] = [5]
          _ = try transaction.read(five.span.bytes, in: keyspace) { _ in
            try expectError(.bytesAreLent, from: "an append of a load inside of a read") {
              try append([9], [9])
            }
          }
          try append([9], [9])
        }
        try transaction.put([10], [10], in: keyspace)
        keys.sort { isBefore($0, $1) }
        try expectEqual(transaction.entries(of: keyspace).map(\.key), keys, "keys at the end")
      }
      // An error of the body is rethrown, and the transaction stays usable.
      try engine.write { transaction in
        try expectError(.invalidArgument, from: "a body that throws") {
          try transaction.load(arrays: keyspace) { append in
            try append([11], [11])
            throw StorageError(.invalidArgument, "on purpose")
          }
        }
        _ = try transaction.delete([11], in: keyspace)
        let count = try transaction.count(of: keyspace)
        try transaction.append([12], [12], in: keyspace)
        try expectEqual(transaction.count(of: keyspace), count + 1, "count after a body that threw")
      }
    },

    Behaviour("append takes greater keys only, and is as good as put afterwards") { _, engine in
      for shape in KeyspaceShape.allCases {
        let keyspace = try engine.write { try $0.createKeyspace("k\(shape.rawValue)", shape: shape) }
        try engine.write { transaction in
          for number in 1..<2_000 {
            try transaction.append(sequenceKey(UInt64(number * 2)), [1, 2, 3], in: keyspace)
          }
          for number: UInt64 in [0, 1, 2, 777, 3_997, 3_998] {
            try expectError(.outOfOrder, from: "append of \(number)") {
              try transaction.append(sequenceKey(number), [9], in: keyspace)
            }
          }
        }
        try engine.write { transaction in
          try expectError(.outOfOrder, from: "append of the last key in another transaction") {
            try transaction.append(sequenceKey(3_998), [9], in: keyspace)
          }
          try transaction.append(sequenceKey(3_999), [4], in: keyspace)
          try transaction.put(sequenceKey(5), [5], in: keyspace)
          try expect(transaction.delete(sequenceKey(3_999), in: keyspace), "delete of the last")
          try transaction.append(sequenceKey(3_999), [6], in: keyspace)
          _ = try transaction.deleteRange(.all, in: keyspace)
          try transaction.append(sequenceKey(0), [7], in: keyspace)
          try expectEqual(transaction.entries(of: keyspace).map(\.value), [[7]], "values at the end")
        }
      }
    },

    Behaviour("values of 64 MiB go in and out, and can be replaced and deleted") { suite, engine in
      var generator = SeededGenerator(seed: suite.seed)
      let block = generator.bytes(1 << 20)
      var large: [UInt8] = []
      large.reserveCapacity(64 << 20)
      for _ in 0..<64 { large += block }
      large[1] = 1
      large[large.count - 2] = 2
      let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
      try engine.write { transaction in
        try transaction.put("large", "small", in: keyspace)
        try transaction.put(Array("large".utf8), large, in: keyspace)
        try transaction.put("other", "small", in: keyspace)
      }
      try engine.read { transaction in
        let isEqual = try transaction.withValue(at: Array("large".utf8), in: keyspace) {
          $0.isEqual(to: large.span.bytes)
        }
        try expectEqual(isEqual, true, "the value of 64 MiB")
        let sizes = try transaction.entries(of: keyspace).map(\.value.count)
        try expectEqual(sizes, [64 << 20, 5], "sizes of values")
      }
      try engine.write { try $0.put("large", "small again", in: keyspace) }
      try expectEqual(engine.read { try $0.text("large", in: keyspace) }, "small again", "the value")
      try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
    },

    Behaviour("values around the sizes of pages are kept") { suite, engine in
      var generator = SeededGenerator(seed: suite.seed)
      var sizes = [0, 1]
      for page in [512, 1_024, 2_048, 4_096, 8_192, 16_384, 65_536] {
        sizes += (-40...4).map { page + $0 * 4 }
      }
      for shape in KeyspaceShape.allCases {
        var model = SortedMap()
        let keyspace = try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          for (number, size) in sizes.enumerated() {
            let value = generator.bytes(size)
            model.put(sequenceKey(UInt64(number)), value)
            try transaction.put(sequenceKey(UInt64(number)), value, in: keyspace)
          }
          return keyspace
        }
        try expect(engine.read { try $0.entries(of: keyspace) } == model.entries, "values are other ones")
      }
    },

    Behaviour("deleteRange says how many there were, and takes no more") { _, engine in
      for shape in KeyspaceShape.allCases {
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          for number in 0..<1_000 {
            try transaction.put(sequenceKey(UInt64(number)), [UInt8](repeating: 1, count: 100), in: keyspace)
          }
          func key(_ number: UInt64) -> [UInt8] { sequenceKey(number) }
          let cases: [(KeyRange, Int)] = [
            (KeyRange(lower: .inclusive(key(10)), upper: .exclusive(key(20))), 10),
            (KeyRange(lower: .inclusive(key(10)), upper: .exclusive(key(20))), 0),
            (KeyRange(lower: .exclusive(key(20)), upper: .inclusive(key(30))), 10),
            (KeyRange(lower: .inclusive(key(500)), upper: .inclusive(key(400))), 0),
            (KeyRange(upper: .exclusive(key(5))), 5),
            (KeyRange(lower: .exclusive(key(989))), 10),
            (KeyRange(lower: .inclusive(key(2_000))), 0),
            (.all, 965),
          ]
          for (range, wanted) in cases {
            try expectEqual(transaction.deleteRange(range, in: keyspace), wanted, "deleteRange \(range)")
          }
          try expectEqual(transaction.count(of: keyspace), 0, "count at the end")
          try transaction.put(key(1), [1], in: keyspace)
          try expectEqual(transaction.count(of: keyspace), 1, "count after a new start")
        }
      }
    },
  ]

  /// No write takes an invalid key, and it isn't found.
  private func expectRefused(
    _ key: [UInt8], _ what: String, _ transaction: any WriteTransaction, _ keyspace: Keyspace
  ) throws {
    try expectError(.invalidKey, from: "put of \(what)") { try transaction.put(key, [1], in: keyspace) }
    try expectError(.invalidKey, from: "insert of \(what)") {
      _ = try transaction.insert(key, [1], in: keyspace)
    }
    try expectError(.invalidKey, from: "append of \(what)") { try transaction.append(key, [1], in: keyspace) }
    try expectAbsent(key, transaction, keyspace)
  }

  /// An invalid key isn't found. An engine may also throw `invalidKey`.
  func expectAbsent(_ key: [UInt8], _ transaction: any WriteTransaction, _ keyspace: Keyspace) throws {
    do {
      try expectEqual(transaction.bytes(key, in: keyspace), nil, "get of an impossible key")
    } catch let error as StorageError where error.code == .invalidKey {}
    do {
      try expect(!transaction.delete(key, in: keyspace), "delete of an impossible key")
    } catch let error as StorageError where error.code == .invalidKey {}
  }
}

extension WriteTransaction {
  /// `load` with keys and values as arrays.
  fileprivate func load(
    arrays keyspace: Keyspace,
    _ body: (_ append: (_ key: [UInt8], _ value: [UInt8]) throws -> Void) throws -> Void
  ) throws {
    try load(keyspace) { append in
      try withoutActuallyEscaping(append) { append in
        try body { key, value in try append(key.span.bytes, value.span.bytes) }
      }
    }
  }
}
